// SPDX-License-Identifier: GPL-2.0
/*
 * What ping and raw sockets have of their own; the rest is as of UDP, with the number of the
 * ping, or the protocol, as port.  They are mostly connected to port 0, which for
 * getpeername(2) is not connected: /proc/net lists them with both addresses.
 */
#include "resource/inet_raw.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"
#include "resource/file.h"
#include "resource/option_names.h"
#include "resource/socket.h"
#include "resource/socket_filter.h"

#define DRAIN_MAX	65536	/* a busy network must not keep us */

bool inet_raw_is(const Kcr__InetSocket *s)
{
	return s->type == SOCK_RAW ||
	       (s->type == SOCK_DGRAM &&
		s->protocol == (s->family == AF_INET ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6));
}

/* ---- save --------------------------------------------------------------------------------- */

static const char *table_of(const Kcr__InetSocket *s)
{
	if (s->type == SOCK_RAW)
		return s->family == AF_INET ? "net/raw" : "net/raw6";
	return s->family == AF_INET ? "net/icmp" : "net/icmp6";
}

/* Words of an address, each as a number of this machine's byte order. */
static bool parse_address(const char *text, uint32_t *word, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (sscanf(text + 8 * i, "%8x", &word[i]) != 1)
			return false;
		any |= word[i];
	}
	return any;
}

/* The remote address in its line of the table.  False: it has none. */
static bool parse_remote(const char *line, const struct file_probe *probe,
			 const Kcr__InetSocket *s, union inet_address *a)
{
	bool v4 = s->family == AF_INET;
	unsigned int port;
	unsigned long ino;
	char text[33];

	if (sscanf(line, " %*d: %*[0-9A-F]:%*x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %*u %*u %lu",
		   text, &port, &ino) != 3 ||
	    ino != probe->st.st_ino || strlen(text) != (v4 ? 8 : 32))
		return false;
	a->any.sa_family = s->family;
	if (v4) {
		a->v4.sin_port = htons(port);
		return parse_address(text, &a->v4.sin_addr.s_addr, 1);
	}
	a->v6.sin6_port = htons(port);
	if (!parse_address(text, a->v6.sin6_addr.s6_addr32, 4))
		return false;
	if (IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr))
		a->v6.sin6_scope_id = socket_value(probe->fd, SO_BINDTOIFINDEX);
	return true;
}

static int save_remote(const struct file_probe *probe, Kcr__InetSocket *s)
{
	FILE *table = proc_stream(PROC_SELF, table_of(s));
	union inet_address a = {};
	char line[512];
	bool found = false;

	while (table && !found && fgets(line, sizeof(line), table))
		found = parse_remote(line, probe, s, &a);
	if (table)
		fclose(table);
	if (!found)
		return 0;
	s->has_remote = true;
	return file_bytes(&s->remote, &a, s->family == AF_INET ? sizeof(a.v4) : sizeof(a.v6));
}

/* Does a program route multicast packets here?  It does so by a raw socket, which one is not told. */
static bool may_route(const Kcr__InetSocket *s)
{
	bool v4 = s->family == AF_INET;
	char text[8] = "";

	return s->type == SOCK_RAW &&
	       s->protocol == (v4 ? (int)IPPROTO_IGMP : (int)IPPROTO_ICMPV6) &&
	       proc_read(PROC_ROOT, v4 ? "sys/net/ipv4/conf/all/mc_forwarding" :
					 "sys/net/ipv6/conf/all/mc_forwarding", text, sizeof(text)) > 0 &&
	       text[0] == '1';
}

int inet_raw_save(struct file_table *t, const struct file_probe *probe, Kcr__InetSocket *s)
{
	if (may_route(s))
		return file_unsupported(t, "a raw socket of protocol %d while multicast packets are "
					"routed (MRT_INIT)", s->protocol);
	return s->remote.len ? 0 : save_remote(probe, s);
}

/* ---- rebuild -------------------------------------------------------------------------------- */

int inet_raw_try(const Kcr__InetSocket *s)
{
	int fd = socket(s->family, s->type | SOCK_CLOEXEC, s->protocol);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int inet_raw_error(const Kcr__File *file, int err)
{
	if (file->inet_socket->type == SOCK_RAW && err == -EPERM)
		return rebuild_error(file, err, "the restart needs the right to use raw sockets "
				     "(CAP_NET_RAW)");
	if (err == -EACCES)
		return rebuild_error(file, err, "the restart needs a group that may use ping sockets "
				     "(net.ipv4.ping_group_range)");
	return rebuild_error(file, err, "socket");
}

static bool has_filter(const Kcr__InetSocket *s)
{
	for (size_t i = 0; i < s->n_option; i++)
		if (socket_filter_is(s->option[i]))
			return true;
	return false;
}

/* It takes packets of its protocol from the first moment on. */
void inet_raw_shut_out(const Kcr__InetSocket *s, int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &nothing };

	if (s->type != SOCK_RAW ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		return;
	for (int i = 0; i < DRAIN_MAX && recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0; i++)
		;
}

/* Its own filter takes the place of ours later. */
void inet_raw_let_in(const Kcr__InetSocket *s, int fd)
{
	const int unused = 0;

	if (s->type == SOCK_RAW && !has_filter(s))
		setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}
