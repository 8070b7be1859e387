// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring(7).  Requests that do nothing have a number each, by which their completion is known.
 * The argument of most checks is flags of io_uring_setup(2), 0x… ; of `refused`, what is
 * refused; of `disk`, a slow device, with flags behind a comma.
 */
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

#define ENTRIES	8
#define NO_SQARRAY (1u << 16)

struct ring {
	int fd;
	struct io_uring_params p;
	char *memory;
	struct io_uring_sqe *sqe;
	/* As a library would: kept here, not read from the ring. */
	uint32_t sq_tail, cq_head;
};

static struct ring ring;

static uint32_t *at(struct ring *r, uint32_t offset)
{
	return (uint32_t *)(r->memory + offset);
}

static size_t sqe_size(const struct ring *r)
{
	return sizeof(struct io_uring_sqe) << !!(r->p.flags & IORING_SETUP_SQE128);
}

static size_t cqe_size(const struct ring *r)
{
	return sizeof(struct io_uring_cqe) << !!(r->p.flags & IORING_SETUP_CQE32);
}

static size_t ring_length(const struct ring *r)
{
	size_t cq = r->p.cq_off.cqes + r->p.cq_entries * cqe_size(r);
	size_t sq = r->p.sq_off.array + r->p.sq_entries * sizeof(uint32_t);

	return cq > sq ? cq : sq;
}

static uint32_t flags_of(const char *text)
{
	return text ? strtoul(text, NULL, 0) : 0;
}

static void make(struct ring *r, uint32_t flags, uint32_t entries)
{
	if (access("/sys/kernel/btf/vmlinux", F_OK) && !getenv("KCR_TEST_ANY_KERNEL"))
		check_skip("this kernel has no BTF");
	*r = (struct ring){ .p = { .flags = flags, .cq_entries = 4 * entries } };
	r->fd = syscall(SYS_io_uring_setup, entries, &r->p);
	if (r->fd < 0 && errno == ENOSYS)
		check_skip("this kernel has no io_uring");
	if (r->fd < 0 && errno == EINVAL && flags)
		check_skip("this kernel's io_uring has no such flags");
	NEED(r->fd >= 0);
	r->memory = mmap(NULL, ring_length(r), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
			 IORING_OFF_SQ_RING);
	r->sqe = mmap(NULL, r->p.sq_entries * sqe_size(r), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		      IORING_OFF_SQES);
	NEED(r->memory != MAP_FAILED && (void *)r->sqe != MAP_FAILED);
	for (uint32_t i = 0; i < r->p.sq_entries && !(flags & NO_SQARRAY); i++)
		at(r, r->p.sq_off.array)[i] = i;
}

/* Prepares an entry, which is not submitted yet. */
static struct io_uring_sqe *prepare(struct ring *r, int opcode, uint64_t number)
{
	uint32_t place = r->sq_tail & (r->p.sq_entries - 1);
	struct io_uring_sqe *sqe = (void *)((char *)r->sqe + place * sqe_size(r));

	memset(sqe, 0, sqe_size(r));
	sqe->opcode = opcode;
	sqe->user_data = number;
	__atomic_store_n(at(r, r->p.sq_off.tail), ++r->sq_tail, __ATOMIC_RELEASE);
	return sqe;
}

static int enter(struct ring *r, unsigned int submit, unsigned int wait)
{
	int done = syscall(SYS_io_uring_enter, r->fd, submit, wait, IORING_ENTER_GETEVENTS, NULL, 0);

	return done < 0 ? -errno : done;
}

static int nop(struct ring *r, uint64_t number)
{
	prepare(r, IORING_OP_NOP, number);
	return enter(r, 1, 0);
}

