// SPDX-License-Identifier: GPL-2.0
/*
 * The namespaces are made by cr_restart, which stays in its own, and entered by each process
 * that sees other clocks than the one that forked it.  Offsets are those from the machine's
 * clocks: cr_restart may be in a time namespace itself.  See clocks.h.
 */
#include "restart/clocks.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "proc/clock.h"
#include "proc/proc.h"
#include "proc/time_namespace.h"
#include "report/report.h"
#include "resource/identity.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

static struct {
	int *fd;		/* of each of the preamble's clocks */
	size_t count;		/* 0: clocks are not kept */
	size_t here;		/* which this process is in, from 1; 0: cr_restart's */
} namespaces;

/* What the machine's clocks would have to be for offsets of 0. */
static int read_machine(struct time_offsets *now)
{
	struct time_offsets own;
	int err = time_namespace_offsets(PROC_SELF, &own);

	now->monotonic_ns = (int64_t)clock_ns(CLOCK_MONOTONIC) - own.monotonic_ns;
	now->boottime_ns = (int64_t)clock_ns(CLOCK_BOOTTIME) - own.boottime_ns;
	return err;
}

/* All of them, or none. */
static int make_all(const Kcr__Preamble *p)
{
	struct time_offsets now;
	int err = read_machine(&now);

	namespaces.fd = calloc(p->n_clocks, sizeof(*namespaces.fd));
	if (!namespaces.fd)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < p->n_clocks; i++) {
		struct time_offsets offsets = {
			.monotonic_ns = (int64_t)p->clocks[i]->monotonic_ns - now.monotonic_ns,
			.boottime_ns = (int64_t)p->clocks[i]->boottime_ns - now.boottime_ns,
		};
		int fd = time_namespace_make(&offsets);

		if (fd < 0)
			err = fd;
		else
			namespaces.fd[namespaces.count++] = fd;
	}
	if (err)
		clocks_end();
	return err;
}

static int cannot(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return report_fail(-EPERM, "the clocks cannot be kept: that takes CAP_SYS_ADMIN and "
				   "CAP_SYS_TIME; leave --keep-monotonic out");
	case -EINVAL:
	case -ENOSYS:
		return report_fail(-EOPNOTSUPP, "the clocks cannot be kept: this kernel has no time "
				   "namespaces, or cr_restart makes its children in another one");
	default:
		return report_errno(err, "the clocks cannot be kept: making a time namespace");
	}
}

int clocks_make(const struct context *c, enum restart_clocks wish)
{
	const Kcr__Preamble *p = c->preamble;
	int err;

	if (wish == RESTART_CLOCKS_NEW)
		return 0;
	if (!p->n_clocks)
		return wish == RESTART_CLOCKS_AUTO ? 0 :
		       report_fail(-EINVAL, "the clocks cannot be kept: the context file, made by an "
				   "older KCR, does not say what they were");
	/* Whoever sets clocks may renew what has expired, such as the tickets of sudo(8). */
	if (identity_is_privileged() && !identity_may_be_anyone())
		return wish == RESTART_CLOCKS_AUTO ? 0 :
		       report_fail(-EPERM, "the clocks cannot be kept: the image is an ordinary user's, "
				   "who may not set clocks (see --trust)");
	err = make_all(p);
	if (!err)
		return 0;
	if (wish != RESTART_CLOCKS_AUTO)
		return cannot(err);
	report_verbose("the clocks are those of this machine: no time namespace can be made (%d)",
		       -err);
	return 0;
}

int clocks_enter(const Kcr__Process *p)
{
	if (!p->has_clocks || !namespaces.count || p->clocks == namespaces.here)
		return 0;
	if (setns(namespaces.fd[p->clocks - 1], CLONE_NEWTIME))
		return report_errno(-errno, "process %d: cannot enter its time namespace", p->pid);
	namespaces.here = p->clocks;
	return 0;
}

void clocks_end(void)
{
	for (size_t i = 0; i < namespaces.count; i++)
		close(namespaces.fd[i]);
	free(namespaces.fd);
	namespaces.fd = NULL;
	namespaces.count = 0;
}
