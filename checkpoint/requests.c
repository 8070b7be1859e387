// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous requests of the stopped processes.  Those to disks end by themselves: they are
 * waited for, before anything is saved, as they write to memory and move on files.  Those that
 * wait for an event may never end.
 */
#include "checkpoint/internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/clock.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/aio_context.h"

#define WAIT_NS		3000000000ull
#define PAUSE_US	1000

/* A descriptor of an io_uring. */
struct ring {
	pid_t pid;
	int number;
};

struct rings {
	struct ring *at;
	size_t count;
};

/* ---- the io_urings ------------------------------------------------------------------ */

static int add_ring(struct rings *rings, pid_t pid, int number)
{
	struct ring *larger = reallocarray(rings->at, rings->count + 1, sizeof(*larger));

	if (!larger)
		return report_errno(-ENOMEM, "process %d: descriptors", pid);
	rings->at = larger;
	rings->at[rings->count++] = (struct ring){ pid, number };
	return 0;
}

static int find_rings(const struct checkpoint *c, struct rings *rings, pid_t pid)
{
	pid_t thread = scope_thread(&c->attempt.scope, pid);
	DIR *numbers = proc_list(thread, "fd");
	char name[32], link[64];
	int err = 0, number;

	while (!err && (number = proc_next(numbers)) >= 0) {
		snprintf(name, sizeof(name), "fd/%d", number);
		if (proc_link(thread, name, link, sizeof(link)) > 0 &&
		    !strcmp(link, "anon_inode:[io_uring]"))
			err = add_ring(rings, pid, number);
	}
	if (numbers)
		closedir(numbers);
	return err;
}

static int find_all_rings(const struct checkpoint *c, struct rings *rings)
{
	const struct members *m = &c->attempt.members;
	int err = 0;

	for (size_t i = 0; i < m->count && !err; i++)
		if (m->process[i].flags & KCR_PROCESS_IO_URING)
			err = find_rings(c, rings, m->process[i].pid);
	return err;
}

static int refuse_uring(pid_t pid, const char *why)
{
	return report_fail(-EOPNOTSUPP, "process %d has used io_uring, and cannot be checkpointed, as %s: "
			   WITHOUT_IO_URING, pid, why);
}

/* 1: requests are in flight; 0; -errno, reported. */
static int uring_busy(const struct checkpoint *c, const struct rings *rings, pid_t pid)
{
	struct kcr_uring_requests requests = { 0 };
	int err = io_uring_is_counted(c->attempt.job) ? 0 : -EOPNOTSUPP;

	for (size_t i = 0; i < rings->count && !err; i++)
		if (rings->at[i].pid == pid)
			err = device_uring_requests(c->attempt.job, pid, rings->at[i].number, &requests);
	if (!err)
		err = device_uring_requests(c->attempt.job, pid, -1, &requests);
	if (err == -EOPNOTSUPP)
		return refuse_uring(pid, "whether requests are in flight is not known with this kernel "
				    "(it needs CONFIG_DEBUG_INFO_BTF) and module");
	if (err)
		return report_errno(err, "process %d: requests to io_uring", pid);
	if (requests.nr_registered)
		return refuse_uring(pid, "it has registered the descriptor of one "
				    "(IORING_REGISTER_RING_FDS)");
	return requests.in_flight > 0;
}

/* ---- waiting -------------------------------------------------------------------------- */

static int aio_busy(const struct checkpoint *c, pid_t pid)
{
	bool waits;
	int busy = aio_context_busy(c->attempt.job, pid, &waits);

	if (busy > 0 && waits)
		return report_fail(-EOPNOTSUPP, "process %d has asynchronous requests that wait for an "
				   "event (io_submit with IOCB_CMD_POLL), which cannot be saved: let the "
				   "program cancel them", pid);
	return busy;
}

/* A member that has requests in flight; NULL: none has any.  *err: 0 or -errno, reported. */
static const struct kcr_process *find_busy(const struct checkpoint *c, const struct rings *rings,
					   int *err)
{
	const struct members *m = &c->attempt.members;

	for (size_t i = 0; i < m->count; i++) {
		const struct kcr_process *p = &m->process[i];
		int busy = p->flags & KCR_PROCESS_AIO ? aio_busy(c, p->pid) : 0;

		if (!busy && p->flags & KCR_PROCESS_IO_URING)
			busy = uring_busy(c, rings, p->pid);
		*err = busy < 0 ? busy : 0;
		if (busy)
			return p;
	}
	*err = 0;
	return NULL;
}

static int await(const struct checkpoint *c, const struct rings *rings)
{
	uint64_t end = now_ns() + WAIT_NS;
	const struct kcr_process *busy;
	int err;

	if (c->deadline_ns && c->deadline_ns < end)
		end = c->deadline_ns;
	while ((busy = find_busy(c, rings, &err)) && !err && now_ns() < end)
		usleep(PAUSE_US);
	if (err || !busy)
		return err;
	return report_fail(-EBUSY, "process %d has asynchronous requests in flight (%s), which are not "
			   "done even while it stands still: try again later%s", busy->pid,
			   busy->flags & KCR_PROCESS_IO_URING ? "io_uring" : "io_submit",
			   busy->flags & KCR_PROCESS_IO_URING ? "; those that wait for an event (poll, "
			   "receive, time-out …) cannot be saved" : "");
}

int requests_await(struct checkpoint *c)
{
	struct rings rings = { 0 };
	int err = find_all_rings(c, &rings);

	if (!err)
		err = await(c, &rings);
	c->attempt.in_flight = err == -EBUSY;
	free(rings.at);
	return err;
}
