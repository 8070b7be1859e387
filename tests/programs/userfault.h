/* SPDX-License-Identifier: GPL-2.0 */
/*
 * userfaultfd(2) for test programs: memory whose faults the program handles itself.  A thread
 * touches a page, another one is told and gives it.
 */
#ifndef KCR_TESTS_USERFAULT_H
#define KCR_TESTS_USERFAULT_H

#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check.h"

#define PAGE	4096ul
#define NR	16		/* pages of memory */
#define SEED	7

#define missing		UFFDIO_REGISTER_MODE_MISSING
#define protection	UFFDIO_REGISTER_MODE_WP

static inline int make(int flags)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | flags);

	if (fd < 0 && errno == ENOSYS)
		check_skip("this kernel has no userfaultfd");
	NEED(fd >= 0);
	return fd;
}

static inline void begin(int fd, uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };

	if (ioctl(fd, UFFDIO_API, &api))
		check_skip("this kernel's userfaultfd has no such feature");
}

static inline int ready(uint64_t features)
{
	int fd = make(0);

	begin(fd, features);
	return fd;
}

static inline char *map(size_t pages)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	NEED(memory != MAP_FAILED);
	return memory;
}

static inline void enlist(int fd, char *memory, size_t pages, uint64_t mode)
{
	struct uffdio_register r = {
		.range = { (uintptr_t)memory, pages * PAGE }, .mode = mode,
	};

	NEED(!ioctl(fd, UFFDIO_REGISTER, &r));
}

static inline char *registered(int fd, uint64_t mode)
{
	char *memory = map(NR);

	enlist(fd, memory, NR, mode);
	return memory;
}

/* Gives a page, which tells its number. */
static inline bool give(int fd, char *memory, size_t page)
{
	uint64_t content[PAGE / 8];
	struct uffdio_copy copy = {
		.dst = (uintptr_t)memory + page * PAGE, .src = (uintptr_t)content, .len = PAGE,
	};

	check_fill(content, PAGE, SEED + page);
	return !ioctl(fd, UFFDIO_COPY, &copy);
}

static inline bool zero(int fd, char *memory, size_t page)
{
	struct uffdio_zeropage z = { .range = { (uintptr_t)memory + page * PAGE, PAGE } };

	return !ioctl(fd, UFFDIO_ZEROPAGE, &z);
}

static inline bool has(const char *memory, size_t page)
{
	return check_filled(memory + page * PAGE, PAGE, SEED + page);
}

static inline bool protect(int fd, char *memory, size_t page, size_t pages, bool on)
{
	struct uffdio_writeprotect p = {
		.range = { (uintptr_t)memory + page * PAGE, pages * PAGE },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !ioctl(fd, UFFDIO_WRITEPROTECT, &p);
}

/* The next message; false: there is none within the time. */
static inline bool told(int fd, int ms, struct uffd_msg *message)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	/* One that blocks cannot be polled. */
	if (fcntl(fd, F_GETFL) & O_NONBLOCK && poll(&p, 1, ms) <= 0)
		return false;
	return read(fd, message, sizeof(*message)) == sizeof(*message);
}

static inline bool told_of(int fd, const char *memory, size_t page, uint64_t flags)
{
	struct uffd_msg m;

	return told(fd, 20000, &m) && m.event == UFFD_EVENT_PAGEFAULT &&
	       (m.arg.pagefault.address & ~(PAGE - 1)) == (uintptr_t)memory + page * PAGE &&
	       (m.arg.pagefault.flags & flags) == flags;
}

/* ---- who touches memory ---------------------------------------------------------------- */

struct toucher {
	pthread_t thread;
	volatile char *at;
	bool writes;
	volatile int tid, done;
};

static inline void *touch(void *arg)
{
	struct toucher *t = arg;

	t->tid = (int)syscall(SYS_gettid);
	if (t->writes)
		*t->at = 1;
	else
		(void)*t->at;
	t->done = true;
	return NULL;
}

static inline void start(struct toucher *t, char *memory, size_t page, bool writes)
{
	*t = (struct toucher){ .at = memory + page * PAGE, .writes = writes };
	NEED(!pthread_create(&t->thread, NULL, touch, t));
}

/* Does touching this page now wait until it is given? */
static inline void check_absent(int fd, char *memory, size_t page)
{
	struct toucher t;

	start(&t, memory, page, false);
	CHECK(told_of(fd, memory, page, 0));
	CHECK(!t.done);
	CHECK(give(fd, memory, page));
	pthread_join(t.thread, NULL);
	CHECK(has(memory, page));
}

static inline void check_protected(int fd, char *memory, size_t page)
{
	struct toucher t;

	start(&t, memory, page, true);
	CHECK(told_of(fd, memory, page, UFFD_PAGEFAULT_FLAG_WP));
	CHECK(!t.done);
	CHECK(protect(fd, memory, page, 1, false));
	pthread_join(t.thread, NULL);
	CHECK(memory[page * PAGE] == 1);
}

#endif /* KCR_TESTS_USERFAULT_H */
