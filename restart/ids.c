// SPDX-License-Identifier: GPL-2.0
/* See ids.h. */
#include "restart/ids.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "report/report.h"

static bool is_in_use(pid_t id)
{
	return !kill(id, 0) || errno == EPERM;
}

int ids_check(const struct rebuild *r)
{
	const struct context *c = r->context;

	for (size_t i = 0; r->restore_ids && i < c->nr_processes; i++) {
		const Kcr__Process *p = c->process[i];

		for (size_t t = 0; t < p->n_thread; t++)
			if (is_in_use(p->thread[t]->tid))
				return report_fail(-EBUSY, "process %d cannot be rebuilt: its thread ID %d "
						   "is in use: end that process, or use "
						   "--no-restore-pid", p->pid, p->thread[t]->tid);
	}
	return 0;
}

int ids_refuse(pid_t pid)
{
	return report_fail(-EBUSY, "process ID %d is in use: end that process, or use "
			   "--no-restore-pid", pid);
}

static int await_one(pid_t pid)
{
	for (int tries = 0; is_in_use(pid); tries++) {
		if (tries == IDS_TRIES)
			return ids_refuse(pid);
		usleep(IDS_WAIT_US);
	}
	return 0;
}

int ids_await(const struct rebuild *r)
{
	const struct context *c = r->context;
	int err = 0;

	for (size_t i = 0; r->restore_ids && !err && i < c->nr_processes; i++) {
		pid_t pid = c->process[i]->pid;

		if (pid != 1 && pid != getpid())
			err = await_one(pid);
	}
	return err;
}
