// SPDX-License-Identifier: GPL-2.0
/* A rank of the keeper.  See kept.h. */
#include "launch/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launch/message.h"
#include "restart/loading.h"

#define NOT_STARTED	126		/* as the exit code of a shell */
#define START_FDS	(2 + STREAMS)	/* the program, its streams, the launcher */

enum { PROXY, PROCESS, OUTPUT, ERRORS, INPUT };	/* of KEPT_FDS */

struct kept *kept_new(int proxy)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->proxy = proxy;
	process_init(&k->process);
	return k;
}

void kept_free(struct kept *k)
{
	process_signal(&k->process, SIGKILL);
	if (k->process.pid > 0)
		process_take(&k->process);
	streams_close(k->process.other);
	if (k->proxy >= 0)
		close(k->proxy);
	free(k->input);
	free(k);
}

static void tell_job(struct home *home, const struct kept *k, enum rank_message_type type,
		     int32_t value, const void *data, size_t length)
{
	rank_message_queue(&home->wire, type, k->process.rank, 0, value, data, length);
}

/* ---- the proxy ------------------------------------------------------------------------- */

/* The launcher has killed it, or wants to send a signal that ends the rank: cr_mpirun decides. */
static void ask(struct home *home, struct kept *k, int number)
{
	if (home->alone || !k->begun || k->ended)
		return;
	if (home->wire.fd >= 0)
		tell_job(home, k, RANK_ASKED, number, NULL, 0);
	else
		process_signal(&k->process, number ?: SIGKILL);
}

static void lose_proxy(struct home *home, struct kept *k)
{
	close(k->proxy);
	k->proxy = -1;
	ask(home, k, 0);
	if (k->ended && !k->told && !home->alone)	/* others still have its output open */
		streams_close(k->process.other);
}

static void tell_proxy(struct home *home, struct kept *k, uint32_t type, int32_t value,
		       const int *fds, size_t nr_fds)
{
	if (k->proxy >= 0 && launch_send(k->proxy, type, value, fds, nr_fds))
		lose_proxy(home, k);
}

static bool proxy_carries(const struct home *home, const struct kept *k)
{
	return (home->by_launcher || home->wire.fd < 0) && !home->alone && k->proxy >= 0;
}

static void close_stream(struct kept *k, int n)
{
	if (k->process.other[n] >= 0)
		close(k->process.other[n]);
	k->process.other[n] = -1;
}

static void give_streams(struct home *home, struct kept *k)
{
	int fds[STREAMS], mask = 0;
	size_t count = 0;

	for (int n = STDOUT_FILENO; n < STREAMS && proxy_carries(home, k); n++)
		if (k->process.other[n] >= 0) {
			fds[count++] = k->process.other[n];
			mask |= 1 << n;
		}
	tell_proxy(home, k, LAUNCH_STREAMS, mask, fds, count);
}

static void begin(struct home *home, struct kept *k)
{
	int *input = &k->process.other[STDIN_FILENO];

	k->begun = true;
	if (home->wire.fd < 0)
		close_stream(k, STDIN_FILENO);
	for (int n = 0; n < STREAMS; n++)
		if (k->process.other[n] >= 0)
			fcntl(k->process.other[n], F_SETFL, O_NONBLOCK);
	k->takes_input = *input >= 0;
	tell_job(home, k, RANK_STARTED, k->takes_input, &k->process.size, sizeof(k->process.size));
	give_streams(home, k);
}

static void start(struct home *home, struct kept *k, int *fds, int nr_fds)
{
	int err = nr_fds == START_FDS && !k->begun && !home->ends ?
		process_start(&k->process, fds[0], fds + 1, home->daemon) : -EPROTO;

	if (!err) {
		if (home->launcher == -1) {
			home->launcher = fds[START_FDS - 1];
			fds[START_FDS - 1] = -1;
		}
		begin(home, k);
		return;
	}
	if (nr_fds != START_FDS) {
		lose_proxy(home, k);
		return;
	}
	if (!home->ends)
		dprintf(fds[STREAMS], "KCR: cannot start a rank: %s\n", strerror(-err));
	tell_proxy(home, k, LAUNCH_ENDED, NOT_STARTED << 8, NULL, 0);
}

