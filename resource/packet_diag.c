// SPDX-License-Identifier: GPL-2.0
/*
 * Queries of NETLINK_SOCK_DIAG about packet sockets.  The kernel lists all of the network
 * namespace, and cannot be asked for one.
 */
#include "resource/packet_diag.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "resource/file.h"

#define ANSWER_MAX	65536

static int take_members(const void *data, size_t length, struct packet_state *out)
{
	size_t count = length / sizeof(*out->member);

	free(out->member);
	out->nr_members = 0;
	out->member = malloc(count * sizeof(*out->member) + 1);
	if (!out->member)
		return -ENOMEM;
	memcpy(out->member, data, count * sizeof(*out->member));
	out->nr_members = count;
	return 0;
}

static void take(void *out, size_t size, const void *data, size_t length)
{
	memcpy(out, data, length < size ? length : size);
}

static int take_attribute(const struct rtattr *a, struct packet_state *out)
{
	const void *data = RTA_DATA(a);
	size_t length = RTA_PAYLOAD(a);

	switch (a->rta_type & NLA_TYPE_MASK) {
	case PACKET_DIAG_INFO:
		take(&out->info, sizeof(out->info), data, length);
		return 0;
	case PACKET_DIAG_MCLIST:
		return take_members(data, length, out);
	case PACKET_DIAG_FANOUT:
		out->in_group = true;
		return 0;
	case PACKET_DIAG_RX_RING:
		take(&out->rx, sizeof(out->rx), data, length);
		return 0;
	case PACKET_DIAG_TX_RING:
		take(&out->tx, sizeof(out->tx), data, length);
		return 0;
	default:
		return 0;
	}
}

static int take_socket(const struct nlmsghdr *head, struct packet_state *out)
{
	const struct packet_diag_msg *m = NLMSG_DATA(head);
	size_t left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	int err = 0;

	out->protocol = m->pdiag_num;
	for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, left) && !err;
	     a = RTA_NEXT(a, left))
		err = take_attribute(a, out);
	return err;
}

/* 1: found; 0: this one is another; -ESRCH: it was the end of the list; -errno. */
static int take_message(const struct nlmsghdr *h, ino_t ino, struct packet_state *out)
{
	const struct packet_diag_msg *m = NLMSG_DATA(h);

	if (h->nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)NLMSG_DATA(h))->error ?: -EPROTO;
	if (h->nlmsg_type == NLMSG_DONE)
		return -ESRCH;
	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->pdiag_ino != (uint32_t)ino)
		return 0;
	return take_socket(h, out) ?: 1;
}

static int ask(int fd)
{
	struct {
		struct nlmsghdr head;
		struct packet_diag_req request;
	} q = {
		.head = { .nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = AF_PACKET,
			     .pdiag_show = PACKET_SHOW_INFO | PACKET_SHOW_MCLIST |
					   PACKET_SHOW_RING_CFG | PACKET_SHOW_FANOUT },
	};

	return send(fd, &q, sizeof(q), 0) == sizeof(q) ? 0 : -errno;
}

/* The list is read to its end, whatever was found: the next question is to be answered. */
int packet_diag(struct file_table *t, ino_t ino, struct packet_state *out)
{
	struct nlmsghdr *answer = malloc(ANSWER_MAX);
	int fd = file_table_diag(t), err, step = 0;
	bool found = false;

	memset(out, 0, sizeof(*out));
	err = !answer ? -ENOMEM : fd < 0 ? fd : ask(fd);
	while (!err && step >= 0) {
		ssize_t got = recv(fd, answer, ANSWER_MAX, 0);

		if (got <= 0)
			step = got ? -errno : -EPROTO;
		for (struct nlmsghdr *h = answer; step >= 0 && NLMSG_OK(h, (size_t)got);
		     h = NLMSG_NEXT(h, got)) {
			step = take_message(h, ino, out);
			found |= step > 0;
		}
	}
	free(answer);
	return err ?: found && step == -ESRCH ? 0 : step;
}

void packet_state_free(struct packet_state *state)
{
	free(state->member);
	state->member = NULL;
	state->nr_members = 0;
}
