// SPDX-License-Identifier: GPL-2.0
/* The main loop of cr_mpirun.  See watch.h. */
#include "launch/watch.h"

#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/leftovers.h"
#include "launch/rank_message.h"
#include "launch/watch_internal.h"
#include "proc/clock.h"
#include "report/report.h"

enum { SIGNALS, JOB, INPUT, SHOWN };		/* of those polled */
#define POLLED		(SHOWN + SHOW_FDS)
#define END_MS		5000			/* for the coordinator */
#define BEHIND_NS	(5000 * MS)		/* for ranks that are only slower than others */

void watch_tell_all(struct watch *w, enum rank_message_type type, int value)
{
	rank_message_queue(&w->wire, type, WIRE_ALL, WIRE_ALL, value, NULL, 0);
}

/* Frees the window of a keeper, see RANK_WINDOW. */
static void shown(void *argument, uint32_t node, size_t bytes)
{
	struct watch *w = argument;

	rank_message_queue(&w->wire, RANK_TAKEN, WIRE_ALL, node, rank_charge(bytes), NULL, 0);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/*
 * Keepers that cannot be reached any more end their ranks when this process ends.  One that
 * owes an answer may have ranks that are not known yet.
 */
static bool is_over(const struct watch *w)
{
	if (!w->launcher.ended || !show_is_empty(&w->show))
		return false;
	if (w->wire.fd < 0 || watch_gives_up(w))
		return true;
	return ranks_all_ended(&w->ranks) && !w->daemons.owing && (!w->alone || w->flushes || w->kills);
}

/* One that reads none, usually all but rank 0, holds up those that do. */
static void tell_behind(struct watch *w, uint64_t time)
{
	int64_t number = w->feed.ended || w->behind_told ? -1 : ranks_behind(&w->ranks);

	if (number < 0) {
		w->behind_ns = 0;
	} else if (!w->behind_ns) {
		w->behind_ns = time + BEHIND_NS;
	} else if (time >= w->behind_ns) {
		show_say(&w->show, "standard input waits for rank %" PRId64 ", which does not read it: "
			 "give it to rank 0 alone by %s", number,
			 w->launcher.by_slurm ? "--input=0" : "--stdin 0");
		w->behind_told = true;
	}
}

static void due(struct watch *w)
{
	uint64_t time = now_ns();

	watch_allow_asked(w, time);
	if (w->doubt_ns && time >= w->doubt_ns)
		watch_go_on_alone(w, w->doubted);
	if (w->kill_ns && time >= w->kill_ns)
		watch_kill_rest(w);
	if (w->pass_ns && time >= w->pass_ns)
		watch_kill_launcher(w);
	if (w->stop_ns && time >= w->stop_ns)
		watch_stop(w);
	if (w->start_ns && time >= w->start_ns)
		watch_give_up_start(w);
	tell_behind(w, time);
}

/* Until `time`, if that is sooner; 0: there is none. */
static void wait_for(int *ms, uint64_t time)
{
	int left = time ? ms_until(time) : -1;

	if (left >= 0 && (*ms < 0 || left < *ms))
		*ms = left;
}

static bool wants_input(struct watch *w)
{
	bool known = w->unable || ranks_all_started(&w->ranks);

	return known && ranks_take_input(&w->ranks) && !w->feed.ended;
}

static int patience(struct watch *w)
{
	int ms = w->ranks.asking ? (int)(WATCH_DOUBT_NS / MS / 4) : -1;

	wait_for(&ms, w->doubt_ns);
	wait_for(&ms, w->kill_ns);
	wait_for(&ms, w->pass_ns);
	wait_for(&ms, w->stop_ns);
	wait_for(&ms, w->start_ns);
	wait_for(&ms, w->behind_told ? 0 : w->behind_ns);
	if (wants_input(w) && !feed_is_open(&w->feed) && (ms < 0 || ms > FEED_PAUSE_MS))
		ms = FEED_PAUSE_MS;
	return ms;
}

static void serve(struct watch *w, const struct pollfd *p)
{
	show_serve(&w->show, p + SHOWN);
	if (p[INPUT].revents)
		ranks_fed(&w->ranks, feed_read(&w->feed, &w->wire));
	if (p[JOB].revents)
		watch_hear_all(w);
	if (p[SIGNALS].revents)
		watch_take_signals(w);
	due(w);
	watch_end_launcher(w);
	watch_expect_end(w);
}

static void run(struct watch *w)
{
	struct pollfd p[POLLED];

	while (!is_over(w)) {
		bool reads = wants_input(w) && feed_is_open(&w->feed);

		if (w->wire.fd >= 0)
			wire_flush(&w->wire);
		p[SIGNALS] = (struct pollfd){ w->signals, POLLIN, 0 };
		p[JOB] = (struct pollfd){ w->wire.fd, wire_events(&w->wire), 0 };
		p[INPUT] = (struct pollfd){ reads ? STDIN_FILENO : -1, POLLIN, 0 };
		show_watch(&w->show, p + SHOWN);
		if (poll(p, POLLED, patience(w)) >= 0)
			serve(w, p);
	}
}

/* It gives up a checkpoint under way and removes what there is of it, then closes its end. */
static void end_coordinator(struct watch *w)
{
	bool open = w->wire.fd >= 0 && !shutdown(w->wire.fd, SHUT_WR);
	uint64_t end = now_ns() + END_MS * MS;
	struct pollfd p[1 + SHOW_FDS];

	while ((open || !show_is_empty(&w->show)) && ms_until(end) > 0) {
		p[0] = (struct pollfd){ open ? w->wire.fd : -1, POLLIN, 0 };
		show_watch(&w->show, p + 1);
		if (poll(p, 1 + SHOW_FDS, ms_until(end)) <= 0)
			continue;
		show_serve(&w->show, p + 1);
		if (p[0].revents)
			open = watch_hear_last(w);
		if (w->asked)
			show_drop(&w->show);
	}
	wire_close(&w->wire);
}

/* What was said last waits for whoever reads it, unless a signal ends the job. */
static void run_on(struct watch *w)
{
	if (w->asked)
		show_drop(&w->show);
	run(w);
}

static int judge(struct watch *w)
{
	int status = watch_judge(w);
	bool was_due = w->recovery->due;

	if (!was_due)
		watch_tell_late(w);
	run_on(w);			/* it may be known only now that the ranks are to begin again */
	if (w->recovery->due) {
		watch_leave_late(w);
		run_on(w);
	}
	if (was_due && !w->recovery->due) {	/* it has been ended meanwhile */
		status = watch_judge(w);
		run_on(w);
	}
	return status;
}

int watch_job(char *const *argv, int job, struct recovery *recovery)
{
	struct watch w = { .wire.fd = -1, .signals = launcher_signals(), .recovery = recovery };
	int err = w.signals < 0 ? report_errno(w.signals, "no descriptor for signals") : 0, status;

	if (!err)
		err = launcher_start(&w.launcher, argv, job < 0);
	if (err)
		return err;
	if (job >= 0)
		wire_open(&w.wire, job);
	watch_expect_ranks(&w);
	feed_init(&w.feed);
	show_init(&w.show, shown, &w);
	recovery->show = &w.show;
	run(&w);
	status = judge(&w);
	if (recovery->due)
		recovery_has_nodes(recovery, daemons_list(&w.daemons));
	if (w.launcher.ended && WIFSIGNALED(w.launcher.status))
		leftovers_remove(w.launcher.pid);
	end_coordinator(&w);
	if (!recovery->due)
		run_on(&w);		/* what was said last */
	recovery->show = NULL;
	ranks_free(&w.ranks);
	daemons_free(&w.daemons);
	close(w.signals);
	return status;
}
