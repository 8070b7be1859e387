// SPDX-License-Identifier: GPL-2.0
/* What the keepers of the ranks and the coordinator tell cr_mpirun's main loop.  See watch.h. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "launch/watch_internal.h"
#include "proc/clock.h"

/* ---- messages of the keepers -------------------------------------------------------------- */

static void allow(struct watch *w, struct rank *one, uint32_t number)
{
	if (!watch_is_restarting(w))
		watch_fail(w);
	one->allowed = true;
	w->allowed_ns = w->allowed_ns ?: now_ns();
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
		watch_doubt(w, "a cr_rank of ");
	if (!one->asks || one->wants != wanted)
		one->asked_ns = now_ns();
	one->wants = wanted;
	if (w->ends)
		allow(w, one, number);
	else
		ranks_set_asking(&w->ranks, one, true);
}

/* Is it the launcher that wants this? */
static bool is_believed(const struct watch *w, const struct rank *one, uint64_t time)
{
	return !is_withheld(w, one) &&
	       (w->ends || (!w->doubt_ns && time >= one->asked_ns + WATCH_DOUBT_NS));
}

void watch_allow_asked(struct watch *w, uint64_t time)
{
	for (uint32_t i = 0; i < w->ranks.count && w->ranks.asking; i++) {
		struct rank *one = &w->ranks.rank[i];

		if (one->asks && w->alone)
			ranks_set_asking(&w->ranks, one, false);
		else if (one->asks && is_believed(w, one, time))
			allow(w, one, i);
	}
}

/*
 * A daemon of the launcher that has ended its ranks before was ended on purpose, and Slurm's
 * ends with the last rank of its node.
 */
static void orphaned(struct watch *w, uint32_t node)
{
	bool runs = !w->launcher.by_slurm, deserts = false;

	for (uint32_t i = 0; i < w->ranks.count; i++) {
		const struct rank *one = &w->ranks.rank[i];

		if (!one->started || one->node != node)	/* there is room for more than have */
			continue;
		if (one->allowed || (one->asks && !is_withheld(w, one)))
			return;
		deserts |= !one->ended;
	}
	w->deserted |= deserts;
	if (runs || deserts)
		watch_doubt(w, "a daemon of ");
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
			watch_rank_failed(w, one, h->rank, m->value);
	} else if (m->type == RANK_ASKED) {
		asked(w, one, h->rank, m->value);
	} else if (m->type == RANK_TAKEN) {
		ranks_took_input(&w->ranks, one, m->value);
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
		if (m.value || !w->kills)	/* else before it has heard of that */
			daemons_set(&w->daemons, h->id, DAEMON_SYNCED);
	} else {
		one = ranks_find(&w->ranks, h->rank);
		if (one)
			of_rank(w, one, h, &m, data, length);
	}
}

/* One that joins late is told and asked what all are. */
static void node_came(struct watch *w, const struct wire_header *h, const uint8_t *data)
{
	daemons_join(&w->daemons, h, data);
	watch_expect_ranks(w);
	if (w->kills)
		rank_message_queue(&w->wire, RANK_SIGNAL, WIRE_ALL, h->id, SIGKILL, NULL, 0);
	if (w->kills || w->launcher.ended)
		rank_message_queue(&w->wire, RANK_SYNC, WIRE_ALL, h->id, 0, NULL, 0);
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
			show_say(&w->show, "%s; it had no ranks", loss.text);
		return;
	}
	if (w->recovery->due)
		show_say(&w->show, "%s, too", loss.text);
	if (watch_recover(w, loss.text))
		return;
	if ((w->alone || loss.silent) && !ends) {
		watch_say(w, loss.text, ", so the job ends");
		watch_end_job(w);
	} else {
		watch_leave_to_launcher(w, loss.text);
	}
	watch_fail(w);
}

static void came(struct watch *w, const struct wire_header *h)
{
	if (h->rank == WIRE_ALL) {
		w->ready_ns = now_ns();
		recovery_done(w->recovery);
	}
	watch_expect_ranks(w);
}

static void unable(struct watch *w)
{
	w->unable = true;
	watch_expect_ranks(w);
}

/* A signal that comes with it ends the job on purpose, if it ends ranks. */
static void saved(struct watch *w, const struct wire_header *h, const uint8_t *data)
{
	if (!h->length || data[h->length - 1])
		return;
	recovery_saved(w->recovery, (const char *)data);
	w->sent = h->id;
	if (h->id != SIGKILL && !watch_is_deadly(h->id))
		return;
	w->ends = true;
	w->recovery->due = false;	/* a failure that came before it is complete does not count */
}

static void say(struct watch *w, const struct wire_header *h, const uint8_t *data)
{
	if (h->length && !data[h->length - 1])
		show_say(&w->show, "%s", (const char *)data);
}

/* The daemons' messages do not arrive any more.  They end their ranks when this process ends. */
static void lose_coordinator(struct watch *w, int err)
{
	watch_say(w, "the job's coordinator is lost: ", strerror(-err));
	w->ends = true;
	watch_kill_rest(w);
	wire_close(&w->wire);
}

void watch_hear_all(struct watch *w)
{
	struct wire_header header;
	const uint8_t *data;
	int err = wire_fill(&w->wire), got;

	while ((got = wire_next(&w->wire, &header, &data)) == 1) {
		if (header.type == WIRE_NODE)
			node_came(w, &header, data);
		else if (header.type == WIRE_GONE)
			node_gone(w, &header, data);
		else if (header.type == WIRE_HELLO)
			came(w, &header);
		else if (header.type == WIRE_UNABLE)
			unable(w);
		else if (header.type == WIRE_SYNCED)
			saved(w, &header, data);
		else if (header.type == WIRE_SAY)
			say(w, &header, data);
		else
			hear(w, &header, data);
	}
	if (err || got < 0)
		lose_coordinator(w, err ?: got);
}

bool watch_hear_last(struct watch *w)
{
	struct wire_header header;
	const uint8_t *data;
	int err = wire_fill(&w->wire);

	while (wire_next(&w->wire, &header, &data) == 1)
		if (header.type == WIRE_SAY)
			say(w, &header, data);
	return !err;
}
