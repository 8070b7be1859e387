// SPDX-License-Identifier: GPL-2.0
/* The main loop of cr_mpirun.  See watch.h. */
#include "launch/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/leftovers.h"
#include "launch/rank_message.h"
#include "launch/watch_internal.h"
#include "proc/clock.h"
#include "report/report.h"

#define DOUBT_NS	(200 * MS)		/* the launcher's own death is known by then */
#define TERM_NS		(2000 * MS)		/* from SIGTERM to SIGKILL */
#define CASUALTY_NS	(10000 * MS)		/* for ranks in MPI_Init after their launcher's death */
#define LOST		205			/* status of mpirun 4.1 that has lost a daemon */
#define LATE_NS		(5000 * MS)		/* for ranks after their launcher's end */

enum { SIGNALS, JOB, INPUT, SHOWN };		/* of those polled */
#define POLLED		(SHOWN + SHOW_FDS)

void watch_tell_all(struct watch *w, enum rank_message_type type, int value)
{
	rank_message_queue(&w->wire, type, WIRE_ALL, WIRE_ALL, value, NULL, 0);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* A rank, or the launcher, ends the job. */
static void fail(struct watch *w)
{
	w->fails = true;
	w->ends |= !w->recovery->most;
}

void watch_end_job(struct watch *w)
{
	bool again = w->fails && w->kill_ns;

	fail(w);
	watch_tell_all(w, RANK_SIGNAL, again ? SIGKILL : SIGTERM);
	if (!again)
		w->kill_ns = now_ns() + TERM_NS;
}

/* How long the last messages may take, or that of a node's loss which explains the end. */
static uint64_t late_ns(const struct watch *w)
{
	uint64_t loss_ns = w->ends ? 0 : (w->recovery->silence_s + 2) * 1000 * MS;

	return loss_ns > LATE_NS ? loss_ns : LATE_NS;
}

static void kill_rest(struct watch *w)
{
	watch_tell_all(w, RANK_SIGNAL, SIGKILL);
	if (!w->launcher.ended)
		kill(w->launcher.pid, SIGKILL);
	if (w->asked && w->launcher.ended)
		show_drop(&w->show);
	w->kills++;
	w->kill_ns = now_ns() + LATE_NS;
}

/* Are ranks that were there before not back yet?  If they are to begin again, only their start counts. */
static bool is_restarting(const struct watch *w)
{
	return w->recovery->used && (recovery_snapshot(w->recovery) ? !w->ready :
				     !ranks_all_started(&w->ranks));
}

/* A failure that `text` names: is the job to go back to its newest snapshot? */
static bool recover(struct watch *w, const char *text)
{
	if (w->ends)
		return false;
	w->ends = w->fails = true;
	if (!recovery_begin(w->recovery, text))
		return false;
	kill_rest(w);
	return true;
}

static void go_on_alone(struct watch *w, const char *part)
{
	char text[80];

	w->doubt_ns = 0;
	if (w->alone || (ranks_all_started(&w->ranks) && ranks_all_ended(&w->ranks)))
		return;
	if (ranks_all_started(&w->ranks) && !w->ends && !w->fails) {
		w->alone = true;
		w->alone_ns = now_ns();
		w->kill_ns = 0;
		watch_tell_all(w, RANK_ALONE, 0);
		fprintf(stderr, "KCR: %s%s has died; the ranks go on without it\n", part,
			w->launcher.name);
		return;
	}
	snprintf(text, sizeof(text), "%s%s has died%s", part, w->launcher.name,
		 ranks_all_started(&w->ranks) ? "" : " before all ranks were started");
	w->alone = true;
	if (!w->fails && recover(w, text))
		return;
	if (!w->recovery->due && !w->fails)
		fprintf(stderr, "KCR: %s, and the job ends\n", text);
	watch_end_job(w);
}

/* Part of the launcher seems to have died; what ranks are to do then is known a moment later. */
static void doubt(struct watch *w, const char *part)
{
	if (w->doubt_ns || w->alone)
		return;
	w->doubt_ns = now_ns() + DOUBT_NS;
	w->doubted = part;
}

/* Is the start of ranks that were there before to be tried once more? */
static bool start_again(struct watch *w)
{
	char text[80];

	return recovery_starts_again(w->recovery, w->launcher.name, text, sizeof(text)) &&
	       recover(w, text);
}

void watch_expect_ranks(struct watch *w)
{
	bool waits = w->recovery->start_s && w->recovery->used && !ranks_all_started(&w->ranks);

	w->start_ns = waits ? now_ns() + w->recovery->start_s * 1000 * MS : 0;
}

/* The launcher hangs, perhaps because of another failure meanwhile. */
static void give_up_start(struct watch *w)
{
	w->start_ns = 0;
	if (w->ends || w->fails || w->launcher.ended || start_again(w))
		return;
	w->fails = true;
	kill_rest(w);
}

void watch_launcher_ended(struct watch *w)
{
	bool again = is_restarting(w) && !w->ends && !w->fails;

	watch_tell_all(w, RANK_SYNC, 0);
	if (WIFSIGNALED(w->launcher.status))
		go_on_alone(w, "");
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

/* In MPI_Init a rank needs the launcher, and ends by an error of its own without it. */
static bool is_casualty(const struct watch *w, const struct rank *one)
{
	bool dead = w->doubt_ns || (w->alone && (is_restarting(w) ||
						 now_ns() < w->alone_ns + CASUALTY_NS));

	return dead && !w->ready && !one->allowed && !w->kills && !w->kill_ns;
}

/* Not the program's own end, nor that which somebody has wanted. */
static bool is_unwanted(const struct watch *w, const struct rank *one, int status)
{
	if (WIFSIGNALED(status) || one->unloaded)
		return is_failure(w, one, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return is_casualty(w, one);
}

/* What the launcher would do. */
static void rank_failed(struct watch *w, struct rank *one, uint32_t number, int status)
{
	bool unwanted = is_unwanted(w, one, status);
	char text[160];

	ranks_describe_end(text, sizeof(text), one, number, status);
	one->failed = !one->allowed && !w->kills;
	w->ends |= WIFSIGNALED(status) && WTERMSIG(status) == w->sent;
	if (unwanted && recover(w, text))
		return;
	if (is_restarting(w) && !w->alone)	/* the launcher ends, and is tried again */
		return;
	if (w->alone && !w->kill_ns) {		/* kill_ns: the others end, too */
		fprintf(stderr, "KCR: %s, so the job ends\n", text);
		watch_end_job(w);
	} else if (unwanted && one->unloaded) {	/* the launcher does not know why */
		fprintf(stderr, "KCR: %s\n", text);
	}
	fail(w);
}

/* ---- messages of the keepers -------------------------------------------------------------- */

static void allow(struct watch *w, struct rank *one, uint32_t number)
{
	if (!is_restarting(w))
		fail(w);
	one->allowed = true;
	ranks_set_asking(&w->ranks, one, false);
	rank_message_queue(&w->wire, RANK_ALLOWED, number, one->node, one->wants, NULL, 0);
}

/* Slurm sends SIGTERM to all steps: for who saves the job. */
static bool is_withheld(const struct watch *w, const struct rank *one)
{
	return one->wants == SIGTERM && w->launcher.by_slurm && !w->launcher.ended && !w->fails &&
	       !w->ends;
}

/* By somebody else: mpirun kills none without SIGTERM before, but srun does. */
static bool is_proxy_lost(const struct watch *w, const struct rank *one, int wanted)
{
	return !wanted && w->recovery->most && !w->launcher.by_slurm && !w->ranks.asking &&
	       !one->allowed && !w->ends && !w->fails && !w->kills;
}

static void asked(struct watch *w, struct rank *one, uint32_t number, int wanted)
{
	if (w->alone || one->ended)
		return;
	if (is_proxy_lost(w, one, wanted))
		doubt(w, "a cr_rank of ");
	if (!one->asks || one->wants != wanted)
		one->asked_ns = now_ns();
	one->wants = wanted;
	if (w->ends)
		allow(w, one, number);
	else
		ranks_set_asking(&w->ranks, one, true);
}

/*
 * A daemon of the launcher that has ended its ranks before was ended on purpose, and Slurm's
 * ends with the last rank of its node.
 */
static void orphaned(struct watch *w, uint32_t node)
{
	bool runs = !w->launcher.by_slurm;

	for (uint32_t i = 0; i < w->ranks.count; i++) {
		const struct rank *one = &w->ranks.rank[i];

		if (one->node != node)
			continue;
		if (one->asks && !is_withheld(w, one))
			return;
		runs |= !one->ended;
	}
	if (runs)
		doubt(w, "a daemon of ");
}

static void started(struct watch *w, const struct wire_header *h, int takes_input,
		    const uint8_t *data, size_t length)
{
	uint32_t size = 0;
	struct rank *one;

	if (length == sizeof(size))
		memcpy(&size, data, sizeof(size));
	one = ranks_start(&w->ranks, h->rank, h->id, size, takes_input);
	watch_expect_ranks(w);
	if (one && w->fails && w->alone)		/* it missed the signal */
		rank_message_queue(&w->wire, RANK_SIGNAL, h->rank, h->id, SIGKILL, NULL, 0);
}

static void of_rank(struct watch *w, struct rank *one, const struct wire_header *h,
		    const struct rank_message *m, const uint8_t *data, size_t length)
{
	if (m->type == RANK_ENDED) {
		one->unloaded = length && *data;
		ranks_end(&w->ranks, one, m->value);
		if (m->value)
			rank_failed(w, one, h->rank, m->value);
	} else if (m->type == RANK_ASKED) {
		asked(w, one, h->rank, m->value);
	} else if (m->type == RANK_TAKEN) {
		ranks_took_input(&w->ranks, one);
	}
}

static void hear(struct watch *w, const struct wire_header *h, const uint8_t *data)
{
	struct rank_message m;
	struct rank *one;
	size_t length;

	if (!rank_message_read(h, &data, &m, &length))
		return;
	if (m.type == RANK_STARTED) {
		started(w, h, m.value, data, length);
	} else if (m.type == RANK_OUTPUT) {
		show_add(&w->show, m.value, h->id, data, length);
	} else if (m.type == RANK_ORPHANED) {
		orphaned(w, h->id);
	} else if (m.type == RANK_SYNCED) {
		daemons_set(&w->daemons, h->id, DAEMON_SYNCED);
	} else {
		one = ranks_find(&w->ranks, h->rank);
		if (one)
			of_rank(w, one, h, &m, data, length);
	}
}

/* One that joins late is asked, too. */
static void node_came(struct watch *w, uint32_t node)
{
	daemons_set(&w->daemons, node, DAEMON_JOINED);
	watch_expect_ranks(w);
	if (w->launcher.ended)
		rank_message_queue(&w->wire, RANK_SYNC, WIRE_ALL, node, 0, NULL, 0);
}

/* A node with its ranks: the launcher will see it, too, if it still lives. */
static void node_gone(struct watch *w, const struct wire_header *h, const uint8_t *data)
{
	struct daemon_loss loss;
	bool ends = w->ends, loses;

	daemons_set(&w->daemons, h->id, DAEMON_GONE);
	if (!daemons_read_loss(&loss, h, data))
		return;
	loses = ranks_lose_node(&w->ranks, h->id);
	if (loses || loss.silent)	/* also a spare one */
		recovery_node_gone(w->recovery, loss.name, loss.silent);
	if (!loses) {
		if (loss.silent && !w->ends)
			fprintf(stderr, "KCR: %s; it had no ranks\n", loss.text);
		return;
	}
	if (w->recovery->due)
		fprintf(stderr, "KCR: %s, too\n", loss.text);
	if (recover(w, loss.text))
		return;
	if ((w->alone || loss.silent) && !ends) {
		fprintf(stderr, "KCR: %s, so the job ends\n", loss.text);
		watch_end_job(w);
	}
	fail(w);
}

/* A signal that comes with it ends the job on purpose, if it ends ranks. */
static void saved(struct watch *w, const struct wire_header *h, const uint8_t *data)
{
	if (!h->length || data[h->length - 1])
		return;
	recovery_saved(w->recovery, (const char *)data);
	w->sent = h->id;
	w->ends |= h->id == SIGKILL || watch_is_deadly(h->id);
}

/* The daemons' messages do not arrive any more.  They end their ranks when this process ends. */
static void lose_coordinator(struct watch *w, int err)
{
	fprintf(stderr, "KCR: the job's coordinator is lost (%s), and the job ends\n", strerror(-err));
	w->ends = true;
	kill_rest(w);
	wire_close(&w->wire);
}

static void hear_all(struct watch *w)
{
	struct wire_header header;
	const uint8_t *data;
	int err = wire_fill(&w->wire), got;

	while ((got = wire_next(&w->wire, &header, &data)) == 1) {
		if (header.type == WIRE_NODE)
			node_came(w, header.id);
		else if (header.type == WIRE_GONE)
			node_gone(w, &header, data);
		else if (header.type == WIRE_HELLO)
			w->ready = true;
		else if (header.type == WIRE_SYNCED)
			saved(w, &header, data);
		else
			hear(w, &header, data);
	}
	if (err || got < 0)
		lose_coordinator(w, err ?: got);
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
	if (w->wire.fd < 0 || w->kills > 1)
		return true;
	return ranks_all_ended(&w->ranks) && (w->alone || w->kills || !w->daemons.owing);
}

/* The ranks have ended, and a launcher that has lost them may not know it. */
static void end_launcher(struct watch *w)
{
	if (!w->alone || w->launcher.ended || w->kill_ns || !ranks_all_ended(&w->ranks))
		return;
	kill(w->launcher.pid, SIGTERM);
	w->kill_ns = now_ns() + LATE_NS;
}

/* Is it the launcher that wants this? */
static bool is_believed(const struct watch *w, const struct rank *one, uint64_t time)
{
	return !is_withheld(w, one) &&
	       (w->ends || (!w->doubt_ns && time >= one->asked_ns + DOUBT_NS));
}

static void due(struct watch *w)
{
	uint64_t time = now_ns();

	for (uint32_t i = 0; i < w->ranks.count && w->ranks.asking; i++) {
		struct rank *one = &w->ranks.rank[i];

		if (one->asks && w->alone)
			ranks_set_asking(&w->ranks, one, false);
		else if (one->asks && is_believed(w, one, time))
			allow(w, one, i);
	}
	if (w->doubt_ns && time >= w->doubt_ns)
		go_on_alone(w, w->doubted);
	if (w->kill_ns && time >= w->kill_ns)
		kill_rest(w);
	if (w->stop_ns && time >= w->stop_ns)
		watch_stop(w);
	if (w->start_ns && time >= w->start_ns)
		give_up_start(w);
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
	return ranks_all_started(&w->ranks) && w->ranks.takers && !w->ranks.owing && !w->feed.ended;
}

static int patience(struct watch *w)
{
	int ms = w->ranks.asking ? (int)(DOUBT_NS / MS / 4) : -1;

	wait_for(&ms, w->doubt_ns);
	wait_for(&ms, w->kill_ns);
	wait_for(&ms, w->stop_ns);
	wait_for(&ms, w->start_ns);
	if (wants_input(w) && !feed_is_open(&w->feed) && (ms < 0 || ms > FEED_PAUSE_MS))
		ms = FEED_PAUSE_MS;
	return ms;
}

static void serve(struct watch *w, const struct pollfd *p)
{
	show_serve(&w->show, p + SHOWN);
	if (p[INPUT].revents && feed_read(&w->feed, &w->wire))
		ranks_fed(&w->ranks);
	if (p[JOB].revents)
		hear_all(w);
	if (p[SIGNALS].revents)
		watch_take_signals(w);
	due(w);
	end_launcher(w);
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

	return missing && !w->launcher.status && !w->alone && !w->ends && !w->fails;
}

/*
 * Has it ended ranks that had not failed because it has lost its own daemons, which was not
 * known in time?  It then ends with LOST, in Open MPI 5 with 0.
 */
static bool has_given_up(const struct watch *w)
{
	int status = w->launcher.status;

	if (w->alone || w->ends || !w->ranks.status || (status && status != LOST << 8))
		return false;
	for (uint32_t i = 0; i < w->ranks.count; i++)
		if (w->ranks.rank[i].failed)
			return false;
	return true;
}

static int judge(struct watch *w)
{
	bool early = is_too_early(w);
	char text[80];

	if (!early && !has_given_up(w))
		return result_of(w);
	snprintf(text, sizeof(text), early ? "%s has ended before all ranks were started" :
		 "%s has ended the ranks", w->launcher.name);
	if (early && w->recovery->used ? start_again(w) : recover(w, text))
		return 0;
	if (!early)
		return result_of(w);
	if (!w->recovery->used)
		fprintf(stderr, "KCR: %s, and the job ends\n", text);
	return EXIT_FAILURE << 8;
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
	run(&w);
	status = judge(&w);
	if (w.launcher.ended && WIFSIGNALED(w.launcher.status))
		leftovers_remove(w.launcher.pid);
	ranks_free(&w.ranks);
	daemons_free(&w.daemons);
	wire_close(&w.wire);
	close(w.signals);
	return status;
}
