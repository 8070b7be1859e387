// SPDX-License-Identifier: GPL-2.0
/*
 * Options that an internet socket must have while it is bound, and may have lost since:
 * to share its address (SO_REUSEPORT), or to have one that this machine does not have
 * (IP_FREEBIND).
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "resource/inet_address.h"
#include "resource/socket.h"

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND	78
#endif

static int free_bind(int fd, int family, const int *value)
{
	bool v4 = family == AF_INET;

	return setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND,
			  value, sizeof(*value));
}

static bool may_bind_freely(int fd, int family)
{
	bool v4 = family == AF_INET;
	socklen_t length = sizeof(int);
	int value = 0;

	return !getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_FREEBIND : IPV6_FREEBIND,
			   &value, &length) && value;
}

void inet_bind_save(const struct file_probe *probe, Kcr__InetSocket *s)
{
	union inet_address a = {};
	socklen_t length = sizeof(a);
	in_port_t *port = s->family == AF_INET ? &a.v4.sin_port : &a.v6.sin6_port;
	int fd;

	if (s->remote.len || may_bind_freely(probe->fd, s->family) ||
	    getsockname(probe->fd, &a.any, &length) || !*port)
		return;
	*port = 0;
	/* Could another socket be bound to its address? */
	fd = socket(s->family, s->type | SOCK_CLOEXEC, s->protocol);
	s->has_free_bind = s->free_bind = fd >= 0 && bind(fd, &a.any, length) &&
					  errno == EADDRNOTAVAIL;
	if (fd >= 0)
		close(fd);
}

/* ---- rebuild ------------------------------------------------------------------------- */

static int saved_option(const Kcr__InetSocket *s, int name)
{
	int value = 0;

	for (size_t i = 0; i < s->n_option; i++)
		if (s->option[i]->level == SOL_SOCKET && s->option[i]->name == name &&
		    s->option[i]->value.len == sizeof(value))
			memcpy(&value, s->option[i]->value.data, sizeof(value));
	return value;
}

unsigned int inet_bind_alone(const Kcr__InetSocket *s)
{
	union inet_address a;

	if (saved_option(s, SO_REUSEPORT) || !inet_address_get(&s->local, &a) ||
	    !(s->listening || (s->protocol == IPPROTO_UDP && !saved_option(s, SO_REUSEADDR))))
		return 0;
	return ntohs(*inet_address_port(&a));
}

/* Is it bound by itself, rather than by connecting or accepting? */
static bool is_bound(const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;

	return file->kind_case == KCR__FILE__KIND_INET_SOCKET && s->local.len &&
	       (s->protocol == IPPROTO_UDP || s->listening || !s->remote.len);
}

/* Must both have SO_REUSEPORT when they are bound?  SO_REUSEADDR is enough unless they listen. */
static bool share_port(const Kcr__InetSocket *a, const Kcr__InetSocket *b)
{
	return a->protocol == b->protocol && a->local.len == b->local.len &&
	       !memcmp(a->local.data, b->local.data, a->local.len) &&
	       (a->listening || b->listening || !saved_option(a, SO_REUSEADDR) ||
		!saved_option(b, SO_REUSEADDR));
}

static bool shares_port(const struct rebuild *r, const Kcr__File *file)
{
	for (size_t i = 0; i < r->context->nr_files && is_bound(file); i++) {
		const Kcr__File *f = r->context->file[i];

		if (f != file && is_bound(f) && share_port(file->inet_socket, f->inet_socket))
			return true;
	}
	return false;
}

int inet_bind_address(int fd, const union inet_address *a, socklen_t length)
{
	int before = socket_value(fd, SO_REUSEADDR), on = 1, err;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	err = bind(fd, &a->any, length) ? -errno : 0;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &before, sizeof(before));
	return err;
}

void inet_bind_device(int fd, const Kcr__InetSocket *s)
{
	for (size_t i = 0; i < s->n_option; i++)
		if (s->option[i]->level == SOL_SOCKET && s->option[i]->name == SO_BINDTODEVICE)
			socket_options_set(fd, &s->option[i], 1);
}

void inet_bind_begin(const struct rebuild *r, const Kcr__File *file, int fd)
{
	const int on = 1;

	if (shares_port(r, file))
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (file->inet_socket->free_bind)
		free_bind(fd, file->inet_socket->family, &on);
}

void inet_bind_end(const struct rebuild *r, const Kcr__File *file)
{
	const int reuse = saved_option(file->inet_socket, SO_REUSEPORT), off = 0;
	int fd = r->file_fd[file->id - 1];

	if (!reuse && shares_port(r, file))
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &reuse, sizeof(reuse));
	if (file->inet_socket->free_bind)
		free_bind(fd, file->inet_socket->family, &off);
}
