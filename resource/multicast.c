// SPDX-License-Identifier: GPL-2.0
/*
 * The multicast groups that a socket has joined, saved among its options.  The kernel tells
 * no list of them, but for each group of the machine whether the socket is in it; one of AF_INET6 may be in IPv4
 * groups, too.
 * Interfaces are known by their numbers.
 */
#include "resource/multicast.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/socket.h"

#define SOURCES_MAX	64	/* asked for at first */

static int add_join(const struct group_filter *f, int level, Kcr__SocketOption ***list,
		    size_t *count)
{
	struct group_req join = { .gr_interface = f->gf_interface, .gr_group = f->gf_group };

	return socket_option_add(list, count, level, MCAST_JOIN_GROUP, &join, sizeof(join));
}

/* Saves the membership in one group, if it is a member. */
static int save_group(const struct file_probe *probe, uint32_t interface,
		      const struct sockaddr_storage *group, Kcr__SocketOption ***list,
		      size_t *count)
{
	int level = group->ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, err;
	uint32_t room = SOURCES_MAX;
	socklen_t length = GROUP_FILTER_SIZE(room);
	struct group_filter *f = calloc(1, length), *more;

	while (f) {
		f->gf_interface = interface;
		f->gf_group = *group;
		f->gf_numsrc = room;
		if (getsockopt(probe->fd, level, MCAST_MSFILTER, f, &length)) {
			free(f);
			return 0;
		}
		if (f->gf_numsrc <= room)
			break;
		room = f->gf_numsrc;
		length = GROUP_FILTER_SIZE(room);
		more = realloc(f, length);
		if (!more)
			free(f);
		f = more;
	}
	if (!f)
		return report_errno(-ENOMEM, "saving a socket");
	err = add_join(f, level, list, count);
	if (!err && (f->gf_fmode != MCAST_EXCLUDE || f->gf_numsrc))
		err = socket_option_add(list, count, level, MCAST_MSFILTER, f,
					GROUP_FILTER_SIZE(f->gf_numsrc));
	free(f);
	return err;
}

/* "1	lo : …" is an interface, "	010000E0 …" a group that it is in. */
static bool parse_v4(const char *line, uint32_t *interface, struct sockaddr_storage *group)
{
	struct sockaddr_in *a = (struct sockaddr_in *)group;

	if (isdigit((unsigned char)*line)) {
		*interface = strtoul(line, NULL, 10);
		return false;
	}
	a->sin_family = AF_INET;
	return *line == '\t' && sscanf(line, "%8x", &a->sin_addr.s_addr) == 1;
}

/* "1 lo ff020000000000000000000000000001 …" */
static bool parse_v6(const char *line, uint32_t *interface, struct sockaddr_storage *group)
{
	struct sockaddr_in6 *a = (struct sockaddr_in6 *)group;
	char digits[33];

	a->sin6_family = AF_INET6;
	if (sscanf(line, "%u %*s %32[0-9a-f]", interface, digits) != 2 || strlen(digits) != 32)
		return false;
	for (int i = 0; i < 16; i++)
		if (sscanf(digits + 2 * i, "%2hhx", &a->sin6_addr.s6_addr[i]) != 1)
			return false;
	return true;
}

static int save_groups_of(const struct file_probe *probe, int family, Kcr__SocketOption ***list,
			  size_t *count)
{
	char *text = proc_text(PROC_SELF, family == AF_INET ? "net/igmp" : "net/igmp6", NULL);
	uint32_t interface = 0;
	int err = 0;

	for (char *line = text, *end; line && *line && !err; line = end) {
		struct sockaddr_storage group = {};

		end = line + strcspn(line, "\n");
		end += *end == '\n';
		if (family == AF_INET ? parse_v4(line, &interface, &group) :
					parse_v6(line, &interface, &group))
			err = save_group(probe, interface, &group, list, count);
	}
	free(text);
	return err;
}

int multicast_save(const struct file_probe *probe, int family, Kcr__SocketOption ***list,
		   size_t *count)
{
	int err = save_groups_of(probe, AF_INET, list, count);

	return err || family == AF_INET ? err : save_groups_of(probe, AF_INET6, list, count);
}

bool multicast_is(const Kcr__SocketOption *o)
{
	return (o->level == IPPROTO_IP || o->level == IPPROTO_IPV6) &&
	       (o->name == MCAST_JOIN_GROUP || o->name == MCAST_MSFILTER);
}
