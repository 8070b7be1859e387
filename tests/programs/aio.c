// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts of io_setup(2).  Requests that end at once are reads of no bytes from /dev/null;
 * each has a number, by which its event is known.
 */
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define FULL	4096

struct ring {
	uint32_t id, nr, head, tail;
};

static int null = -1;

static aio_context_t setup(unsigned int count)
{
	aio_context_t id = 0;

	if (access("/sys/kernel/btf/vmlinux", F_OK) && !getenv("KCR_TEST_ANY_KERNEL"))
		check_skip("this kernel has no BTF");
	if (syscall(SYS_io_setup, count, &id) && errno == ENOSYS)
		check_skip("this kernel has no io_setup");
	NEED(id);
	if (null < 0)
		null = open("/dev/null", O_RDONLY);
	NEED(null >= 0);
	return id;
}

static volatile struct ring *ring_of(aio_context_t id)
{
	return (volatile struct ring *)(uintptr_t)id;
}

static long submit(aio_context_t id, struct iocb *request)
{
	long done = syscall(SYS_io_submit, id, 1, &request);

	return done < 0 ? -errno : done;
}

/* One request that is done when this returns. */
static long request(aio_context_t id, uint64_t number, int event_fd)
{
	struct iocb read = {
		.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = null, .aio_data = number,
		.aio_flags = event_fd < 0 ? 0 : IOCB_FLAG_RESFD, .aio_resfd = event_fd,
	};

	return submit(id, &read);
}

/* Takes at most `count` events, which are numbered from `first` on: how many there were. */
static long take(aio_context_t id, long count, uint64_t first)
{
	static struct io_event event[FULL];
	struct timespec now = { 0, 0 };
	long got = syscall(SYS_io_getevents, id, 0, count, event, &now);

	for (long i = 0; i < got; i++)
		if (event[i].data != first + i || event[i].res)
			return -1;
	return got;
}

/* ---- events ---- */

/* Some have been taken, some not; and it goes on. */
static void events(void)
{
	aio_context_t id = setup(32);
	struct ring before;

	for (uint64_t i = 0; i < 12; i++)
		NEED(request(id, i, -1) == 1);
	NEED(take(id, 7, 0) == 7);
	before = *(struct ring *)ring_of(id);
	checkpoint_here();
	CHECK(ring_of(id)->head == before.head && ring_of(id)->tail == before.tail &&
	      ring_of(id)->nr == before.nr);
	for (uint64_t i = 12; i < 20; i++)
		CHECK(request(id, i, -1) == 1);
	CHECK(take(id, FULL, 7) == 13);
	CHECK(take(id, FULL, 0) == 0);
	CHECK(!syscall(SYS_io_destroy, id));
}

/* ---- wrapped ---- */

/* The events begin at the end of the ring and go on at its beginning. */
static void wrapped(void)
{
	aio_context_t id = setup(8);
	uint64_t nr = ring_of(id)->nr, i, taken = 0;

	for (i = 0; i < 3 * nr - 2; i++) {
		NEED(request(id, i, -1) == 1);
		NEED(take(id, 1, taken) == 1);
		taken++;
	}
	for (; i < 3 * nr + 5; i++)
		NEED(request(id, i, -1) == 1);
	NEED(ring_of(id)->tail < ring_of(id)->head);
	checkpoint_here();
	CHECK(take(id, FULL, taken) == 7);
	for (; i < 7 * nr; i++) {
		CHECK(request(id, i, -1) == 1);
		CHECK(take(id, 1, i) == 1);
	}
}

/* ---- full ---- */

/* The kernel keeps free places for each processor, which count on that one alone. */
static void stay_on_one_processor(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	NEED(!sched_setaffinity(0, sizeof(one), &one));
}

/* No more requests are taken until events are: as many as there were. */
static void full(void)
{
	aio_context_t id = setup(8);
	uint64_t count = 0, again = 0;

	stay_on_one_processor();
	while (request(id, count, -1) == 1)
		count++;
	NEED(request(id, count, -1) == -EAGAIN);
	checkpoint_here();
	CHECK(request(id, count, -1) == -EAGAIN);
	CHECK(take(id, 3, 0) == 3);
	CHECK(take(id, FULL, 3) == (long)count - 3);
	while (again < count && request(id, again, -1) == 1)
		again++;
	CHECK(again == count);
	CHECK(take(id, FULL, 0) == (long)count);
}

/* ---- several ---- */

#define SEVERAL	6