static void hear(struct home *home, struct kept *k)
{
	struct launch_message m;
	int fds[LAUNCH_FDS_MAX], count = launch_receive(k->proxy, &m, fds);

	if (count == -EAGAIN)
		return;
	if (count < 0) {
		lose_proxy(home, k);
		return;
	}
	if (m.type == LAUNCH_START)
		start(home, k, fds, count);
	else if (m.type == LAUNCH_SIGNAL && m.value == SIGTERM)
		ask(home, k, SIGTERM);
	else if (m.type == LAUNCH_SIGNAL && m.value > 0 && m.value < NSIG && !home->alone)
		process_signal(&k->process, m.value);
	while (count > 0)
		if (fds[--count] >= 0)
			close(fds[count]);
}

/* ---- input and output ------------------------------------------------------------------- */

/* Keeps what is behind the last newline, if more is to come: lines of ranks are not mixed. */
static size_t whole_lines(struct kept_stream *s, int fd, const uint8_t *data, size_t length)
{
	const uint8_t *newline = length == RANK_BYTES_MAX ? memrchr(data, '\n', length) : NULL;
	int more = 0;

	if (!newline || ioctl(fd, FIONREAD, &more) || !more)
		return length;
	s->length = data + length - (newline + 1);
	memcpy(s->rest, newline + 1, s->length);
	return length - s->length;
}

/*
 * All that there is, as a terminal gives at most a page at a time.  The end of a pipe, or EIO of
 * a terminal, comes when no process has it open any more.  False: there is nothing, or no room.
 */
static bool read_output(struct home *home, struct kept *k, int n)
{
	struct kept_stream *s = &k->stream[n == STDERR_FILENO];
	uint8_t data[RANK_BYTES_MAX];
	size_t length = s->length;
	int fd = k->process.other[n];
	ssize_t got = 1;

	if (fd < 0 || home->room < sizeof(data))
		return false;
	memcpy(data, s->rest, length);
	s->length = 0;
	while (length < sizeof(data) && (got = read(fd, data + length, sizeof(data) - length)) > 0)
		length += got;
	if (length) {
		length = whole_lines(s, fd, data, length);
		home->room -= rank_charge(length);
		tell_job(home, k, RANK_OUTPUT, n, data, length);
	} else if (!got || (errno != EINTR && errno != EAGAIN)) {
		close_stream(k, n);
	}
	return length;
}

/* All that there was of it, or the rank takes no more. */
static void input_taken(struct home *home, struct kept *k)
{
	free(k->input);
	k->input = NULL;
	k->input_begin = k->input_end = 0;
	if (k->owed)
		tell_job(home, k, RANK_TAKEN, k->owed, NULL, 0);
	k->owed = 0;
	if (k->input_ends)
		close_stream(k, STDIN_FILENO);
}

static void give_input(struct home *home, struct kept *k)
{
	ssize_t n = write(k->process.other[STDIN_FILENO], k->input + k->input_begin,
			  k->input_end - k->input_begin);

	if (n > 0)
		k->input_begin += n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		close_stream(k, STDIN_FILENO);	/* it reads no more */
	if (k->input_begin == k->input_end || k->process.other[STDIN_FILENO] < 0)
		input_taken(home, k);
}

/* Behind what the rank has not taken yet, which cr_mpirun limits. */
static bool keep_input(struct kept *k, const uint8_t *data, size_t length)
{
	size_t left = k->input_end - k->input_begin;
	uint8_t *grown;

	if (left >= RANK_BEHIND)
		return false;
	if (left)
		memmove(k->input, k->input + k->input_begin, left);
	k->input_begin = 0;
	k->input_end = left;
	grown = realloc(k->input, left + length);
	if (!grown)
		return false;
	memcpy(grown + left, data, length);
	k->input = grown;
	k->input_end += length;
	return true;
}

