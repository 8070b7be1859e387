// SPDX-License-Identifier: GPL-2.0
/*
 * A program counts what it has submitted and read, modulo 2^32, and so does the kernel, from 0
 * on.  So a new ring gets as many submissions and completions as the old one had.  These do
 * nothing; what they leave in the ring's memory is overwritten by what was there.
 *
 * Mostly there is one completion for each submission.  Submissions without any are those that
 * succeed with IOSQE_CQE_SKIP_SUCCESS, and invalid entries, which the kernel drops.  Completions
 * without a submission come from another ring, by messages.
 */
#include "resource/io_uring.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELPER_ENTRIES	64u

struct errand {
	struct uring *u;
	int (*step)(struct uring *u, const void *arg);
	const void *arg;
	int result;
};

static void *run(void *errand)
{
	struct errand *e = errand;

	e->result = e->step(e->u, e->arg);
	return NULL;
}

int uring_apart(struct uring *u, int (*step)(struct uring *u, const void *arg), const void *arg)
{
	struct errand errand = { .u = u, .step = step, .arg = arg };
	pthread_t thread;
	int err = pthread_create(&thread, NULL, run, &errand);

	if (err)
		return -err;
	pthread_join(thread, NULL);
	return errand.result;
}

static uint32_t last_op(const struct uring *u)
{
	struct io_uring_probe probe = { 0 };

	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_PROBE, &probe, 0) ?
		0 : probe.last_op;
}

int uring_make(struct uring *u, uint32_t flags, uint32_t sq_entries, uint32_t cq_entries)
{
	*u = (struct uring){ .made = { .flags = flags, .cq_entries = cq_entries } };
	if (!(flags & IORING_SETUP_CQSIZE))
		u->made.cq_entries = 0;
	u->fd = (int)syscall(SYS_io_uring_setup, sq_entries, &u->made);
	if (u->fd < 0)
		return -errno;
	u->last_op = last_op(u);
	if (u->made.sq_entries == sq_entries && u->made.cq_entries == cq_entries)
		return 0;
	uring_drop(u);
	return -EOPNOTSUPP;
}

static size_t whole_pages(size_t length)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (length + page - 1) & ~(page - 1);
}

static char *map(int fd, size_t length, off_t offset)
{
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

int uring_map(struct uring *u)
{
	const struct io_uring_params *p = &u->made;
	size_t cqe = sizeof(struct io_uring_cqe) << !!(p->flags & IORING_SETUP_CQE32);
	size_t sqe = sizeof(struct io_uring_sqe) << !!(p->flags & IORING_SETUP_SQE128);
	size_t length = p->cq_off.cqes + p->cq_entries * cqe;

	if (!(p->flags & URING_NO_SQARRAY) &&
	    length < p->sq_off.array + p->sq_entries * sizeof(uint32_t))
		length = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	u->rings_length = whole_pages(length);
	u->sqes_length = whole_pages(p->sq_entries * sqe);
	u->rings = map(u->fd, u->rings_length, IORING_OFF_SQ_RING);
	u->sqes = u->rings ? map(u->fd, u->sqes_length, IORING_OFF_SQES) : NULL;
	return u->sqes ? 0 : -errno;
}

void uring_unmap(struct uring *u)
{
	if (u->sqes)
		munmap(u->sqes, u->sqes_length);
	if (u->rings)
		munmap(u->rings, u->rings_length);
	u->sqes = u->rings = NULL;
}

void uring_drop(struct uring *u)
{
	uring_unmap(u);
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
}

int uring_enter(const struct uring *u, unsigned int to_submit, unsigned int flags)
{
	int done = (int)syscall(SYS_io_uring_enter, u->fd, to_submit, 0, flags, NULL, 0);

	return done < 0 ? -errno : done;
}

int uring_enable(const struct uring *u)
{
	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) ?
		-errno : 0;
}

/* ---- submissions that do nothing ----------------------------------------------------- */

/* All entries become this one; `dropped`: the kernel finds none where it looks for them. */
static void fill(const struct uring *u, const struct io_uring_sqe *sqe, bool dropped)
{
	size_t size = sizeof(*sqe) << !!(u->made.flags & IORING_SETUP_SQE128);

	for (uint32_t i = 0; i < u->made.sq_entries; i++) {
		*(struct io_uring_sqe *)(u->sqes + i * size) = *sqe;
		if (!(u->made.flags & URING_NO_SQARRAY))
			uring_set(u, u->made.sq_off.array + i * sizeof(uint32_t),
				  dropped ? UINT32_MAX : i);
	}
}

