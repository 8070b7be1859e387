// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sockets: each is set on a new socket, to another value than it has, and must
 * have that value later.  What this kernel does not have, or not for this type of socket,
 * is left out.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "check.h"

struct option {
	int level, name, value;
	int fd, set;		/* what it is then; fd -1: there is none */
	const char *text;
};

#define O(level, name, value)	{ level, name, value, -1, 0, #name }

/* What there is of `list` in this type of socket; at least `least`. */
static void set_options(struct option *list, size_t count, int family, int type, size_t least)
{
	size_t nr_set = 0;

	for (size_t i = 0; i < count; i++) {
		struct option *o = &list[i];
		socklen_t length = sizeof(int);
		int fd = socket(family, type, 0), usual = 0;

		NEED(fd >= 0);
		if (!getsockopt(fd, o->level, o->name, &usual, &length) &&
		    !setsockopt(fd, o->level, o->name, &o->value, sizeof(int)) &&
		    !getsockopt(fd, o->level, o->name, &o->set, &length) && o->set != usual) {
			o->fd = fd;
			nr_set++;
		} else {
			fprintf(stderr, "# left out: %s\n", o->text);
			close(fd);
		}
	}
	NEED(nr_set >= least);
}

static void check_options(const struct option *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *o = &list[i];
		socklen_t length = sizeof(int);
		int value = 0;

		if (o->fd >= 0 && (getsockopt(o->fd, o->level, o->name, &value, &length) ||
				   value != o->set)) {
			fprintf(stderr, "# %s is %d, was %d\n", o->text, value, o->set);
			check_failures++;
		}
	}
}

#define COUNT(list)	(sizeof(list) / sizeof(*(list)))

/* ---- dual ---- */

/* What a socket of AF_INET6 has for IPv4. */
static void options_dual(void)
{
	struct option list[] = {
		O(IPPROTO_IP, IP_PKTINFO, 1), O(IPPROTO_IP, IP_RECVTOS, 1),
		O(IPPROTO_IP, IP_RECVERR, 1), O(IPPROTO_IP, IP_TOS, 0x10),
		O(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO), O(IPPROTO_IP, IP_TTL, 7),
		O(IPPROTO_IP, IP_RECVTTL, 1),
	};

	set_options(list, COUNT(list), AF_INET6, SOCK_DGRAM, COUNT(list));
	checkpoint_here();
	check_options(list, COUNT(list));
}

static const struct check checks[] = {
	{ "dual", options_dual },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
