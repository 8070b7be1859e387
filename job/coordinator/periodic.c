// SPDX-License-Identifier: GPL-2.0
/* Checkpoints at regular intervals, from when all ranks have been through MPI_Init. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/root_internal.h"
#include "job/optimum.h"
#include "proc/clock.h"

#define SECOND		1000000000ull
#define MS		1000000ull
#define GUESSED_NS	(60 * SECOND)	/* where the cost is not known yet: this, or less */
#define GUESSED_PART	20		/* of the mean time to failure */
#define RETRY_NS	(5 * SECOND)	/* when the job was busy */
#define FAILED_NS	(60 * SECOND)	/* when it could not begin, or the interval, if that is shorter */

static uint64_t next_ns;		/* 0: never */
static bool begun;			/* the checkpoint under way is ours */

static uint64_t guessed_interval(const struct root *root)
{
	uint64_t part = root->settings.mttf_ns / GUESSED_PART;

	return part < GUESSED_NS ? part : GUESSED_NS;
}

/*
 * A checkpoint costs the time for which the job stood still; but what is written behind it
 * takes the disk from others, so there is as long without as with.
 */
static uint64_t best_interval(const struct root *root)
{
	uint64_t stopped_ns = root->answer.stopped_ms * MS, all_ns = now_ns() - root->begun_ns;
	uint64_t best = optimum_interval(stopped_ns ? stopped_ns : 1, root->settings.mttf_ns);

	return best > 2 * all_ns ? best : 2 * all_ns;
}

static uint64_t failed_interval(const struct root *root)
{
	uint64_t interval = root->settings.interval_ns ?: guessed_interval(root);

	return interval < FAILED_NS ? interval : FAILED_NS;
}

static char *told;			/* why it failed last */

/* The same reason only once in a row. */
static void tell(const char *why)
{
	if (told && !strcmp(told, why))
		return;
	free(told);
	told = strdup(why);
	say_line("not saved: %s", why);
}

void periodic_begin(const struct root *root)
{
	if (next_ns)
		return;
	if (root->settings.interval_ns)
		next_ns = now_ns() + root->settings.interval_ns;
	else if (root->settings.mttf_ns)
		next_ns = now_ns() + guessed_interval(root);
}

int periodic_patience(const struct root *root)
{
	if (!next_ns || root->phase != PHASE_IDLE)
		return -1;
	return ms_until(next_ns);
}

void periodic_serve(struct root *root)
{
	const char *why = NULL;
	int err;

	if (!next_ns || root->phase != PHASE_IDLE || now_ns() < next_ns)
		return;
	err = phases_begin_own(root, root->settings.path, root->settings.keep, &why);
	begun = !err;
	if (!err)
		return;
	next_ns = now_ns() + (err == -EBUSY ? RETRY_NS : failed_interval(root));
	if (err == -ESRCH)
		next_ns = 0;		/* it is ending */
	if (err != -EBUSY && err != -ESRCH)
		tell(why ? why : strerror(-err));
}

void periodic_answer(const struct root *root)
{
	bool ours = begun;

	begun = false;
	if (ours && !root->answer.code) {
		free(told);
		told = NULL;
	}
	if (ours && root->answer.code && root->answer.code != ECANCELED)	/* the job's end */
		tell(root->answer.message ?: strerror(root->answer.code));
	if (!next_ns)
		return;
	if (root->settings.interval_ns)
		next_ns = now_ns() + root->settings.interval_ns;
	else
		next_ns = now_ns() + (root->answer.code ? guessed_interval(root) :
						     best_interval(root));
}
