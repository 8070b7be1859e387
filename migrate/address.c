// SPDX-License-Identifier: GPL-2.0
/* See address.h. */
#include "migrate/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/report.h"

/* Divides it in place; *host: NULL: there is only a port. */
static bool divide(char *where, char **host, char **port)
{
	char *colon = strrchr(where, ':');
	size_t length;

	*host = colon ? where : NULL;
	*port = colon ? colon + 1 : where;
	if (!**port || (*port)[strspn(*port, "0123456789")] || strlen(*port) > 5)
		return false;
	if (!colon)
		return true;
	*colon = '\0';
	length = strlen(where);
	if (*where == '[' && where[length - 1] == ']') {
		where[length - 1] = '\0';
		++*host;
	} else if (strchr(where, ':')) {
		return false;		/* without brackets it could be meant otherwise */
	}
	return **host;
}

static int resolve(const char *where, int flags, struct addrinfo **out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	char *copy = strdup(where), *host, *port;
	int failed;

	if (!copy)
		return report_errno(-ENOMEM, "%s", where);
	if (!divide(copy, &host, &port)) {
		free(copy);
		return report_fail(-EINVAL, "\"%s\" is no address: HOST:PORT or [ADDRESS OF IPV6]:PORT",
				   where);
	}
	failed = getaddrinfo(host, port, &hints, out);
	free(copy);
	return failed ? report_fail(-ENOENT, "%s: %s", where, gai_strerror(failed)) : 0;
}

/* The first one with which `use` succeeds. */
static int open_first(const char *where, int flags, int (*use)(int fd, const struct addrinfo *a),
		      const char *what)
{
	struct addrinfo *all, *a;
	int err = resolve(where, flags, &all), fd = -1;

	if (err)
		return err;
	for (a = all; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, a->ai_protocol);
		err = fd < 0 || use(fd, a) ? -errno : 0;
		if (fd >= 0 && err) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(all);
	return err ? report_errno(err, "%s %s", what, where) : fd;
}

static int connect_it(int fd, const struct addrinfo *a)
{
	return connect(fd, a->ai_addr, a->ai_addrlen);
}

int address_connect(const char *where)
{
	return open_first(where, 0, connect_it, "connecting to");
}

static int listen_at(int fd, const struct addrinfo *a)
{
	int one = 1, off = 0;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	return bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, SOMAXCONN);
}

/* Without a host: of IPv6, which takes those of IPv4, too, if there is such. */
static int listen_anywhere(const char *where)
{
	char any[32] = "[::]:";
	int fd;

	strncat(any, where, sizeof(any) - strlen(any) - 1);
	fd = open_first(any, AI_PASSIVE, listen_at, "listening at");
	if (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL)
		return fd;
	report_clear();
	return open_first(where, AI_PASSIVE, listen_at, "listening at");
}

int address_listen(const char *where, int *port)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	int fd = strchr(where, ':') ? open_first(where, AI_PASSIVE, listen_at, "listening at") :
				      listen_anywhere(where);

	if (fd < 0)
		return fd;
	if (getsockname(fd, (struct sockaddr *)&own, &length)) {
		close(fd);
		return report_errno(-errno, "listening at %s", where);
	}
	*port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port :
						  ((struct sockaddr_in *)&own)->sin_port);
	return fd;
}
