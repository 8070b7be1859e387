// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of the job when a rank, a node or the launcher fails: it goes on, goes back to
 * its newest snapshot, or ends, and with which status.  See watch.h.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "job/relaunch.h"
#include "launch/settings.h"
#include "launch/watch_internal.h"
#include "proc/clock.h"

#define TERM_NS		(2000 * MS)		/* from SIGTERM to SIGKILL */
#define CASUALTY_NS	(10000 * MS)		/* for ranks in MPI_Init after their launcher's death */
#define LOST		205			/* status of mpirun 4.1 that has lost a daemon */
#define LATE_NS		(5000 * MS)		/* for ranks after their launcher's end */
#define OUTPUT_NS	(60000 * MS)		/* for the last output of ranks that have ended well */
#define PASS_NS		(2000 * MS)		/* for a launcher that has some of it */
#define INIT_NS		(1000 * MS)		/* in which such an error may end a rank that has just been there */
#define BEFORE_NS	(2000 * MS)		/* in which a launcher's death is heard of after its effects */

/* ---- what the user is told ----------------------------------------------------------------- */

void watch_say(struct watch *w, const char *text, const char *end)
{
	if (!w->told && !w->recovery->due)
		show_say(&w->show, "%s%s", text, end);
	w->told = true;
}

void watch_leave_to_launcher(struct watch *w, const char *text)
{
	if (w->untold_ns)
		return;
	snprintf(w->untold, sizeof(w->untold), "%s", text);
	w->untold_ns = now_ns();
}

/* Does a rank need the launcher, or did it a moment ago?  It ends by an error of its own without it. */
static bool is_in_init(const struct watch *w)
{
	return !w->ready_ns || now_ns() < w->ready_ns + INIT_NS;
}

/*
 * Has a rank in MPI_Init ended because of the death of `part` of the launcher, which was heard of later?
 * If it could not be restored, the launcher ends its daemons because of that.
 */
static bool was_casualty(const struct watch *w, const char *part)
{
	return w->untold_ns && is_in_init(w) && now_ns() < w->untold_ns + BEFORE_NS &&
	       !(*part && getenv(RELAUNCH_VARIABLE));
}

static bool has_failed_rank(const struct watch *w)
{
	for (uint32_t i = 0; i < w->ranks.count; i++)
		if (w->ranks.rank[i].failed)
			return true;
	return false;
}

/*
 * Has the launcher ended ranks because it has lost a daemon of its own, which was heard of later?  No
 * rank has failed, and that daemon has not ended its ranks.
 */
static bool was_given_up(const struct watch *w)
{
	return w->deserted && w->allowed_ns && !w->untold_ns && now_ns() < w->allowed_ns + LATE_NS;
}

/* ---- the ways on ---------------------------------------------------------------------------- */

bool watch_lacks_ranks(const struct watch *w)
{
	return w->unable && !ranks_all_started(&w->ranks);
}

void watch_fail(struct watch *w)
{
	w->fails = true;
	w->ends |= !w->recovery->most || watch_lacks_ranks(w);
}

void watch_end_job(struct watch *w)
{
	bool again = w->fails && w->kill_ns;

	watch_fail(w);
	watch_tell_all(w, RANK_SIGNAL, again ? SIGKILL : SIGTERM);
	if (!again)
		w->kill_ns = now_ns() + TERM_NS;
}

/* Has all gone well, but for messages that are still to come? */
static bool is_good_end(const struct watch *w)
{
	return w->launcher.ended && !w->launcher.status && ranks_all_ended(&w->ranks) && !w->fails &&
	       !w->asked && !w->kills;
}

/*
 * How long the last messages may take, or that of a node's loss which explains the end.  A daemon
 * that is busy has the output of ranks that have ended well.
 */
static uint64_t late_ns(const struct watch *w)
{
	uint64_t loss_ns = w->ends ? 0 : (w->recovery->silence_s + 2) * 1000 * MS;

	if (is_good_end(w))
		return OUTPUT_NS;
	return loss_ns > LATE_NS ? loss_ns : LATE_NS;
}

