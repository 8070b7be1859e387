// SPDX-License-Identifier: GPL-2.0
/* userfaultfd(2): what was registered, given and protected is so, and what was absent is absent. */
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "userfault.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

/* Pages that were given, zero pages and absent ones. */
static void check_pages(int fd, char *memory)
{
	NEED(give(fd, memory, 0) && give(fd, memory, 3) && give(fd, memory, 4) &&
	     zero(fd, memory, 1) && zero(fd, memory, NR - 2));
	checkpoint_here();
	CHECK(has(memory, 0) && has(memory, 3) && has(memory, 4));
	CHECK(!memory[PAGE] && !memory[(NR - 2) * PAGE]);
	CHECK(!give(fd, memory, 1) && errno == EEXIST);
	check_absent(fd, memory, 2);
	check_absent(fd, memory, 5);
	check_absent(fd, memory, NR - 1);
}

static void pages(void)
{
	int fd = ready(0);

	check_pages(fd, registered(fd, missing));
}

static void nonblocking(void)
{
	int fd = make(O_NONBLOCK);
	struct uffd_msg m;

	begin(fd, 0);
	check_pages(fd, registered(fd, missing));
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(read(fd, &m, sizeof(m)) < 0 && errno == EAGAIN);
}

/* Memory that the program itself may not use meanwhile. */
static void closed(void)
{
	int fd = ready(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	char *memory = registered(fd, missing | protection);

	NEED(give(fd, memory, 0) && give(fd, memory, 2) && protect(fd, memory, 2, 1, true));
	NEED(!mprotect(memory, NR * PAGE, PROT_NONE));
	checkpoint_here();
	NEED(!mprotect(memory, NR * PAGE, PROT_READ | PROT_WRITE));
	CHECK(has(memory, 0) && has(memory, 2));
	check_absent(fd, memory, 1);
	check_protected(fd, memory, 2);
}

static void dropped(void)
{
	int fd = ready(0);
	char *memory = registered(fd, missing);

	NEED(give(fd, memory, 0) && give(fd, memory, 1) && give(fd, memory, 2));
	NEED(!madvise(memory + PAGE, PAGE, MADV_DONTNEED));
	checkpoint_here();
	CHECK(has(memory, 0) && has(memory, 2));
	check_absent(fd, memory, 1);
}

/* The program's handler has not yet been told of a fault, or has (`read`). */
static void wait_for_page(bool read)
{
	int fd = make(O_NONBLOCK);
	struct uffd_msg m;
	struct toucher t;
	char *memory;

	begin(fd, 0);
	memory = registered(fd, missing);
	start(&t, memory, 6, false);
	if (read)
		NEED(told_of(fd, memory, 6, 0));
	else
		check_sleep_ms(300);
	checkpoint_here();
	CHECK(!t.done);
	if (!read)
		CHECK(told_of(fd, memory, 6, 0));
	CHECK(give(fd, memory, 6));
	pthread_join(t.thread, NULL);
	CHECK(has(memory, 6));
	/* It may have been told once more, and nothing else. */
	while (told(fd, 0, &m))
		CHECK((m.arg.pagefault.address & ~(PAGE - 1)) == (uintptr_t)memory + 6 * PAGE);
	check_absent(fd, memory, 7);
}

static void waiting(void)
{
	wait_for_page(false);
}

static void waiting_told(void)
{
	wait_for_page(true);
}

static void protected(void)
{
	int fd = ready(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	char *memory = map(NR);

	check_fill(memory, NR * PAGE, 1);
	enlist(fd, memory, NR, protection);
	NEED(protect(fd, memory, 1, 2, true) && protect(fd, memory, 5, 1, true) &&
	     protect(fd, memory, NR - 1, 1, true));
	checkpoint_here();
	CHECK(check_filled(memory, NR * PAGE, 1));
	memory[0] = memory[3 * PAGE] = memory[4 * PAGE] = memory[6 * PAGE] = 1;
	check_protected(fd, memory, 1);
	check_protected(fd, memory, 2);
	check_protected(fd, memory, 5);
	check_protected(fd, memory, NR - 1);
	memory[5 * PAGE] = 2;		/* not any more */
}

/* From the first page on, and absent pages among them. */
static void both(void)
{
	int fd = ready(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	char *memory = registered(fd, missing | protection);

	NEED(give(fd, memory, 0) && give(fd, memory, 1) && give(fd, memory, 3));
	NEED(protect(fd, memory, 0, 1, true));
	checkpoint_here();
	CHECK(has(memory, 0) && has(memory, 1) && has(memory, 3));
	check_protected(fd, memory, 0);
	memory[PAGE] = 1;
	check_absent(fd, memory, 2);
	check_absent(fd, memory, 4);
}

/* Absent pages that are write-protected (Linux 6.4). */
static void unpopulated(void)
{
	int fd = ready(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_UNPOPULATED);
	char *memory = registered(fd, protection);

	NEED(protect(fd, memory, 2, 3, true));
	checkpoint_here();
	memory[PAGE] = 1;
	check_protected(fd, memory, 2);
	check_protected(fd, memory, 4);
	memory[5 * PAGE] = 1;
}

static void fresh(void)
{
	int fd = make(0), other = make(0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_range range = { .start = PAGE * 16, .len = PAGE };

	begin(other, 0);
	checkpoint_here();
	CHECK(ioctl(fd, UFFDIO_WAKE, &range) && errno == EINVAL);
	CHECK(!ioctl(fd, UFFDIO_API, &api));
	CHECK(ioctl(other, UFFDIO_API, &api) && !ioctl(other, UFFDIO_WAKE, &range));
	check_absent(fd, registered(fd, missing), 1);
	check_absent(other, registered(other, missing), 1);
}

static void several(void)
{
	int first = ready(0), second = ready(0);
	char *memory = map(2 * NR), *half = memory + NR * PAGE;

	enlist(first, memory, NR, missing);
	enlist(second, half, NR, missing);
	NEED(give(first, memory, 0) && give(second, half, 1));
	checkpoint_here();
	CHECK(has(memory, 0) && has(half, 1));
	check_absent(second, half, 0);
	check_absent(first, memory, NR - 1);
}

static void watched(void)
{
	int fd = make(O_NONBLOCK), copy = dup(fd), epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 42 }, got;
	struct toucher t;
	char *memory;

	begin(fd, 0);
	memory = registered(copy, missing);
	NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	close(fd);			/* the epoll watches the copy, too */
	checkpoint_here();
	start(&t, memory, 3, false);
	CHECK(epoll_wait(epoll, &got, 1, 20000) == 1 && got.data.u64 == 42);
	CHECK(told_of(copy, memory, 3, 0) && give(copy, memory, 3));
	pthread_join(t.thread, NULL);
	CHECK(has(memory, 3));
}

/* A child handles the faults of its parent, which has no descriptor any more. */
static void monitored(void)
{
	int fd = ready(0), status;
	char *memory = registered(fd, missing);
	pid_t child = fork();

	NEED(child >= 0);
	if (!child) {
		for (int i = 0; i < 3; i++) {
			struct uffd_msg m;

			if (!told(fd, 0, &m))
				_exit(1);
			if (!give(fd, memory, (m.arg.pagefault.address - (uintptr_t)memory) / PAGE))
				_exit(2);
		}
		_exit(0);
	}
	close(fd);
	CHECK(has(memory, 4));
	checkpoint_here();
	CHECK(has(memory, 4) && has(memory, 5) && has(memory, 0));
	CHECK(waitpid(child, &status, 0) == child && !status);
}

/* A grandchild and a sibling share it, too. */
static void shared(void)
{
	int fd = ready(0), status;
	char *memory = registered(fd, missing);
	pid_t first = fork(), second;

	NEED(first >= 0);
	if (!first) {
		pid_t third = fork();

		check_wait();
		if (!third)
			_exit(!give(fd, memory, 3));
		_exit(waitpid(third, &status, 0) != third || status || !give(fd, memory, 1));
	}
	second = fork();
	if (!second) {
		check_wait();
		_exit(!give(fd, memory, 2));
	}
	checkpoint_here();
	CHECK(waitpid(first, &status, 0) == first && !status);
	CHECK(waitpid(second, &status, 0) == second && !status);
	CHECK(has(memory, 1) && has(memory, 2) && has(memory, 3));
	check_absent(fd, memory, 0);
}

/* The fork waits until its event was read. */
static void *fork_child(void *memory)
{
	static pid_t child;

	child = fork();
	if (!child) {
		check_wait();
		_exit(!has(memory, 0) || !has(memory, 2));
	}
	return &child;
}

/* The program gets a userfaultfd of its child's memory, by the event of the fork. */
static void fork_event(void)
{
	int fd = ready(UFFD_FEATURE_EVENT_FORK), other, status;
	char *memory = registered(fd, missing);
	pthread_t thread;
	struct uffd_msg m;
	void *child;

	NEED(give(fd, memory, 0));
	NEED(!pthread_create(&thread, NULL, fork_child, memory));
	NEED(told(fd, 0, &m) && m.event == UFFD_EVENT_FORK);
	other = (int)m.arg.fork.ufd;
	pthread_join(thread, &child);
	checkpoint_here();
	CHECK(told_of(other, memory, 2, 0) && give(other, memory, 2));
	CHECK(waitpid(*(pid_t *)child, &status, 0) == *(pid_t *)child && !status);
	check_absent(fd, memory, 2);
}

static sigjmp_buf jump;

static void on_bus(int signal)
{
	(void)signal;
	siglongjmp(jump, 1);
}

static void bus(void)
{
	int fd = ready(UFFD_FEATURE_SIGBUS);
	char *memory = registered(fd, missing);

	NEED(give(fd, memory, 0));
	signal(SIGBUS, on_bus);
	checkpoint_here();
	CHECK(has(memory, 0));
	if (!sigsetjmp(jump, 1)) {
		(void)*(volatile char *)(memory + PAGE);
		CHECK(!"a signal");
	}
	CHECK(give(fd, memory, 1) && has(memory, 1));
}

static void user_mode(void)
{
	int fd = make(UFFD_USER_MODE_ONLY), zeros = open("/dev/zero", O_RDONLY);
	char *memory;

	begin(fd, 0);
	memory = registered(fd, missing);
	NEED(read(zeros, memory + PAGE, 1) < 0 && errno == EFAULT);
	check_pages(fd, memory);
	CHECK(read(zeros, memory + 6 * PAGE, 1) < 0 && errno == EFAULT);
}

/* Huge pages come only where all of their pages may. */
static void huge(void)
{
	const size_t size = 2 << 20, pages = size / PAGE;
	char *memory = map(3 * pages);
	int fd = ready(0);

	memory = (char *)(((uintptr_t)memory + size - 1) & ~(size - 1));
	NEED(!madvise(memory, 2 * size, MADV_HUGEPAGE));
	enlist(fd, memory, 2 * pages, missing);
	NEED(give(fd, memory, 5) && give(fd, memory, pages + 9));
	checkpoint_here();
	CHECK(has(memory, 5) && has(memory, pages + 9));
	check_absent(fd, memory, 6);
	check_absent(fd, memory, pages - 1);
	check_absent(fd, memory, pages);
}

static void *wait_to_go(void *arg)
{
	(void)arg;
	check_wait();
	return NULL;
}

/*
 * The kernel writes to the end of a thread's stack while that enters (restartable sequences), and
 * may make a huge page there, which must not reach into memory next to it.
 */
static void near_stack(void)
{
	const size_t size = 2 << 20, below = 4, pages = size / PAGE;
	char *all = map(3 * pages), *end, *memory;
	pthread_attr_t attributes;
	pthread_t thread;
	int fd = ready(0);

	end = (char *)(((uintptr_t)all + 2 * size) & ~(size - 1));	/* of a huge page */
	memory = end - below * PAGE;
	NEED(!madvise(all, 3 * size, MADV_HUGEPAGE));
	enlist(fd, memory, NR, missing);
	NEED(give(fd, memory, 0));
	NEED(!pthread_attr_init(&attributes) &&
	     !pthread_attr_setstack(&attributes, end - size, size - below * PAGE) &&
	     !pthread_create(&thread, &attributes, wait_to_go, NULL));
	checkpoint_here();
	pthread_join(thread, NULL);
	CHECK(has(memory, 0));
	check_absent(fd, memory, 1);
	check_absent(fd, memory, below - 1);
	check_absent(fd, memory, below);
}

/* The thread's stack itself, to whose pages the kernel writes while the thread enters. */
static void of_stack(void)
{
	const size_t pages = 64;
	char *memory = map(pages);
	pthread_attr_t attributes;
	pthread_t thread;
	int fd = ready(0);

	NEED(!pthread_attr_init(&attributes) &&
	     !pthread_attr_setstack(&attributes, memory, pages * PAGE) &&
	     !pthread_create(&thread, &attributes, wait_to_go, NULL));
	check_sleep_ms(300);		/* it has used what it will use */
	enlist(fd, memory, pages, missing);
	checkpoint_here();
	pthread_join(thread, NULL);
	check_absent(fd, memory, 0);
	check_absent(fd, memory, 1);
}

/* What changes between two images: a file `next` says when, `changed` that it has. */
static void stepped(void)
{
	int fd = ready(0);
	char *memory = registered(fd, missing);

	for (int page = 0; page < 8; page++)
		NEED(give(fd, memory, page));
	check_ready();
	while (access("next", F_OK))
		check_sleep_ms(20);
	NEED(!madvise(memory + 2 * PAGE, 2 * PAGE, MADV_DONTNEED));
	NEED(zero(fd, memory, 3) && give(fd, memory, 9));
	memory[4 * PAGE] ^= 1;
	close(open("changed", O_CREAT | O_WRONLY, 0666));
	check_wait();
	CHECK(has(memory, 0) && has(memory, 1) && has(memory, 5) && has(memory, 9));
	CHECK(!memory[3 * PAGE]);
	memory[4 * PAGE] ^= 1;
	CHECK(has(memory, 4));
	check_absent(fd, memory, 2);
	check_absent(fd, memory, 8);
	check_absent(fd, memory, 10);
}

/* Beside memory that a lazy restart loads later. */
static void beside(void)
{
	const size_t size = 64 << 20;
	char *large = map(size / PAGE);
	int fd = ready(0);

	check_fill(large, size, 3);
	check_pages(fd, registered(fd, missing));
	CHECK(check_filled(large, size, 3));
}

static const struct check checks[] = {
	{ "beside", beside },
	{ "both", both },
	{ "bus", bus },
	{ "closed", closed },
	{ "dropped", dropped },
	{ "fork_event", fork_event },
	{ "fresh", fresh },
	{ "huge", huge },
	{ "monitored", monitored },
	{ "near_stack", near_stack },
	{ "nonblocking", nonblocking },
	{ "of_stack", of_stack },
	{ "pages", pages },
	{ "protected", protected },
	{ "several", several },
	{ "shared", shared },
	{ "stepped", stepped },
	{ "unpopulated", unpopulated },
	{ "user_mode", user_mode },
	{ "waiting", waiting },
	{ "waiting_told", waiting_told },
	{ "watched", watched },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	struct utsname name;
	int major, minor;

	NEED(!uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2);
	if (argc > 3 && major * 1000 + minor < 5016)
		check_skip("before Linux 5.16 nothing of it is saved");
	return check_one(argc, argv, checks);
}
