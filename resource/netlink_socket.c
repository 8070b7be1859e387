// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink sockets (netlink(7)): protocol, port ID, groups, options.
 * Unread messages from the kernel describe the machine at that time, and can only
 * be read by receiving them: as long as there are some, the socket cannot be
 * saved.  Groups of generic netlink have names (generic_group.h).
 */
#include "resource/file.h"
#include "resource/socket.h"

#include <errno.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/generic_group.h"
#include "resource/socket_unsaved.h"

#define GROUP_WORDS	32	/* of 32 groups each: more than any protocol has */

static bool match(const struct file_probe *probe)
{
	return socket_family(probe) == AF_NETLINK;
}

/* ---- save ------------------------------------------------------------------- */

/* Does /proc/THREAD/net/netlink show unread bytes or an unfinished dump for this socket? */
static bool is_busy(const struct file_probe *probe)
{
	FILE *table = proc_stream(probe->thread, "net/netlink");
	unsigned long inode, unread, list;
	bool busy = false;
	char line[256];

	while (table && fgets(line, sizeof(line), table))
		if (sscanf(line, "%*s %*s %*s %*s %lu %*s %lu %*s %*s %lu", &unread, &list,
			   &inode) == 3 && inode == probe->st.st_ino)
			busy = unread || list;
	if (table)
		fclose(table);
	return busy;
}

static int save_groups(const struct file_probe *probe, Kcr__NetlinkSocket *s)
{
	uint32_t word[GROUP_WORDS] = {};
	socklen_t length = sizeof(word);

	if (getsockopt(probe->fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, word, &length))
		return file_save_error(probe, -errno, "cannot query its groups");
	if (length > sizeof(word))
		length = sizeof(word);
	s->group = calloc(8 * sizeof(word), sizeof(*s->group));
	if (!s->group)
		return report_errno(-ENOMEM, "saving a socket");
	for (uint32_t i = 0; i < 8 * length; i++)
		if (word[i / 32] & 1u << i % 32)
			s->group[s->n_group++] = i + 1;
	return 0;
}

/* Does a line of /proc/net/netfilter/NAME, "QUEUE PORT …", name this port? */
static bool is_listed(const struct file_probe *probe, const char *name, uint32_t port)
{
	FILE *table = proc_stream(probe->thread, name);
	unsigned int queue, owner;
	bool listed = false;
	char line[256];

	while (table && fgets(line, sizeof(line), table))
		listed |= sscanf(line, "%u %u", &queue, &owner) == 2 && owner == port;
	if (table)
		fclose(table);
	return listed;
}

/* Packets are on their way to it, and wait for its verdict. */
static bool has_queue(const struct file_probe *probe, const Kcr__NetlinkSocket *s)
{
	return s->protocol == NETLINK_NETFILTER && s->port &&
	       (is_listed(probe, "net/netfilter/nfnetlink_queue", s->port) ||
		is_listed(probe, "net/netfilter/nfnetlink_log", s->port));
}

/* What it has asked for by a message, of which only later kernels know that it was this socket. */
static bool gets_process_events(const Kcr__NetlinkSocket *s)
{
	for (size_t i = 0; i < s->n_group && s->protocol == NETLINK_CONNECTOR; i++)
		if (s->group[i] == CN_IDX_PROC)
			return true;
	return false;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__NetlinkSocket *s = file_new_kind(file, KCR__FILE__KIND_NETLINK_SOCKET, sizeof(*s));
	struct sockaddr_nl local = {}, remote = {};
	socklen_t length = sizeof(local);
	int err;

	if (!s)
		return -ENOMEM;
	err = socket_namespace_check(t, probe);
	if (err)
		return err;
	s->type = socket_value(probe->fd, SO_TYPE);
	s->protocol = socket_value(probe->fd, SO_PROTOCOL);
	if (getsockname(probe->fd, (struct sockaddr *)&local, &length))
		return file_save_error(probe, -errno, "cannot query its address");
	length = sizeof(remote);
	if (!getpeername(probe->fd, (struct sockaddr *)&remote, &length) &&
	    (remote.nl_pid || remote.nl_groups))
		return file_unsupported(t, "a netlink socket connected to another program");
	/* In a dry run the program still runs, and will probably read it. */
	if (!file_table_is_dry(t) && is_busy(probe))
		return file_unsupported(t, "a netlink socket with unread messages");
	s->port = local.nl_pid;
	if (has_queue(probe, s))
		return file_unsupported(t, "a netlink socket that gets packets (NFQUEUE, NFLOG)");
	err = save_groups(probe, s);
	if (!err && gets_process_events(s))
		return file_unsupported(t, "a netlink socket that gets events of processes "
					"(NETLINK_CONNECTOR)");
	if (!err && s->protocol == NETLINK_GENERIC) {
		err = generic_group_save(s);
		if (err)
			return file_save_error(probe, err, "cannot find out what its groups are");
	}
	return err ?: socket_options_save(t, probe, AF_NETLINK, s->type, s->protocol, &s->option,
					  &s->n_option);
}

/* ---- rebuild ---------------------------------------------------------------- */

/* The old port ID, or any other if that is in use: few programs care. */
static int bind_port(const Kcr__File *file, int fd)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_pid = file->netlink_socket->port };

	if (!bind(fd, (struct sockaddr *)&local, sizeof(local)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	local.nl_pid = 0;
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)))
		return -errno;
	report_warn("%s: its port %u is in use, and it has got another: the program may go on using that",
		    file->description ?: "a netlink socket", file->netlink_socket->port);
	return 0;
}

/* What a group is called here; a generic one that is not known by name keeps its number. */
static int find_group(const Kcr__File *file, uint32_t *number)
{
	const Kcr__NetlinkSocket *s = file->netlink_socket;

	for (size_t i = 0; i < s->n_generic_group; i++) {
		const Kcr__NetlinkGroup *group = s->generic_group[i];
		uint32_t family;
		int err;

		if (group->number != *number)
			continue;
		err = generic_group_find(group, number, &family);
		if (err)
			return rebuild_error(file, err, "the group %s of generic netlink's %s",
					     group->name, group->family);
		if (family != group->family_id)
			report_warn("generic netlink's %s has the number %u here and had %u: the "
				    "program may go on using that", group->family, family,
				    group->family_id);
		break;
	}
	return 0;
}

static int join(const Kcr__File *file, int fd, uint32_t group)
{
	int err = find_group(file, &group);

	if (err)
		return err;
	return setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) ?
	       rebuild_error(file, -errno, "cannot join group %u", group) : 0;
}

static int set_up(const Kcr__File *file, int fd)
{
	const Kcr__NetlinkSocket *s = file->netlink_socket;
	int err = s->port ? bind_port(file, fd) : 0;

	if (err)
		return rebuild_error(file, err, "bind");
	for (size_t i = 0; i < s->n_group && !err; i++)
		err = join(file, fd, s->group[i]);
	if (!err)
		socket_options_set(fd, s->option, s->n_option);
	return err;
}

static int open_netlink(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__NetlinkSocket *s = file->netlink_socket;
	int fd = socket(AF_NETLINK, s->type | SOCK_CLOEXEC, s->protocol);
	int err;

	if (fd < 0)
		return rebuild_error(file, -errno, "socket");
	err = set_up(file, fd);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_netlink_socket = {
	.kind = KCR__FILE__KIND_NETLINK_SOCKET,
	.name = "netlink socket",
	.match = match,
	.save = save,
	.open = open_netlink,
};
