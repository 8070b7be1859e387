// SPDX-License-Identifier: GPL-2.0
/* One query of NETLINK_SOCK_DIAG per Unix socket: state and peer. */
#include "resource/unix_diag.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "resource/file.h"

static void take_attribute(const struct rtattr *a, struct unix_state *out)
{
	const void *data = RTA_DATA(a);
	size_t length = RTA_PAYLOAD(a);
	struct unix_diag_rqlen queue;
	struct unix_diag_vfs node;

	switch (a->rta_type) {
	case UNIX_DIAG_PEER:
		if (length >= sizeof(out->peer))
			memcpy(&out->peer, data, sizeof(out->peer));
		break;
	case UNIX_DIAG_SHUTDOWN:
		if (length >= 1)
			memcpy(&out->shutdown, data, 1);
		break;
	case UNIX_DIAG_RQLEN:
		if (length >= sizeof(queue)) {
			memcpy(&queue, data, sizeof(queue));
			out->nr_waiting = queue.udiag_rqueue;
			out->backlog = out->unread = queue.udiag_wqueue;
		}
		break;
	case UNIX_DIAG_VFS:
		if (length >= sizeof(node)) {
			memcpy(&node, data, sizeof(node));
			out->node = node.udiag_vfs_ino;
		}
		break;
	case UNIX_DIAG_ICONS:
		out->nr_pending = length / sizeof(*out->pending);
		if (out->nr_pending > UNIX_PENDING_MAX)
			out->nr_pending = UNIX_PENDING_MAX;
		memcpy(out->pending, data, out->nr_pending * sizeof(*out->pending));
		break;
	}
}

int unix_diag(struct file_table *t, ino_t ino, struct unix_state *out)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req request;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.request = { .sdiag_family = AF_UNIX, .udiag_ino = ino, .udiag_states = ~0u,
			     .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN |
					   UDIAG_SHOW_VFS,
			     .udiag_cookie = { ~0u, ~0u } },
	};
	union { struct nlmsghdr head; char bytes[8192]; } answer;
	const struct unix_diag_msg *message;
	int fd = file_table_diag(t);
	ssize_t got;

	memset(out, 0, sizeof(*out));
	if (fd < 0)
		return fd;
	if (send(fd, &ask, sizeof(ask), 0) != sizeof(ask))
		return -errno;
	got = recv(fd, &answer, sizeof(answer), 0);
	if (got < 0)
		return -errno;
	if (!NLMSG_OK(&answer.head, (size_t)got))
		return -EPROTO;
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(&answer.head))->error ?: -ENOENT;
	if (answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(*message)))
		return -EPROTO;
	message = NLMSG_DATA(&answer.head);
	out->state = message->udiag_state;
	got = answer.head.nlmsg_len - NLMSG_LENGTH(sizeof(*message));
	for (const struct rtattr *a = (const void *)(message + 1); RTA_OK(a, got);
	     a = RTA_NEXT(a, got))
		take_attribute(a, out);
	return 0;
}
