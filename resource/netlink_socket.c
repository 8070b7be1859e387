// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink sockets (netlink(7)): protocol, port ID, groups, options.
 * Unread messages from the kernel describe the machine at that time, and can only
 * be read by receiving them: as long as there are some, the socket cannot be
 * saved.
 */
#include "resource/file.h"
#include "resource/socket.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"

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

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__NetlinkSocket *s = file_new_kind(file, KCR__FILE__KIND_NETLINK_SOCKET, sizeof(*s));
	struct sockaddr_nl local = {}, remote = {};
	socklen_t length = sizeof(local);
	int err;

	if (!s)
		return -ENOMEM;
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
	err = save_groups(probe, s);
	return err ?: socket_options_save(t, probe, AF_NETLINK, s->type, s->protocol, &s->option,
					  &s->n_option);
}

/* ---- rebuild ---------------------------------------------------------------- */

/* The old port ID, or any other if that is in use: few programs care. */
static int bind_port(int fd, uint32_t port)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_pid = port };

	if (!bind(fd, (struct sockaddr *)&local, sizeof(local)))
		return 0;
	local.nl_pid = 0;
	return errno == EADDRINUSE && !bind(fd, (struct sockaddr *)&local, sizeof(local)) ?
	       0 : -errno;
}

static int set_up(const Kcr__File *file, int fd)
{
	const Kcr__NetlinkSocket *s = file->netlink_socket;
	int err = s->port ? bind_port(fd, s->port) : 0;

	if (err)
		return rebuild_error(file, err, "bind");
	for (size_t i = 0; i < s->n_group; i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &s->group[i],
			       sizeof(s->group[i])))
			return rebuild_error(file, -errno, "cannot join group %u", s->group[i]);
	socket_options_set(fd, s->option, s->n_option);
	return 0;
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