void watch_expect_end(struct watch *w)
{
	if (w->flushes || w->kills || !w->alone || !w->launcher.ended || !ranks_all_ended(&w->ranks))
		return;
	w->flushes = true;
	daemons_ask(&w->daemons);
	watch_tell_all(w, RANK_SYNC, 0);
	w->kill_ns = w->kill_ns ?: now_ns() + late_ns(w);
}

void watch_tell_late(struct watch *w)
{
	for (size_t i = 0; i < w->daemons.count && !w->asked && w->wire.fd >= 0; i++)
		if (w->daemons.daemon[i].state == DAEMON_JOINED && w->daemons.daemon[i].name)
			show_say(&w->show, "no answer of node %s at the end: the last output of its "
				 "ranks may be missing", w->daemons.daemon[i].name);
}

/*
 * Does the launcher mark the ranks' output, or put it in files?  Then it may still have what they wrote
 * last, and ends when it has passed that on and their proxies have ended.
 */
static bool may_have_output(const struct watch *w)
{
	return w->recovery->due && !w->kills && !w->alone && getenv(SETTINGS_OUTPUT_VARIABLE);
}

void watch_kill_launcher(struct watch *w)
{
	w->pass_ns = 0;
	if (!w->launcher.ended)
		kill(w->launcher.pid, SIGKILL);
}

void watch_kill_rest(struct watch *w)
{
	if (is_good_end(w) && !show_is_empty(&w->show)) {	/* only the reader is slow */
		w->kill_ns = now_ns() + LATE_NS;
		return;
	}
	if (!w->kills)
		daemons_ask(&w->daemons);
	watch_tell_all(w, RANK_SIGNAL, SIGKILL);
	watch_tell_all(w, RANK_SYNC, 0);
	if (may_have_output(w))
		w->pass_ns = now_ns() + PASS_NS;
	else
		watch_kill_launcher(w);
	if (w->asked && w->launcher.ended)
		show_drop(&w->show);
	w->kills += !w->kills || show_is_empty(&w->show);	/* daemons may have to wait for a reader */
	w->kill_ns = now_ns() + LATE_NS;
}

bool watch_gives_up(const struct watch *w)
{
	return w->kills > (w->recovery->due ? w->recovery->late_s * 1000 * MS / LATE_NS : 1);
}

void watch_leave_late(struct watch *w)
{
	for (size_t i = 0; i < w->daemons.count && w->wire.fd >= 0; i++) {
		const struct daemon *one = &w->daemons.daemon[i];

		if (one->state != DAEMON_JOINED || !one->name)
			continue;
		show_say(&w->show, "node %s does not end its ranks: the job goes on without it",
			 one->name);
		recovery_node_gone(w->recovery, one->name, true);
	}
}

bool watch_is_restarting(const struct watch *w)
{
	return w->recovery->used && (recovery_snapshot(w->recovery) ? !w->ready_ns :
				     !w->unable && !ranks_all_started(&w->ranks));
}

bool watch_recover(struct watch *w, const char *text)
{
	if (w->ends)
		return false;
	w->ends = w->fails = true;
	if (w->recovery->most && watch_lacks_ranks(w)) {
		watch_say(w, text, ", and the job ends: ranks on a node without a daemon of KCR could "
			  "run on beside new ones");
		return false;
	}
	if (!recovery_begin(w->recovery, text)) {
		w->told |= w->recovery->most;
		return false;
	}
	watch_kill_rest(w);
	return true;
}

static void begin_alone(struct watch *w, const char *part)
{
	w->alone = true;
	w->alone_ns = now_ns();
	w->kill_ns = 0;
	watch_tell_all(w, RANK_ALONE, 0);
	show_say(&w->show, "%s%s has died; the ranks go on without it", part, w->launcher.name);
}

