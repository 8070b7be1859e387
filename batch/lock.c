// SPDX-License-Identifier: GPL-2.0
/*
 * The lock of the job, which a run may have to wait for: a file server keeps those of a machine
 * that is down for a while, and Grid Engine begins a run (qmod -rj) while the one before is still
 * being saved.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "batch/log.h"
#include "batch/run.h"
#include "proc/clock.h"
#include "report/report.h"
#include "util/follow.h"

#define SECOND		1000000000ull
#define AT_ONCE_S	1		/* a cr_batch --status has the lock for a moment */
#define PATIENCE_S	180		/* twice NFSv4's lease */

/* Does the state name a run on another machine, or before this one was booted? */
static bool was_elsewhere(const struct folder *f)
{
	struct state s;
	bool elsewhere = !state_load(&s, f, f->name) && state_leader_elsewhere(&s);

	state_free(&s);
	return elsewhere;
}

/* Why it is worth to wait for whoever has the lock; NULL: it is not. */
static const char *reason_to_wait(const struct run *r)
{
	const struct scheduler *s = r->options->scheduler;

	if (s && s->overlaps)
		return "perhaps by the run before, which is still being saved";
	if (was_elsewhere(&r->folder))
		return "perhaps by a machine that is down, whose locks a file server keeps for a while";
	return NULL;
}

/* -EINTR: a warning came before the lock. */
static int wait_for_lock(struct run *r)
{
	uint64_t end = now_ns() + PATIENCE_S * SECOND;
	siginfo_t info;
	int err;

	do {
		report_clear();
		if (follow_wait(&info, SECOND / 2) && run_ends_waiting(r, info.si_signo)) {
			log_event(LOG_NOTICE, "SIG%s before the lock: the checkpoints stay for the next "
				  "run", sigabbrev_np(info.si_signo));
			r->warning = info.si_signo;
			return -EINTR;
		}
		err = folder_lock(&r->folder, 0);
	} while (err == -EBUSY && now_ns() < end);
	return err;
}

/* The log is not open yet: it is that of the process which has the lock. */
int run_lock(struct run *r)
{
	int err = folder_lock(&r->folder, AT_ONCE_S);
	const char *reason = err == -EBUSY ? reason_to_wait(r) : NULL;

	if (reason) {
		log_event(LOG_FAILURE, "the job %s is locked, %s: waiting for %d s at most",
			  r->folder.name, reason, PATIENCE_S);
		err = wait_for_lock(r);
	}
	if (err != -ENOLCK)
		return err;
	log_event(LOG_FAILURE, "warning: %s", report_message());
	report_clear();
	return 0;
}
