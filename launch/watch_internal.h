/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of cr_mpirun's main loop (watch.h) share: watch.c, watch_signals.c. */
#ifndef LAUNCH_WATCH_INTERNAL_H
#define LAUNCH_WATCH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "job/coordinator/wire.h"
#include "launch/daemons.h"
#include "launch/feed.h"
#include "launch/launcher.h"
#include "launch/rank_message.h"
#include "launch/ranks.h"
#include "launch/recovery.h"
#include "launch/show.h"

#define MS	1000000ull		/* ns */

struct watch {
	struct launcher launcher;
	struct wire wire;
	struct ranks ranks;
	struct daemons daemons;
	struct feed feed;
	struct show show;
	struct recovery *recovery;
	int signals;
	bool alone;			/* the launcher, or one of its daemons, has died */
	bool ends;			/* the job is to end, whatever happens */
	bool fails;			/* it ends by itself: what lies behind that may not be known yet */
	bool asked;			/* by a signal to this process */
	bool ready;			/* all ranks have been through MPI_Init */
	uint64_t alone_ns;		/* since when the launcher is known to be dead */
	uint64_t doubt_ns;		/* when a report of such a death is believed; 0: there is none */
	const char *doubted;		/* what has died then */
	uint64_t kill_ns;		/* when all that is left is killed; 0: not */
	unsigned int kills;		/* how often that was done */
	bool stops;			/* it has been told to, and waits for the launcher to stop first */
	uint64_t stop_ns;		/* when this process stops; 0: not */
	uint64_t start_ns;		/* when the ranks that are missing are given up; 0: not */
	int sent;			/* the signal that ranks got when they were saved last; 0: none */
};

/* ---- watch.c ---- */

/* To the keepers, for each of their ranks. */
void watch_tell_all(struct watch *w, enum rank_message_type type, int value);
/* By us, as there is no launcher that would do it. */
void watch_end_job(struct watch *w);
void watch_launcher_ended(struct watch *w);
/* There is progress in starting ranks, or there could not be any until now. */
void watch_expect_ranks(struct watch *w);

/* ---- watch_signals.c ---- */

/* Sent to this process, it is to end the job. */
bool watch_is_deadly(int number);
/* Does what those that have come demand. */
void watch_take_signals(struct watch *w);
/* At stop_ns: until this process is continued. */
void watch_stop(struct watch *w);

#endif /* LAUNCH_WATCH_INTERNAL_H */