void watch_go_on_alone(struct watch *w, const char *part)
{
	bool all = ranks_all_started(&w->ranks), casualty = was_casualty(w, part) || was_given_up(w);
	bool unrestored = watch_is_restarting(w) && has_failed_rank(w);
	char text[80];

	w->doubt_ns = 0;
	if (w->alone || (all && ranks_all_ended(&w->ranks) && !casualty))
		return;
	/* A launcher that gives up the start ends its daemons, and then itself. */
	if (unrestored && !w->launcher.ended)
		return;
	if (all && !w->ends && !w->fails && !unrestored) {
		begin_alone(w, part);
		return;
	}
	snprintf(text, sizeof(text), "%s%s has died%s", part, w->launcher.name,
		 all ? "" : " before all ranks were started");
	w->alone = true;
	if ((!w->fails || casualty) && watch_recover(w, text))
		return;
	if (w->untold_ns && !casualty)
		watch_say(w, w->untold, ", so the job ends");
	/* Slurm ends its daemons when a rank has failed, perhaps before all ranks are known to have ended. */
	if (!(w->fails && w->launcher.by_slurm && *part))
		watch_say(w, text, ", and the job ends");
	watch_end_job(w);
}

void watch_doubt(struct watch *w, const char *part)
{
	if (w->doubt_ns || w->alone)
		return;
	w->doubt_ns = now_ns() + WATCH_DOUBT_NS;
	w->doubted = part;
}

/* Is the start of ranks that were there before to be tried once more? */
static bool start_again(struct watch *w)
{
	char text[80];

	if (recovery_starts_again(w->recovery, w->launcher.name, text, sizeof(text)))
		return watch_recover(w, text);
	w->told = true;
	return false;
}

void watch_expect_ranks(struct watch *w)
{
	unsigned int patience_s = ranks_all_started(&w->ranks) ? w->recovery->loading_s :
								 w->recovery->start_s;

	w->start_ns = patience_s && watch_is_restarting(w) ? now_ns() + patience_s * 1000 * MS : 0;
}

void watch_give_up_start(struct watch *w)
{
	w->start_ns = 0;
	if ((w->launcher.ended && !w->alone) || w->kill_ns || (!w->ends && !w->fails && start_again(w)))
		return;
	w->fails = true;
	watch_kill_rest(w);
}

void watch_end_start(struct watch *w)
{
	if (watch_is_restarting(w) && !w->kill_ns)
		w->kill_ns = now_ns() + LATE_NS;
}

/* The ranks have ended, and a launcher that has lost them may not know it. */
void watch_end_launcher(struct watch *w)
{
	if (!w->alone || w->launcher.ended || w->kill_ns || !ranks_all_ended(&w->ranks))
		return;
	kill(w->launcher.pid, SIGTERM);
	w->kill_ns = now_ns() + LATE_NS;
}

void watch_launcher_ended(struct watch *w)
{
	bool again = watch_is_restarting(w) && !w->ends && !w->fails;

	watch_tell_all(w, RANK_SYNC, 0);
	if (WIFSIGNALED(w->launcher.status))
		watch_go_on_alone(w, "");
	else if (again && w->launcher.status && start_again(w))
		return;
	if (!w->alone && (w->daemons.owing || !ranks_all_ended(&w->ranks) || w->asked))
		w->kill_ns = now_ns() + late_ns(w);
}

/* Has nobody wanted this rank's end? */
static bool is_failure(const struct watch *w, const struct rank *one, int number)
{
	return !one->allowed && !w->kills && !(w->kill_ns && number == SIGTERM);
}

/* Is it a rank in MPI_Init whose launcher is dead? */
static bool is_casualty(const struct watch *w, const struct rank *one)
{
	bool dead = w->doubt_ns || (w->alone && (watch_is_restarting(w) ||
						 now_ns() < w->alone_ns + CASUALTY_NS));

	return dead && is_in_init(w) && !one->allowed && !w->kills && !w->kill_ns;
}

