// SPDX-License-Identifier: GPL-2.0
/* The parent of a node's ranks.  See keeper.h. */
#include "launch/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/request.h"
#include "launch/message.h"
#include "launch/process.h"

#define PAUSE_MS	100		/* until a proxy that there was no room for is accepted */
#define PATIENCE_MS	10000		/* for the first proxy of a daemon without a job */
#define START_FDS	(1 + STREAMS)

struct kept {
	int proxy;			/* -1: it has gone */
	struct process process;
};

struct keeper {
	int listener;
	const char *daemon;
	bool crowded;			/* there was no room for the last proxy, which waits */
	bool begun;			/* there was one */
	struct kept **kept;
	size_t nr_kept;
};

/* ---- proxies --------------------------------------------------------------------------- */

/* Nobody would hear of its end any more, so it ends now. */
static void lose_proxy(struct kept *k)
{
	close(k->proxy);
	k->proxy = -1;
	process_signal(&k->process, SIGKILL);
}

static void tell(struct kept *k, uint32_t type, int32_t value, const int *fds, size_t nr_fds)
{
	if (k->proxy >= 0 && launch_send(k->proxy, type, value, fds, nr_fds))
		lose_proxy(k);
}

static void give_streams(struct kept *k)
{
	int fds[STREAMS], mask = 0;
	size_t count = 0;

	for (int n = 0; n < STREAMS; n++)
		if (k->process.other[n] >= 0) {
			fds[count++] = k->process.other[n];
			mask |= 1 << n;
		}
	tell(k, LAUNCH_STREAMS, mask, fds, count);
}

static void start(struct keeper *keeper, struct kept *k, const int *fds, int nr_fds)
{
	int err = nr_fds == START_FDS && k->process.pid == 0 ?
		process_start(&k->process, fds[0], fds + 1, keeper->daemon) : -EPROTO;

	if (!err) {
		give_streams(k);
		return;
	}
	if (nr_fds == START_FDS)
		dprintf(fds[START_FDS - 1], "KCR: cannot start a rank: %s\n", strerror(-err));
	lose_proxy(k);
}

static void end_input(struct kept *k)
{
	if (k->process.other[STDIN_FILENO] >= 0)
		close(k->process.other[STDIN_FILENO]);
	k->process.other[STDIN_FILENO] = -1;
}

static void hear(struct keeper *keeper, struct kept *k)
{
	struct launch_message m;
	int fds[LAUNCH_FDS_MAX], count = launch_receive(k->proxy, &m, fds);

	if (count == -EAGAIN)
		return;
	if (count < 0) {
		lose_proxy(k);
		return;
	}
	if (m.type == LAUNCH_START)
		start(keeper, k, fds, count);
	else if (m.type == LAUNCH_SIGNAL && m.value > 0 && m.value < NSIG)
		process_signal(&k->process, m.value);
	else if (m.type == LAUNCH_INPUT_END)
		end_input(k);
	while (count > 0)
		close(fds[--count]);
}

static void accept_proxy(struct keeper *keeper)
{
	int fd = accept4(keeper->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct kept **grown, *k;

	keeper->crowded = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	if (fd < 0)
		return;
	grown = job_peer_allowed(fd) ?
		realloc(keeper->kept, (keeper->nr_kept + 1) * sizeof(*grown)) : NULL;
	k = grown ? malloc(sizeof(*k)) : NULL;
	if (grown)
		keeper->kept = grown;
	if (!k) {
		close(fd);
		return;
	}
	k->proxy = fd;
	process_init(&k->process);
	keeper->kept[keeper->nr_kept++] = k;
	keeper->begun = true;
}

/* ---- processes ------------------------------------------------------------------------- */

static void take_end(struct kept *k)
{
	tell(k, LAUNCH_ENDED, process_take(&k->process), NULL, 0);
}

static void remove_ended(struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->nr_kept;) {
		struct kept *k = keeper->kept[i];

		if (k->proxy >= 0 || k->process.pid > 0) {
			i++;
			continue;
		}
		free(k);
		keeper->kept[i] = keeper->kept[--keeper->nr_kept];
	}
}

static void end_all(struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->nr_kept; i++)
		process_signal(&keeper->kept[i]->process, SIGKILL);
	for (size_t i = 0; i < keeper->nr_kept; i++) {
		struct kept *k = keeper->kept[i];

		if (k->process.pid > 0)
			process_take(&k->process);
		if (k->proxy >= 0)
			close(k->proxy);
		free(k);
	}
	free(keeper->kept);
}

/* ---- the loop -------------------------------------------------------------------------- */

static size_t watch(const struct keeper *keeper, int ended, struct pollfd *p)
{
	size_t n = 0;

	p[n++] = (struct pollfd){ ended, POLLIN, 0 };
	p[n++] = (struct pollfd){ keeper->crowded ? -1 : keeper->listener, POLLIN, 0 };
	for (size_t i = 0; i < keeper->nr_kept; i++) {
		p[n++] = (struct pollfd){ keeper->kept[i]->proxy, POLLIN, 0 };
		p[n++] = (struct pollfd){ keeper->kept[i]->process.pidfd, POLLIN, 0 };
	}
	return n;
}

static int patience(const struct keeper *keeper, int ended)
{
	if (keeper->crowded)
		return PAUSE_MS;
	return ended < 0 && !keeper->begun ? PATIENCE_MS : -1;
}

static void serve(struct keeper *keeper, const struct pollfd *p)
{
	size_t count = keeper->nr_kept;

	keeper->crowded = false;
	for (size_t i = 0; i < count; i++) {
		struct kept *k = keeper->kept[i];

		if (p[2 + 2 * i].revents && k->proxy >= 0)
			hear(keeper, k);
		if (p[3 + 2 * i].revents)
			take_end(k);
	}
	if (p[1].revents)
		accept_proxy(keeper);
	remove_ended(keeper);
}

void keeper_run(int listener, int ended, const char *daemon)
{
	struct keeper keeper = { .listener = listener, .daemon = daemon };
	struct pollfd *p = NULL;

	while (ended >= 0 || !keeper.begun || keeper.nr_kept) {
		struct pollfd *grown = realloc(p, (2 + 2 * keeper.nr_kept) * sizeof(*p));
		int events;

		if (!grown)
			break;
		p = grown;
		events = poll(p, watch(&keeper, ended, p), patience(&keeper, ended));
		if (events < 0)
			continue;
		if (p[0].revents || (!events && !keeper.begun && ended < 0))
			break;
		serve(&keeper, p);
	}
	free(p);
	end_all(&keeper);
}
