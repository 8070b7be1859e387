// SPDX-License-Identifier: GPL-2.0
/* Which nodes answer.  See silent.h. */
#include "launch/silent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "launch/hosts.h"
#include "proc/clock.h"

#define PORT	22		/* ssh's: a firewall that lets mpirun through does not drop this */
#define MS	1000000ull	/* ns */
#define NAME_ROOM	256

struct asked {
	const char *name;
	int length;		/* of the name */
	bool answers;
};

/* No firewall is in its way here. */
static bool is_own(const struct asked *a)
{
	struct utsname own;

	return !uname(&own) && strlen(own.nodename) == (size_t)a->length &&
	       !memcmp(own.nodename, a->name, a->length);
}

static bool is_answer(int err)
{
	return !err || err == ECONNREFUSED || err == ECONNRESET;
}

/* A descriptor that is writable once it is known; -1: it is known. */
static int ask(struct asked *a, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	char text[INET_ADDRSTRLEN];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(address, ","), address);
	a->answers = true;		/* for all that is known here */
	if (fd < 0 || inet_pton(AF_INET, text, &to.sin_addr) != 1)
		goto known;
	err = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;
	a->answers = is_answer(err);
	if (err == EINPROGRESS)
		return fd;
known:
	if (fd >= 0)
		close(fd);
	return -1;
}

static void hear(struct asked *a, struct pollfd *p)
{
	socklen_t length = sizeof(int);
	int err = 0;

	if (p->fd < 0 || !p->revents)
		return;
	a->answers = !getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &length) && is_answer(err);
	close(p->fd);
	p->fd = -1;
}

static void hear_all(struct asked *a, struct pollfd *p, size_t count, int patience_ms)
{
	uint64_t end = now_ns() + patience_ms * MS;
	size_t left = 1;

	while (left && poll(p, count, ms_until(end)) > 0) {
		left = 0;
		for (size_t i = 0; i < count; i++) {
			hear(&a[i], &p[i]);
			left += p[i].fd >= 0;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (p[i].fd >= 0)
			close(p[i].fd);
}

/* NULL: none, or there is no memory. */
static char *names(const struct asked *a, size_t count, bool answer)
{
	char *out = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&out, &length);

	for (size_t i = 0; stream && i < count; i++)
		if (a[i].answers == answer)
			fprintf(stream, "%s%.*s", ftell(stream) ? "," : "", a[i].length, a[i].name);
	if (stream && !fclose(stream) && length)
		return out;
	free(out);
	return NULL;
}

static bool has_others(const struct asked *a, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i].answers && !is_own(&a[i]))
			return true;
	return false;
}

/* The next NAME=ADDRESS whose name is one of the lost or, if not `gone`, is none; NULL: no more. */
static const char *next(const char **at, const char *lost, bool gone)
{
	while (*at && strchr(*at, '=')) {
		const char *one = *at, *comma = strchr(strchr(one, '='), ',');
		char name[NAME_ROOM];

		*at = comma ? comma + 1 : NULL;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(one, "="), one);
		if (hosts_has(lost, name) == gone)
			return one;
	}
	return NULL;
}

static char *among(const char *nodes, const char *lost, bool gone, int patience_ms)
{
	size_t room = 1, count = 0;
	struct asked *asked;
	struct pollfd *p;
	const char *one;
	char *out = NULL;

	for (const char *at = nodes; at && (at = strchr(at, '=')); at++)
		room++;
	asked = calloc(room, sizeof(*asked));
	p = calloc(room, sizeof(*p));
	while (asked && p && (one = next(&nodes, lost, gone))) {
		asked[count] = (struct asked){ one, strcspn(one, "="), false };
		p[count] = (struct pollfd){ ask(&asked[count], strchr(one, '=') + 1), POLLOUT, 0 };
		count++;
	}
	if (count) {
		hear_all(asked, p, count, patience_ms);
		if (gone || has_others(asked, count))
			out = names(asked, count, gone);
	}
	free(asked);
	free(p);
	return out;
}

char *silent_among(const char *nodes, const char *lost, int patience_ms)
{
	return among(nodes, lost, false, patience_ms);
}

char *silent_no_more(const char *nodes, const char *lost, int patience_ms)
{
	return among(nodes, lost, true, patience_ms);
}

/* Is there a NAME=… with that name among the nodes? */
static bool is_known(const char *nodes, const char *one)
{
	const size_t length = strcspn(one, "=") + 1;

	for (const char *at = nodes; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, one, length))
			return true;
	return false;
}

char *silent_keep(const char *nodes, const char *before, const char *lost)
{
	char *out = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&out, &length);
	const char *one;

	if (stream)
		fputs(nodes, stream);
	while (stream && (one = next(&before, lost, true)))
		if (!is_known(nodes, one))
			fprintf(stream, ",%.*s", (int)strcspn(one, ","), one);
	if (stream && !fclose(stream))
		return out;
	free(out);
	return NULL;
}
