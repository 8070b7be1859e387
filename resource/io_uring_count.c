// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to io_urings that are in flight, as the module counts them: is it so on this kernel?
 * Tried out with one that waits until we let it go.
 */
#include "resource/io_uring.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/device.h"
#include "resource/resource.h"

#define ENTRIES		4u

static bool in_flight(int job, uint64_t expected)
{
	struct kcr_uring_requests requests;

	return !device_uring_requests(job, 0, -1, &requests) && requests.in_flight == expected;
}

/* A descriptor that is registered must be seen, where there are such ones (since Linux 5.18). */
static bool try_registered(const struct uring *u, int job)
{
	struct io_uring_rsrc_update own = { .offset = UINT32_MAX, .data = (uint32_t)u->fd };
	struct kcr_uring_requests requests;
	long done = syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_RING_FDS, &own, 1);

	return done != 1 || (!device_uring_requests(job, 0, -1, &requests) &&
			     requests.nr_registered == 1);
}

static bool try_request(const struct uring *u, int job, int event)
{
	struct io_uring_sqe *sqe = (struct io_uring_sqe *)u->sqes;

	sqe->opcode = IORING_OP_POLL_ADD;
	sqe->fd = event;
	sqe->poll_events = POLLIN;
	uring_set(u, u->made.sq_off.array, 0);
	uring_set(u, u->made.sq_off.tail, 1);
	if (!in_flight(job, 0) || uring_enter(u, 1, 0) != 1 || !in_flight(job, 1))
		return false;
	return !eventfd_write(event, 1) && !uring_enter(u, 0, IORING_ENTER_GETEVENTS) &&
	       uring_get(u, u->made.cq_off.tail) == 1 && in_flight(job, 0);
}

static int try_here(struct uring *u, const void *job)
{
	int event = eventfd(0, EFD_CLOEXEC);
	bool works = event >= 0 && !uring_make(u, 0, ENTRIES, 2 * ENTRIES) && !uring_map(u) &&
		     try_request(u, *(const int *)job, event) &&
		     try_registered(u, *(const int *)job);

	if (event >= 0)
		close(event);
	return works;
}

bool io_uring_is_counted(int job)
{
	static int works = -1;
	struct uring u = { .fd = -1 };

	if (works < 0) {
		works = uring_apart(&u, try_here, &job) == 1;
		uring_drop(&u);
	}
	return works;
}
