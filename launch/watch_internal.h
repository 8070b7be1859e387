/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of cr_mpirun's main loop (watch.h) share. */
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

#define MS		1000000ull	/* ns */
#define WATCH_DOUBT_NS	(200 * MS)	/* the launcher's own death is known by then */

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
	bool told;			/* why the job ends */
	bool unable;			/* all ranks run, and those not known by now have no daemon */
	char untold[160];		/* the first failure of which the launcher is to tell */
	uint64_t untold_ns;		/* when that was; 0: there was none */
	uint64_t allowed_ns;		/* since when ranks are ended as the launcher wants it; 0: not */
	uint64_t ready_ns;		/* since when all ranks have been through MPI_Init; 0: not yet */
	uint64_t alone_ns;		/* since when the launcher is known to be dead */
	uint64_t doubt_ns;		/* when a report of such a death is believed; 0: there is none */
	bool deserted;			/* by a daemon of the launcher, ranks that had not ended */
	const char *doubted;		/* what has died then */
	uint64_t kill_ns;		/* when all that is left is killed; 0: not */
	uint64_t pass_ns;		/* when the launcher is killed, if it may still have output; 0: not */
	bool flushes;			/* all has ended without the launcher: daemons are asked for what is left */
	unsigned int kills;		/* how often that was done, and waited for in vain */
	bool stops;			/* it has been told to, and waits for the launcher to stop first */
	uint64_t stop_ns;		/* when this process stops; 0: not */
	uint64_t start_ns;		/* when the ranks that are missing are given up; 0: not */
	uint64_t behind_ns;		/* when a rank that does not read its input is named; 0: none */
	bool behind_told;
	int sent;			/* the signal that ranks got when they were saved last; 0: none */
};

/* ---- watch.c ---- */

/* To the keepers, for each of their ranks. */
void watch_tell_all(struct watch *w, enum rank_message_type type, int value);

/* ---- watch_messages.c ---- */

/* Those that have arrived. */
void watch_hear_all(struct watch *w);
/* Of them only what the user is to be told, as the job is over.  False: there will be no more. */
bool watch_hear_last(struct watch *w);
/* What the launcher wants to be done to ranks is done, unless it may be dead. */
void watch_allow_asked(struct watch *w, uint64_t time);

/* ---- watch_failures.c ---- */

/* Why the job ends: `text`, then `end`.  Only the first time. */
void watch_say(struct watch *w, const char *text, const char *end);
/* Of this failure the launcher is to tell, if it lives. */
void watch_leave_to_launcher(struct watch *w, const char *text);
/* A rank, or the launcher, ends the job. */
void watch_fail(struct watch *w);
/* By us, as there is no launcher that would do it. */
void watch_end_job(struct watch *w);
/* All that is left, at once; and again, until the daemons say that nothing is. */
void watch_kill_rest(struct watch *w);
/* If it has not ended: it had time to pass on the ranks' last output. */
void watch_kill_launcher(struct watch *w);
/* Once all ranks have ended without the launcher: what they have written is still to come. */
void watch_expect_end(struct watch *w);
/* Names the nodes that have not said that there is nothing more. */
void watch_tell_late(struct watch *w);
/* Has it been enough?  Where ranks still run that are to begin again, they may do so beside themselves. */
bool watch_gives_up(const struct watch *w);
/* The job goes on without nodes that have not answered by then. */
void watch_leave_late(struct watch *w);
/* Are ranks that were there before not back yet?  If they are to begin again, only their start counts. */
bool watch_is_restarting(const struct watch *w);
/* Do ranks run that will never be known here, nor end when this process wants it? */
bool watch_lacks_ranks(const struct watch *w);
/* A failure that `text` names: is the job to go back to its newest snapshot? */
bool watch_recover(struct watch *w, const char *text);
/* A rank has ended with this status, not 0. */
void watch_rank_failed(struct watch *w, struct rank *one, uint32_t number, int status);
/* `part` of the launcher seems to have died; what ranks are to do then is known a moment later. */
void watch_doubt(struct watch *w, const char *part);
/* It has. */
void watch_go_on_alone(struct watch *w, const char *part);
void watch_launcher_ended(struct watch *w);
/* The launcher, if it does not know that all ranks have ended. */
void watch_end_launcher(struct watch *w);
/* There is progress in starting or restoring ranks, or there could not be any until now. */
void watch_expect_ranks(struct watch *w);
/* At start_ns: the launcher hangs, perhaps because of another failure meanwhile. */
void watch_give_up_start(struct watch *w);
/* A signal ends the job: a launcher that hangs does not end by it. */
void watch_end_start(struct watch *w);
/* The job's status, once all is over; recovery->due: it goes on. */
int watch_judge(struct watch *w);

/* ---- watch_signals.c ---- */

/* Sent to this process, it is to end the job. */
bool watch_is_deadly(int number);
/* Does what those that have come demand. */
void watch_take_signals(struct watch *w);
/* At stop_ns: until this process is continued. */
void watch_stop(struct watch *w);

#endif /* LAUNCH_WATCH_INTERNAL_H */
