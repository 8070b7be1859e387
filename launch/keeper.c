// SPDX-License-Identifier: GPL-2.0
/* The parent of a node's ranks.  See keeper.h. */
#include "launch/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/request.h"
#include "launch/kept.h"
#include "launch/orphans.h"
#include "launch/settings.h"

#define PAUSE_MS	100		/* until a proxy that there was no room for is accepted */
#define PATIENCE_MS	10000		/* for the first proxy of a daemon without a job */
#define FIRST_KEPT	4		/* of the descriptors polled, those of the keeper before */

struct keeper {
	int listener;
	int ends;			/* of children; orphans_adopt() */
	struct home home;
	bool owes;			/* cr_mpirun waits for RANK_SYNCED */
	bool crowded;			/* there was no room for the last proxy, which waits */
	bool begun;			/* there was one */
	bool over;			/* cr_mpirun has gone, or who stands for it */
	struct kept **kept;
	size_t nr_kept;
};

/* ---- cr_mpirun --------------------------------------------------------------------------- */

static bool is_rank(void *argument, pid_t child)
{
	const struct keeper *keeper = argument;

	for (size_t i = 0; i < keeper->nr_kept; i++)
		if (keeper->kept[i]->process.pid == child)
			return true;
	return false;
}

/* Is there nothing more to come of ranks that have ended, nor, if they were to end, any left of all? */
static bool is_done(const struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->nr_kept; i++)
		if (kept_has_output(keeper->kept[i]))
			return false;
	return !keeper->home.ends || !orphans_any_child();
}

static void answer(struct keeper *keeper)
{
	struct home *home = &keeper->home;

	if (!keeper->owes || !is_done(keeper))
		return;
	keeper->owes = false;
	rank_message_queue(&home->wire, RANK_SYNCED, WIRE_ALL, 0, home->ends, NULL, 0);
}

static void obey(struct keeper *keeper, const struct wire_header *h, const uint8_t *data)
{
	struct home *home = &keeper->home;
	struct rank_message m;
	size_t length;

	if (!rank_message_read(h, &data, &m, &length))
		return;
	if (m.type == RANK_TAKEN)
		home->room += m.value > 0 && m.value <= (int)(RANK_WINDOW - home->room) ? m.value : 0;
	else if (m.type == RANK_ALONE)
		home->alone = true;
	else if (m.type == RANK_SYNC)
		keeper->owes = true;
	else if (m.type == RANK_SIGNAL && m.value == SIGKILL && h->rank == WIRE_ALL)
		home->ends = true;
	for (size_t i = 0; i < keeper->nr_kept; i++)
		if (h->rank == WIRE_ALL || h->rank == keeper->kept[i]->process.rank)
			kept_order(home, keeper->kept[i], &m, data, length);
}

static void hear_job(struct keeper *keeper)
{
	struct wire_header header;
	const uint8_t *data;
	int err = wire_fill(&keeper->home.wire);

	while (wire_next(&keeper->home.wire, &header, &data) == 1)
		obey(keeper, &header, data);
	keeper->over = err != 0;
}

/* The launcher, or its daemon for this node, has ended.  Without cr_mpirun so does the job. */
static void hear_launcher(struct keeper *keeper)
{
	close(keeper->home.launcher);
	keeper->home.launcher = LAUNCHER_ENDED;
	keeper->over |= keeper->home.wire.fd < 0;
	rank_message_queue(&keeper->home.wire, RANK_ORPHANED, WIRE_ALL, 0, 0, NULL, 0);
}

/* ---- ranks --------------------------------------------------------------------------------- */