static void take_input(struct home *home, struct kept *k, const uint8_t *data, size_t length)
{
	if (!k->takes_input || k->told)
		return;
	k->input_ends |= !length;
	k->owed += length;
	if (length && k->process.other[STDIN_FILENO] >= 0 && !keep_input(k, data, length))
		close_stream(k, STDIN_FILENO);	/* else it would get what comes behind */
	if (k->input_end && k->process.other[STDIN_FILENO] >= 0)
		give_input(home, k);
	else
		input_taken(home, k);
}

/* ---- the process ------------------------------------------------------------------------ */

/* What it has written before it failed comes before its end. */
static void take_last_output(struct home *home, struct kept *k)
{
	for (int n = STDOUT_FILENO; n < STREAMS && !proxy_carries(home, k); n++)
		while (read_output(home, k, n))
			;
}

static void take_end(struct home *home, struct kept *k)
{
	k->lacks_memory = loading_is(k->process.pid);
	k->status = process_take(&k->process);
	k->ended = true;
	close_stream(k, STDIN_FILENO);
	if (k->owed)			/* others' input does not wait for its output's end */
		input_taken(home, k);
	if (k->status)
		take_last_output(home, k);
}

static bool is_output_open(const struct kept *k)
{
	return k->process.other[STDOUT_FILENO] >= 0 || k->process.other[STDERR_FILENO] >= 0;
}

bool kept_has_output(const struct kept *k)
{
	struct pollfd p[] = { { k->process.other[STDOUT_FILENO], POLLIN, 0 },
			      { k->process.other[STDERR_FILENO], POLLIN, 0 } };

	return k->ended && is_output_open(k) && poll(p, sizeof(p) / sizeof(*p), 0) > 0;
}

/*
 * Once it has ended and nobody else can write its output.  A failure is told at once, as mpirun would:
 * what the rank has started may have its output open for ever.
 */
static void tell_end(struct home *home, struct kept *k)
{
	if (!k->ended || k->told ||
	    (is_output_open(k) && !k->status && !proxy_carries(home, k)))
		return;
	k->told = true;
	if (home->wire.fd < 0 || proxy_carries(home, k))
		streams_close(k->process.other);
	tell_job(home, k, RANK_ENDED, k->status, &k->lacks_memory, sizeof(k->lacks_memory));
	tell_proxy(home, k, LAUNCH_ENDED, k->status, NULL, 0);
}

void kept_order(struct home *home, struct kept *k, const struct rank_message *m,
		const uint8_t *data, size_t length)
{
	if (m->type == RANK_INPUT)
		take_input(home, k, data, length);
	else if (m->type == RANK_SIGNAL || m->type == RANK_ALLOWED)
		process_signal(&k->process, m->value > 0 && m->value < NSIG ? m->value : SIGKILL);
}

/* ---- the keeper's loop ------------------------------------------------------------------ */

void kept_watch(const struct home *home, const struct kept *k, struct pollfd *p)
{
	bool reads = home->room >= RANK_BYTES_MAX && !proxy_carries(home, k);
	const int *other = k->process.other;

	p[PROXY] = (struct pollfd){ k->proxy, POLLIN, 0 };
	p[PROCESS] = (struct pollfd){ k->process.pidfd, POLLIN, 0 };
	p[OUTPUT] = (struct pollfd){ reads ? other[STDOUT_FILENO] : -1, POLLIN, 0 };
	p[ERRORS] = (struct pollfd){ reads ? other[STDERR_FILENO] : -1, POLLIN, 0 };
	p[INPUT] = (struct pollfd){ k->input_end ? other[STDIN_FILENO] : -1, POLLOUT, 0 };
}

bool kept_serve(struct home *home, struct kept *k, const struct pollfd *p)
{
	if (p[OUTPUT].revents)
		read_output(home, k, STDOUT_FILENO);
	if (p[ERRORS].revents)
		read_output(home, k, STDERR_FILENO);
	if (p[INPUT].revents && k->input_end && k->process.other[STDIN_FILENO] >= 0)
		give_input(home, k);
	if (p[PROXY].revents && k->proxy >= 0)
		hear(home, k);
	if (p[PROCESS].revents && k->process.pid > 0)
		take_end(home, k);
	tell_end(home, k);
	return k->proxy < 0 && (!k->begun || (k->told && !is_output_open(k)));
}