/* Submits `count` times this entry, and reads what completions there are. */
static int submit(const struct uring *u, const struct io_uring_sqe *sqe, uint32_t count,
		  bool dropped)
{
	const struct io_uring_params *p = &u->made;
	uint32_t most = p->sq_entries < p->cq_entries ? p->sq_entries : p->cq_entries;

	fill(u, sqe, dropped);
	while (count) {
		uint32_t head = uring_get(u, p->sq_off.head), n = count < most ? count : most, taken;
		int err;

		uring_set(u, p->sq_off.tail, head + n);
		err = uring_enter(u, n, IORING_ENTER_GETEVENTS);
		taken = uring_get(u, p->sq_off.head) - head;
		uring_set(u, p->sq_off.tail, head + taken);
		uring_set(u, p->cq_off.head, uring_get(u, p->cq_off.tail));
		if (!taken)
			return err < 0 ? err : -EPROTO;
		count -= taken;
	}
	return 0;
}

static int submit_skipping(const struct uring *u, uint32_t count)
{
	const struct io_uring_sqe nop = {
		.opcode = IORING_OP_NOP, .flags = IOSQE_CQE_SKIP_SUCCESS,
	};

	return u->made.features & IORING_FEAT_CQE_SKIP ? submit(u, &nop, count, false) : -EOPNOTSUPP;
}

static int submit_dropped(const struct uring *u, uint32_t count)
{
	const struct io_uring_sqe nop = { .opcode = IORING_OP_NOP };

	return u->made.flags & URING_NO_SQARRAY ? -EOPNOTSUPP : submit(u, &nop, count, true);
}

/* It fails, as fsync(2) takes no address: so there is a completion. */
int uring_disable_drain(const struct uring *u)
{
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_FSYNC, .flags = IOSQE_CQE_SKIP_SUCCESS, .addr = 1,
	};

	return u->made.features & IORING_FEAT_CQE_SKIP ? submit(u, &sqe, 1, false) : -EOPNOTSUPP;
}

/* Has another ring post completions to this one. */
static int post(const struct uring *u, uint32_t count)
{
	const struct io_uring_sqe message = { .opcode = IORING_OP_MSG_RING, .fd = u->fd };
	struct uring helper;
	int err = uring_make(&helper, 0, HELPER_ENTRIES, 2 * HELPER_ENTRIES);

	if (err)
		return err;
	if (helper.last_op < IORING_OP_MSG_RING)
		err = -EOPNOTSUPP;
	if (!err)
		err = uring_map(&helper);
	while (!err && count) {
		uint32_t n = count < HELPER_ENTRIES ? count : HELPER_ENTRIES;

		n = n < u->made.cq_entries ? n : u->made.cq_entries;
		err = submit(&helper, &message, n, false);
		if (!err)	/* with IORING_SETUP_DEFER_TASKRUN they are posted only now */
			err = uring_enter(u, 0, IORING_ENTER_GETEVENTS);
		uring_set(u, u->made.cq_off.head, uring_get(u, u->made.cq_off.tail));
		count -= n;
	}
	uring_drop(&helper);
	return err;
}

int uring_advance(const struct uring *u, uint32_t head, uint32_t tail, bool drain_disabled)
{
	const struct io_uring_sqe nop = { .opcode = IORING_OP_NOP };
	uint32_t both, more = tail - head;	/* completions */
	bool fewer = more > INT32_MAX;
	int err = 0;

	both = fewer ? tail : head;
	if (drain_disabled && both) {
		err = uring_disable_drain(u);
		both--;
	}
	if (!err)
		err = submit(u, &nop, both, false);
	if (!err && fewer)
		err = drain_disabled ? submit_skipping(u, -more) : submit_dropped(u, -more);
	else if (!err && more)
		err = post(u, more);
	if (!err && (uring_get(u, u->made.sq_off.head) != head ||
		     uring_get(u, u->made.cq_off.tail) != tail))
		err = -EPROTO;
	return err;
}
