// SPDX-License-Identifier: GPL-2.0
/*
 * Clients that request a checkpoint.  One is served at a time, the others are told
 * so; the request of a client that disconnects is cancelled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/coordinator/root_internal.h"
#include "proc/clock.h"

#define PATIENCE_NS	10000000000ull	/* for the request */

static struct client {
	int fd;				/* -1: free */
	uint64_t since_ns;
	bool allowed;
	size_t length;
	char *line;
} clients[CLIENTS_MAX];
static int listener = -1;
static struct client *served;

int clients_open(void)
{
	struct ucred holder;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		clients[i].fd = -1;
	listener = job_listen(&holder);
	if (listener >= 0 && holder.pid > 0)
		fprintf(stderr, "KCR: process %d of user %u holds the name of mpirun's socket for "
			"requests: it has another one\n", holder.pid, holder.uid);
	else if (listener >= 0 && holder.pid)
		fprintf(stderr, "KCR: another process holds the name of mpirun's socket for "
			"requests: it has another one\n");
	return listener < 0 ? listener : 0;
}

size_t clients_watch(struct pollfd *p)
{
	p[0] = (struct pollfd){ listener, POLLIN, 0 };
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		p[1 + i] = (struct pollfd){ clients[i].fd, POLLIN, 0 };
	return CLIENTS_MAX + 1;
}

static void drop(struct client *c)
{
	close(c->fd);
	free(c->line);
	*c = (struct client){ .fd = -1 };
}

static void tell(const struct client *c, const struct job_answer *a)
{
	char *line = job_answer_format(a);

	/* It fits into the socket's buffer. */
	if (line && send(c->fd, line, strlen(line), MSG_NOSIGNAL) > 0)
		send(c->fd, "\n", 1, MSG_NOSIGNAL);
	free(line);
}

static void answer(struct client *c, const struct job_answer *a)
{
	tell(c, a);
	drop(c);
}

void clients_committed(struct job_answer *a)
{
	a->committed = true;
	if (served)
		tell(served, a);
	a->committed = false;
}

void clients_answer(const struct job_answer *a)
{
	struct client *c = served;

	served = NULL;
	if (c)
		answer(c, a);
}

static void refuse(struct client *c, int code, const char *why)
{
	answer(c, &(struct job_answer){ .code = code, .message = (char *)why });
}

static void take_request(struct root *root, struct client *c)
{
	struct job_request request;
	const char *why = NULL;
	int err;

	/* Not earlier: an answer sent before the request may be lost with the connection. */
	if (!c->allowed) {
		refuse(c, EPERM, "the job is another user's");
		return;
	}
	err = job_request_parse(c->line, &request);
	if (err) {
		refuse(c, EINVAL, "mpirun does not understand the request");
		return;
	}
	served = served ? served : c;
	err = served == c ? phases_begin(root, &request, &why) : -EBUSY;
	if (!err)
		return;
	job_request_free(&request);
	if (served == c)
		served = NULL;
	refuse(c, -err, why ? why : "a checkpoint of the job is under way");
}

static void read_client(struct root *root, struct client *c)
{
	ssize_t n;

	if (!c->line)
		c->line = malloc(JOB_LINE_MAX);
	n = c->line ? recv(c->fd, c->line + c->length, JOB_LINE_MAX - 1 - c->length, 0) : 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		bool was_served = c == served;

		served = was_served ? NULL : served;
		drop(c);
		if (was_served)
			phases_abort(root, ECANCELED, "the request was withdrawn");
		return;
	}
	if (c == served)
		return;			/* nothing more is expected */
	c->length += n;
	c->line[c->length] = '\0';
	if (c->line[c->length - 1] == '\n')
		take_request(root, c);
}

/* A free slot, or that of a client that is not allowed and has not been told so yet. */
static struct client *find_place(void)
{
	struct client *stranger = NULL;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		if (clients[i].fd < 0)
			return &clients[i];
		if (!clients[i].allowed)
			stranger = &clients[i];
	}
	if (stranger)
		drop(stranger);
	return stranger;
}

static void accept_client(struct root *root)
{
	int fd = descriptors_accept(root, listener);
	struct client *c = fd >= 0 ? find_place() : NULL;

	if (c)
		*c = (struct client){ .fd = fd, .since_ns = now_ns(),
				      .allowed = job_peer_allowed(fd) };
	else if (fd >= 0)
		close(fd);
}

/* How much longer it may stay silent, in ns; 0: it is not served and must be closed. */
static uint64_t left_to(const struct client *c)
{
	uint64_t end = c->since_ns + PATIENCE_NS, now = now_ns();

	return c == served ? UINT64_MAX : end > now ? end - now : 0;
}

int clients_patience(void)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (clients[i].fd >= 0 && left_to(&clients[i]) < least)
			least = left_to(&clients[i]);
	return least == UINT64_MAX ? -1 : (int)(least / 1000000) + 1;
}

void clients_serve(struct root *root, const struct pollfd *p, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (p[i].revents && clients[i - 1].fd == p[i].fd)
			read_client(root, &clients[i - 1]);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (clients[i].fd >= 0 && !left_to(&clients[i]))
			drop(&clients[i]);
	if (p[0].revents)
		accept_client(root);
}