/* Not the program's own end, unless that counts, nor one which somebody has wanted. */
static bool is_unwanted(const struct watch *w, const struct rank *one, int status)
{
	if (WIFSIGNALED(status) || one->unloaded || w->recovery->exits)
		return is_failure(w, one, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return is_casualty(w, one);
}

/* What the launcher would do. */
void watch_rank_failed(struct watch *w, struct rank *one, uint32_t number, int status)
{
	bool unwanted = is_unwanted(w, one, status);
	char text[160];

	ranks_describe_end(text, sizeof(text), one, number, status);
	one->failed = !one->allowed && !w->kills;
	w->ends |= WIFSIGNALED(status) && WTERMSIG(status) == w->sent;
	if (unwanted && watch_recover(w, text))
		return;
	if (one->failed && !w->alone)
		watch_leave_to_launcher(w, text);
	if (watch_is_restarting(w) && !w->alone)	/* the launcher ends, and is tried again */
		return;
	if (w->alone && !w->kill_ns) {		/* kill_ns: the others end, too */
		watch_say(w, text, ", so the job ends");
		watch_end_job(w);
	} else if (unwanted && one->unloaded) {	/* the launcher does not know why */
		watch_say(w, text, "");
	}
	watch_fail(w);
}

/* ---- the status --------------------------------------------------------------------------- */

static int result_of(const struct watch *w)
{
	/* Perhaps once all ranks had ended well. */
	bool killed = WIFSIGNALED(w->launcher.status) && !w->asked && !w->kills;

	if (((w->alone || killed) && ranks_all_started(&w->ranks)) ||
	    ((w->alone || w->launcher.by_slurm || !w->launcher.status) && w->ranks.status))
		return w->ranks.status;
	return w->launcher.status;
}

/* mpirun of Open MPI 5 ends with 0 if a daemon of its own dies while it starts the ranks. */
static bool is_too_early(const struct watch *w)
{
	bool missing = w->ranks.started ? w->ranks.started < w->ranks.size : w->recovery->used;

	return missing && !w->unable && !w->launcher.status && !w->alone && !w->ends && !w->fails;
}

/*
 * Has it ended ranks that had not failed because it has lost its own daemons, which was not
 * known in time?  It then ends with LOST, in Open MPI 5 with 0.
 */
static bool has_given_up(const struct watch *w)
{
	int status = w->launcher.status;

	return !w->alone && !w->ends && w->ranks.status && (!status || status == LOST << 8) &&
	       !has_failed_rank(w);
}

/*
 * Of a rank's failure the launcher tells, unless it was killed or says 0; but not of a signal
 * that ended it.  What it cannot begin with, such as a wrong option, it has told.
 */
static void tell_end(struct watch *w)
{
	const int status = w->launcher.status;
	char text[80];

	if (w->untold_ns && (w->alone || WIFSIGNALED(status) || !status))
		watch_say(w, w->untold, ", so the job ends");
	if (w->untold_ns || (!w->daemons.count && !w->recovery->most))
		return;
	snprintf(text, sizeof(text), "%s has ended with status %d", w->launcher.name,
		 WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	watch_say(w, text, ", and the job ends");
}

/* That of the job, which does not go on. */
static int end_with_result(struct watch *w)
{
	int status = result_of(w);

	if (status && !w->asked)
		tell_end(w);
	return status;
}

int watch_judge(struct watch *w)
{
	bool early = is_too_early(w);
	char text[80];

	if (w->recovery->due)
		return 0;
	if (!early && !has_given_up(w))
		return end_with_result(w);
	snprintf(text, sizeof(text), early ? "%s has ended before all ranks were started" :
		 "%s has ended the ranks", w->launcher.name);
	if (early && w->recovery->used ? start_again(w) : watch_recover(w, text))
		return 0;
	if (!early)
		return end_with_result(w);
	watch_say(w, text, ", and the job ends");
	return EXIT_FAILURE << 8;
}