/* Of different sizes, one of which is gone again; a ring was moved, and never to be inherited. */
static void several(void)
{
	static const unsigned int size[SEVERAL] = { 1, 900, 64, 2000, 8, 300 };
	aio_context_t id[SEVERAL];
	size_t length;
	void *place;

	for (int i = 0; i < SEVERAL; i++) {
		id[i] = setup(size[i]);
		for (uint64_t k = 0; k < 3u + i; k++)
			NEED(request(id[i], k, -1) == 1);
	}
	NEED(!syscall(SYS_io_destroy, id[2]));
	length = (ring_of(id[5])->nr + 1) * sizeof(struct io_event);
	place = mmap(NULL, length + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(place != MAP_FAILED);
	place = (char *)place + 4096;
	NEED(mremap((void *)(uintptr_t)id[5], length, length, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
	     place);
	id[5] = (uintptr_t)place;
	NEED(!madvise(place, length, MADV_DONTFORK));
	checkpoint_here();
	for (int i = 0; i < SEVERAL; i++) {
		if (i == 2)
			continue;
		CHECK(request(id[i], 3 + i, -1) == 1);
		CHECK(take(id[i], FULL, 0) == 4 + i);
	}
	CHECK(request(id[2], 0, -1) == -EINVAL);
}

/* ---- threads ---- */

static struct io_event seen;

static void *wait_for_event(void *context)
{
	aio_context_t id = (uintptr_t)context;

	CHECK(syscall(SYS_io_getevents, id, 1, 1, &seen, NULL) == 1);
	return NULL;
}

/* One waits for an event, whose request is made afterwards; the eventfd counts it. */
static void threads(void)
{
	aio_context_t id = setup(16);
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_t thread;
	eventfd_t count;

	NEED(fd >= 0 && request(id, 1, fd) == 1 && take(id, 1, 1) == 1);
	NEED(!pthread_create(&thread, NULL, wait_for_event, (void *)(uintptr_t)id));
	check_sleep_ms(100);
	checkpoint_here();
	CHECK(!seen.data);
	CHECK(request(id, 4711, fd) == 1);
	pthread_join(thread, NULL);
	CHECK(seen.data == 4711);
	CHECK(!eventfd_read(fd, &count) && count == 2);
}

/* ---- waiting ---- */

/* A request that waits for an event: it is refused.  With the argument `ends`, it has ended. */
static void waiting(void)
{
	aio_context_t id = setup(4);
	int fd = eventfd(0, EFD_CLOEXEC);
	struct iocb poll = {
		.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = fd, .aio_buf = POLLIN, .aio_data = 5,
	};
	struct io_event event = { 0 };

	NEED(fd >= 0 && submit(id, &poll) == 1);
	if (check_argument)
		NEED(!eventfd_write(fd, 1));
	checkpoint_here();
	CHECK(!eventfd_write(fd, 1));
	CHECK(syscall(SYS_io_getevents, id, 1, 1, &event, NULL) == 1);
	CHECK(event.data == 5 && event.res == POLLIN);
}

/* ---- disk ---- */

#define BLOCK	(64u << 10)

/*
 * The argument is a slow device: a request to it is in flight at the checkpoint, and its data
 * and event are there afterwards.
 */
static void disk(void)
{
	aio_context_t id = setup(4);
	int fd = open(check_argument, O_RDWR | O_DIRECT);
	char *data = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iocb read = {
		.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_data = 6,
		.aio_buf = (uintptr_t)data + BLOCK, .aio_nbytes = BLOCK, .aio_offset = BLOCK,
	};
	struct timespec limit = { 30, 0 };
	struct io_event event = { 0 };

	NEED(fd >= 0 && data != MAP_FAILED);
	check_fill(data, BLOCK, 1);
	NEED(pwrite(fd, data, BLOCK, BLOCK) == BLOCK);
	NEED(submit(id, &read) == 1);
	checkpoint_here();
	CHECK(syscall(SYS_io_getevents, id, 1, 1, &event, &limit) == 1);
	CHECK(event.data == 6 && event.res == BLOCK);
	CHECK(check_filled(data + BLOCK, BLOCK, 1));
}

/* ---- inherited ---- */

/* A child has the mapping, not the context. */
static void inherited(void)
{
	aio_context_t id = setup(4);
	pid_t child = fork();
	int status;

	NEED(child >= 0);
	if (!child) {
		while (!check_gone())
			usleep(10000);
		_exit(request(id, 0, -1) == -EINVAL ? 0 : 1);
	}
	checkpoint_here();
	CHECK(request(id, 0, -1) == 1 && take(id, 1, 0) == 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- scribbled ---- */

/* It has written to what only the kernel should write to. */
static void scribbled(void)
{
	aio_context_t id = setup(4);

	NEED(request(id, 0, -1) == 1);
	ring_of(id)->tail = 3;
	checkpoint_here();
}

static const struct check checks[] = {
	{ "events", events },
	{ "wrapped", wrapped },
	{ "full", full },
	{ "several", several },
	{ "threads", threads },
	{ "waiting", waiting },
	{ "disk", disk },
	{ "inherited", inherited },
	{ "scribbled", scribbled },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