static void accept_proxy(struct keeper *keeper)
{
	int fd = accept4(keeper->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct kept **grown, *k;

	keeper->crowded = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	if (fd < 0)
		return;
	grown = job_peer_allowed(fd) ?
		realloc(keeper->kept, (keeper->nr_kept + 1) * sizeof(*grown)) : NULL;
	k = grown ? kept_new(fd) : NULL;
	if (grown)
		keeper->kept = grown;
	if (!k) {
		close(fd);
		return;
	}
	keeper->kept[keeper->nr_kept++] = k;
	keeper->begun = true;
}

/* What ranks that have ended well have left behind stays, unless others are ended here. */
static void end_all(struct keeper *keeper)
{
	bool kills = keeper->home.ends;

	for (size_t i = 0; i < keeper->nr_kept; i++) {
		kills |= keeper->kept[i]->process.pid > 0;
		process_signal(&keeper->kept[i]->process, SIGKILL);
	}
	if (kills)
		orphans_kill(is_rank, keeper);
	for (size_t i = 0; i < keeper->nr_kept; i++)
		kept_free(keeper->kept[i]);
	free(keeper->kept);
	keeper->nr_kept = 0;
	if (kills)			/* what was a child of a rank until now */
		orphans_kill(is_rank, keeper);
	if (keeper->ends >= 0)
		close(keeper->ends);
	if (keeper->home.launcher >= 0)
		close(keeper->home.launcher);
	wire_close(&keeper->home.wire);
}

/* ---- the loop -------------------------------------------------------------------------- */

static size_t watch(struct keeper *keeper, struct pollfd *p)
{
	struct home *home = &keeper->home;
	size_t n = 0;

	if (home->wire.fd >= 0)
		wire_flush(&home->wire);	/* poll reports a lost connection */
	p[n++] = (struct pollfd){ home->wire.fd, wire_events(&home->wire), 0 };
	p[n++] = (struct pollfd){ keeper->crowded ? -1 : keeper->listener, POLLIN, 0 };
	p[n++] = (struct pollfd){ home->launcher, POLLIN, 0 };
	p[n++] = (struct pollfd){ keeper->ends, POLLIN, 0 };
	for (size_t i = 0; i < keeper->nr_kept; i++, n += KEPT_FDS)
		kept_watch(home, keeper->kept[i], p + n);
	return n;
}

static int patience(const struct keeper *keeper)
{
	if (keeper->crowded)
		return PAUSE_MS;
	return keeper->home.wire.fd < 0 && !keeper->begun ? PATIENCE_MS : -1;
}

/* Also those of ranks that end now become children. */
static void serve_orphans(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->ends, &info, sizeof(info)) > 0)
		;
	orphans_reap(is_rank, keeper);
	if (keeper->home.ends)
		orphans_kill(is_rank, keeper);
}

static void serve(struct keeper *keeper, const struct pollfd *p)
{
	size_t count = keeper->nr_kept, left = 0;

	keeper->crowded = false;
	if (p[0].revents)
		hear_job(keeper);
	for (size_t i = 0; i < count; i++) {
		struct kept *k = keeper->kept[i];

		if (kept_serve(&keeper->home, k, p + FIRST_KEPT + KEPT_FDS * i))
			kept_free(k);
		else
			keeper->kept[left++] = k;
	}
	keeper->nr_kept = left;
	if (p[2].revents)
		hear_launcher(keeper);
	if (p[1].revents)
		accept_proxy(keeper);
	serve_orphans(keeper);
	answer(keeper);
}

void keeper_run(int listener, int job, const char *daemon)
{
	struct keeper keeper = {
		.listener = listener, .ends = orphans_adopt(),
		.home = { .daemon = daemon, .wire.fd = -1, .launcher = -1, .room = RANK_WINDOW,
			  .by_launcher = getenv(SETTINGS_OUTPUT_VARIABLE) },
	};
	struct pollfd *p = NULL;

	if (job >= 0)
		wire_open(&keeper.home.wire, job);
	while (!keeper.over && (job >= 0 || !keeper.begun || keeper.nr_kept)) {
		size_t room = FIRST_KEPT + KEPT_FDS * keeper.nr_kept;
		struct pollfd *grown = realloc(p, room * sizeof(*p));
		int events;

		if (!grown)
			break;
		p = grown;
		events = poll(p, watch(&keeper, p), patience(&keeper));
		if (events < 0)
			continue;
		if (!events && !keeper.begun && job < 0)
			break;
		serve(&keeper, p);
	}
	free(p);
	end_all(&keeper);
}
