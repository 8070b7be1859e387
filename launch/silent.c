// SPDX-License-Identifier: GPL-2.0
/* Which nodes do not answer.  See silent.h. */
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

#include "proc/clock.h"

#define PORT	22		/* ssh's: a firewall that lets mpirun through does not drop this */
#define MS	1000000ull	/* ns */

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

static char *list(const struct asked *a, size_t count)
{
	size_t silent = 0, others = 0, length;
	char *out = NULL;
	FILE *stream = open_memstream(&out, &length);

	for (size_t i = 0; stream && i < count; i++) {
		if (!a[i].answers)
			fprintf(stream, "%s%.*s", silent++ ? "," : "", a[i].length, a[i].name);
		else if (!is_own(&a[i]))
			others++;
	}
	if (stream && !fclose(stream) && silent && others)
		return out;
	free(out);
	return NULL;
}

char *silent_among(const char *nodes, int patience_ms)
{
	size_t room = 1, count = 0;
	struct asked *asked;
	struct pollfd *p;
	char *out = NULL;

	for (const char *at = nodes; at && (at = strchr(at, '=')); at++)
		room++;
	asked = calloc(room, sizeof(*asked));
	p = calloc(room, sizeof(*p));
	for (const char *at = nodes; at && asked && p && strchr(at, '='); count++) {
		asked[count] = (struct asked){ at, strcspn(at, "="), false };
		at = strchr(at, '=') + 1;
		p[count] = (struct pollfd){ ask(&asked[count], at), POLLOUT, 0 };
		at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
	}
	if (count) {
		hear_all(asked, p, count, patience_ms);
		out = list(asked, count);
	}
	free(asked);
	free(p);
	return out;
}