static uint32_t unread(struct ring *r)
{
	return __atomic_load_n(at(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE) - r->cq_head;
}

/* Takes the next completion: its result, or -4095 if it is none, or not that of the number. */
static int take(struct ring *r, uint64_t number)
{
	struct io_uring_cqe *cqe;
	int result;

	if (!unread(r))
		return -4095;
	cqe = (void *)(r->memory + r->p.cq_off.cqes +
		       (r->cq_head & (r->p.cq_entries - 1)) * cqe_size(r));
	result = cqe->user_data == number ? cqe->res : -4095;
	__atomic_store_n(at(r, r->p.cq_off.head), ++r->cq_head, __ATOMIC_RELEASE);
	return result;
}

/* ---- queues ---- */

/* Completions that have not been read, entries that have not been submitted; and it goes on. */
static void queues(void)
{
	make(&ring, flags_of(check_argument), ENTRIES);
	for (uint64_t i = 0; i < 1000; i++) {
		NEED(nop(&ring, i) == 1);
		if (take(&ring, i) == -EINVAL)
			check_skip("this kernel polls for no such requests");
	}
	for (uint64_t i = 0; i < 5; i++)
		NEED(nop(&ring, i) == 1);
	prepare(&ring, IORING_OP_NOP, 5);
	prepare(&ring, IORING_OP_NOP, 6);
	checkpoint_here();
	CHECK(unread(&ring) == 5);
	CHECK(*at(&ring, ring.p.sq_off.head) == 1005 && *at(&ring, ring.p.sq_off.tail) == 1007);
	for (uint64_t i = 0; i < 3; i++)
		CHECK(take(&ring, i) == 0);
	CHECK(enter(&ring, 2, 0) == 2);
	for (uint64_t i = 7; i < 100; i++) {
		CHECK(nop(&ring, i) == 1);
		CHECK(take(&ring, i - 4) == 0);
	}
	CHECK(unread(&ring) == 4);
}

/* ---- full ---- */

/* The completion queue has no free place. */
static void full(void)
{
	uint64_t i;

	make(&ring, flags_of(check_argument), ENTRIES);
	for (i = 0; i < ring.p.cq_entries; i++)
		NEED(nop(&ring, i) == 1);
	checkpoint_here();
	CHECK(unread(&ring) == ring.p.cq_entries && !*at(&ring, ring.p.cq_off.overflow));
	for (i = 0; i < ring.p.cq_entries; i++)
		CHECK(take(&ring, i) == 0);
	CHECK(nop(&ring, 77) == 1 && take(&ring, 77) == 0);
}

/* ---- wait ---- */

static void *wait_for_one(void *arg)
{
	struct ring *r = arg;

	CHECK(enter(r, 0, 1) == 0);
	CHECK(take(r, 4711) == 0);
	return NULL;
}

/* A thread waits for a completion; the request is made afterwards. */
static void wait_thread(void)
{
	pthread_t thread;

	make(&ring, flags_of(check_argument), ENTRIES);
	NEED(nop(&ring, 1) == 1 && take(&ring, 1) == 0);
	NEED(!pthread_create(&thread, NULL, wait_for_one, &ring));
	check_sleep_ms(200);
	checkpoint_here();
	CHECK(nop(&ring, 4711) == 1);
	pthread_join(thread, NULL);
}

/* ---- forked ---- */

/* A child has the ring, too. */
static void forked(void)
{
	pid_t child;
	int status;

	make(&ring, flags_of(check_argument), ENTRIES);
	NEED(nop(&ring, 1) == 1);
	child = fork();
	NEED(child >= 0);
	if (!child) {
		while (!check_gone())
			usleep(10000);
		_exit(take(&ring, 1) == 0 && nop(&ring, 2) == 1 && take(&ring, 2) == 0 ? 0 : 1);
	}
	checkpoint_here();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	ring.sq_tail++;
	ring.cq_head += 2;
	CHECK(nop(&ring, 3) == 1 && take(&ring, 3) == 0);
}

/* ---- several ---- */

#define SEVERAL	5

/* One is not to be inherited, one is closed, one is watched by an epoll and has two numbers. */
static void several(void)
{
	struct ring r[SEVERAL];
	struct epoll_event event = { .events = EPOLLIN }, got;
	int poller = epoll_create1(0), same;

	NEED(poller >= 0);
	for (int i = 0; i < SEVERAL; i++) {
		make(&r[i], flags_of(check_argument), 1 << i);
		for (int k = 0; k < 10 + i; k++)
			NEED(nop(&r[i], k) == 1 && take(&r[i], k) == 0);
	}
	NEED(!madvise(r[1].memory, ring_length(&r[1]), MADV_DONTFORK));
	NEED(!munmap(r[2].memory, ring_length(&r[2])) && !munmap(r[2].sqe, 4 * sqe_size(&r[2])));
	NEED(!close(r[2].fd));
	NEED(!epoll_ctl(poller, EPOLL_CTL_ADD, r[3].fd, &event));
	same = dup(r[3].fd);
	NEED(same >= 0 && epoll_wait(poller, &got, 1, 0) == 0);
	checkpoint_here();
	for (int i = 0; i < SEVERAL; i++)
		if (i != 2)
			CHECK(nop(&r[i], 99) == 1);
	/* Linux 6.1 does not wake others where only one thread submits and runs its own works. */
	if (!(r[3].p.flags & IORING_SETUP_DEFER_TASKRUN))
		CHECK(epoll_wait(poller, &got, 1, 0) == 1);
	r[3].fd = same;
	for (int i = 0; i < SEVERAL; i++)
		if (i != 2)
			CHECK(take(&r[i], 99) == 0 && nop(&r[i], 100) == 1 && take(&r[i], 100) == 0);
}

/* ---- counts: other numbers of completions than of submissions ---- */

static void skip_one(struct ring *r)
{
	prepare(r, IORING_OP_NOP, 0)->flags = IOSQE_CQE_SKIP_SUCCESS;
	NEED(enter(r, 1, 0) == 1);
}

static int drain(struct ring *r)
{
	prepare(r, IORING_OP_NOP, 50)->flags = IOSQE_IO_DRAIN;
	enter(r, 1, 1);
	return take(r, 50);
}

static void fewer(void)
{
	make(&ring, flags_of(check_argument), ENTRIES);
	if (!(ring.p.features & IORING_FEAT_CQE_SKIP))
		check_skip("this kernel has no IOSQE_CQE_SKIP_SUCCESS");
	for (int i = 0; i < 20; i++)
		skip_one(&ring);
	NEED(nop(&ring, 1) == 1 && unread(&ring) == 1);
	checkpoint_here();
	CHECK(take(&ring, 1) == 0);
	CHECK(drain(&ring) == -EOPNOTSUPP);
	CHECK(nop(&ring, 2) == 1 && take(&ring, 2) == 0);
}

/* A poll for many events, which has been cancelled. */
static void more(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct io_uring_sqe *sqe;
	eventfd_t count;

	make(&ring, flags_of(check_argument), ENTRIES);
	sqe = prepare(&ring, IORING_OP_POLL_ADD, 7);
	sqe->fd = fd;
	sqe->len = IORING_POLL_ADD_MULTI;
	sqe->poll32_events = POLLIN;
	NEED(enter(&ring, 1, 0) == 1);
	for (int i = 0; i < 6; i++) {
		NEED(!eventfd_write(fd, 1));
		NEED(enter(&ring, 0, 1) == 0);
		if (take(&ring, 7) != POLLIN)
			check_skip("this kernel has no polls for many events");
		NEED(!eventfd_read(fd, &count));
	}
	sqe = prepare(&ring, IORING_OP_POLL_REMOVE, 8);
	sqe->addr = 7;
	NEED(enter(&ring, 1, 2) == 1);
	while (unread(&ring))
		take(&ring, 8);
	NEED(*at(&ring, ring.p.cq_off.tail) > *at(&ring, ring.p.sq_off.head));
	checkpoint_here();
	CHECK(nop(&ring, 9) == 1 && take(&ring, 9) == 0);
	CHECK(drain(&ring) == 0);
}

/* Entries that the kernel did not find. */
static void dropped(void)
{
	make(&ring, flags_of(check_argument), ENTRIES);
	at(&ring, ring.p.sq_off.array)[3] = 4711;
	for (int i = 0; i < 3; i++)
		NEED(nop(&ring, i) == 1 && take(&ring, i) == 0);
	prepare(&ring, IORING_OP_NOP, 3);
	NEED(enter(&ring, 1, 0) <= 0 && !unread(&ring) && *at(&ring, ring.p.sq_off.dropped) == 1);
	checkpoint_here();
	CHECK(*at(&ring, ring.p.sq_off.dropped) == 1);
	CHECK(nop(&ring, 4) == 1 && take(&ring, 4) == 0);
	CHECK(drain(&ring) == 0);
}

/* ---- workers ---- */

/* Requests that were done by the kernel's workers, which stay for a while. */
static void workers(void)
{
	char path[] = "workers.XXXXXX", text[16] = "";
	int fd = mkstemp(path);
	struct io_uring_sqe *sqe;

	NEED(fd >= 0 && write(fd, "something", 9) == 9);
	make(&ring, flags_of(check_argument), ENTRIES);
	for (int i = 0; i < 6; i++) {
		sqe = prepare(&ring, IORING_OP_READ, i);
		sqe->flags = IOSQE_ASYNC;
		sqe->fd = fd;
		sqe->addr = (uintptr_t)text;
		sqe->len = sizeof(text);
		NEED(enter(&ring, 1, 1) == 1 && take(&ring, i) == 9);
	}
	checkpoint_here();
	CHECK(!strcmp(text, "something"));
	CHECK(nop(&ring, 9) == 1 && take(&ring, 9) == 0);
	unlink(path);
}

/* ---- closed ---- */

/* It has used one, and has none any more. */
static void closed(void)
{
	make(&ring, flags_of(check_argument), ENTRIES);
	NEED(nop(&ring, 1) == 1 && take(&ring, 1) == 0);
	NEED(!munmap(ring.memory, ring_length(&ring)));
	NEED(!munmap(ring.sqe, ring.p.sq_entries * sqe_size(&ring)) && !close(ring.fd));
	checkpoint_here();
}

/* ---- disk ---- */

#define BLOCK	(64u << 10)

/* A read from a slow device is in flight at the checkpoint. */
static void disk(void)
{
	const char *flags = strchr(check_argument, ',');
	char *path = strndup(check_argument, strcspn(check_argument, ","));
	int fd = open(path, O_RDWR | O_DIRECT);
	char *data = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct io_uring_sqe *sqe;

	NEED(fd >= 0 && data != MAP_FAILED);
	check_fill(data, BLOCK, 1);
	NEED(pwrite(fd, data, BLOCK, BLOCK) == BLOCK);
	make(&ring, flags_of(flags ? flags + 1 : NULL), ENTRIES);
	sqe = prepare(&ring, IORING_OP_READ, 6);
	sqe->fd = fd;
	sqe->addr = (uintptr_t)data + BLOCK;
	sqe->len = BLOCK;
	sqe->off = BLOCK;
	NEED(enter(&ring, 1, 0) == 1);
	checkpoint_here();
	CHECK(enter(&ring, 0, 1) == 0);
	CHECK(take(&ring, 6) == BLOCK);
	CHECK(check_filled(data + BLOCK, BLOCK, 1));
	free(path);
}

/* ---- steady ---- */

/* Counts until the file GO exists, by requests that do something: reads of its own output. */
static void steady(void)
{
	uint64_t count = 0, seen;
	struct io_uring_sqe *sqe;
	int pipes[2];

	NEED(!pipe(pipes));
	make(&ring, flags_of(check_argument), ENTRIES);
	check_ready();
	do {
		NEED(write(pipes[1], &count, sizeof(count)) == sizeof(count));
		sqe = prepare(&ring, IORING_OP_READ, count);
		sqe->fd = pipes[0];
		sqe->addr = (uintptr_t)&seen;
		sqe->len = sizeof(seen);
		sqe->off = -1;
		CHECK(enter(&ring, 1, 1) == 1);
		while (!unread(&ring))		/* enter() may end without */
			enter(&ring, 0, 1);
		CHECK(take(&ring, count) == sizeof(seen) && seen == count);
		count++;
		check_sleep_ms(1);
	} while (!check_gone() && !check_failures);
	CHECK(ring.sq_tail == (uint32_t)count && ring.cq_head == (uint32_t)count);
}

/* ---- refused ---- */

static int registers(unsigned int opcode, void *arg, unsigned int count)
{
	int done = syscall(SYS_io_uring_register, ring.fd, opcode, arg, count);

	if (done < 0 && errno == EINVAL)
		check_skip("this kernel registers no such things");
	return done < 0 ? -errno : done;
}

static void poll_for_ever(int fd)
{
	struct io_uring_sqe *sqe = prepare(&ring, IORING_OP_POLL_ADD, 7);

	sqe->fd = fd;
	sqe->poll32_events = POLLIN;
	NEED(enter(&ring, 1, 0) == 1);
}

static void provide(void)
{
	static char memory[4096];
	struct io_uring_sqe *sqe = prepare(&ring, IORING_OP_PROVIDE_BUFFERS, 3);

	sqe->fd = 4;			/* of them */
	sqe->addr = (uintptr_t)memory;
	sqe->len = 1024;
	NEED(enter(&ring, 1, 1) == 1 && take(&ring, 3) >= 0);
}

/* All rings that this thread will make (since Linux 7.0). */
static void restrict_thread(void)
{
	struct {
		uint16_t flags, count;
		uint32_t reserved[3];
		struct io_uring_restriction one;
	} only_nop = {
		.count = 1,
		.one = { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_NOP },
	};

	if (syscall(SYS_io_uring_register, -1, IORING_REGISTER_RESTRICTIONS, &only_nop, 1))
		check_skip("this kernel restricts no threads");
}

static void *make_in_thread(void *arg)
{
	make(&ring, IORING_SETUP_SINGLE_ISSUER, ENTRIES);
	NEED(nop(&ring, 1) == 1);
	while (!check_gone())
		usleep(10000);
	CHECK(nop(&ring, 2) == 1);
	return arg;
}

/* Another thread than the first alone may use it. */
static void in_thread(void)
{
	pthread_t thread;

	NEED(!pthread_create(&thread, NULL, make_in_thread, NULL));
	while (!ring.sq_tail)
		usleep(1000);
	checkpoint_here();
	pthread_join(thread, NULL);
}

static void overflow(void)
{
	for (uint64_t i = 0; i <= ring.p.cq_entries; i++)
		NEED(nop(&ring, i) == 1);
}

/* Each of these stands in the way of a checkpoint, and goes on. */
static void refused(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct iovec buffer = { page, sizeof(page) };
	struct io_uring_rsrc_update own = { .offset = -1U };
	struct __kernel_timespec long_time = { .tv_sec = 1000 };
	int fd = eventfd(0, EFD_CLOEXEC);
	const char *what = check_argument;
	struct io_uring_sqe *sqe;

	if (!strcmp(what, "thread")) {
		in_thread();
		return;
	}
	if (!strcmp(what, "restricted"))
		restrict_thread();
	make(&ring, !strcmp(what, "sqpoll") ? IORING_SETUP_SQPOLL : 0, ENTRIES);
	own.data = ring.fd;
	if (!strcmp(what, "files"))
		NEED(registers(IORING_REGISTER_FILES, &fd, 1) == 0);
	else if (!strcmp(what, "buffers"))
		NEED(registers(IORING_REGISTER_BUFFERS, &buffer, 1) == 0);
	else if (!strcmp(what, "eventfd"))
		NEED(registers(IORING_REGISTER_EVENTFD, &fd, 1) == 0);
	else if (!strcmp(what, "credentials"))
		NEED(registers(IORING_REGISTER_PERSONALITY, NULL, 0) >= 0);
	else if (!strcmp(what, "own"))
		NEED(registers(IORING_REGISTER_RING_FDS, &own, 1) == 1);
	else if (!strcmp(what, "workers"))
		NEED(registers(IORING_REGISTER_IOWQ_MAX_WORKERS, (unsigned int[]){ 3, 3 }, 2) == 0);
	else if (!strcmp(what, "provided"))
		provide();
	else if (!strcmp(what, "overflow"))
		overflow();
	else if (!strcmp(what, "poll"))
		poll_for_ever(fd);
	else if (!strcmp(what, "unmapped"))
		NEED(!close(ring.fd));
	if (!strcmp(what, "timeout")) {
		sqe = prepare(&ring, IORING_OP_TIMEOUT, 9);
		sqe->addr = (uintptr_t)&long_time;
		sqe->len = 1;
		NEED(enter(&ring, 1, 0) == 1);
	}
	checkpoint_here();
	if (!strcmp(what, "poll")) {
		CHECK(!eventfd_write(fd, 1));
		CHECK(enter(&ring, 0, 1) == 0 && take(&ring, 7) == POLLIN);
	}
	if (strcmp(what, "unmapped") && strcmp(what, "sqpoll"))
		CHECK(nop(&ring, 11) == 1);
}

static const struct check checks[] = {
	{ "queues", queues },
	{ "full", full },
	{ "wait", wait_thread },
	{ "forked", forked },
	{ "several", several },
	{ "fewer", fewer },
	{ "more", more },
	{ "dropped", dropped },
	{ "workers", workers },
	{ "closed", closed },
	{ "disk", disk },
	{ "steady", steady },
	{ "refused", refused },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
