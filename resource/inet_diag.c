// SPDX-License-Identifier: GPL-2.0
/* Queries of NETLINK_SOCK_DIAG about internet sockets. */
#include "resource/inet_diag.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>

#include "resource/file.h"

int inet_diag_ask(struct file_table *t, struct inet_question *q, int flags)
{
	int fd = file_table_diag(t);

	if (fd < 0)
		return fd;
	q->head.nlmsg_len = sizeof(*q);
	q->head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	q->head.nlmsg_flags = NLM_F_REQUEST | flags;
	q->request.id.idiag_cookie[0] = q->request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return send(fd, q, sizeof(*q), 0) == sizeof(*q) ? fd : -errno;
}

bool inet_diag_end(struct file_table *t, const uint8_t local[INET_END],
		   const uint8_t remote[INET_END], uint32_t interface, struct inet_diag_msg *out)
{
	struct inet_question q = {
		.request = { .sdiag_family = AF_INET6, .sdiag_protocol = IPPROTO_TCP,
			     .id.idiag_if = interface },
	};
	struct { struct nlmsghdr head; struct inet_diag_msg socket; char more[4096]; } answer;
	int fd;

	memcpy(q.request.id.idiag_src, local, 16);
	memcpy(&q.request.id.idiag_sport, local + 16, 2);
	memcpy(q.request.id.idiag_dst, remote, 16);
	memcpy(&q.request.id.idiag_dport, remote + 16, 2);
	fd = inet_diag_ask(t, &q, 0);
	if (fd < 0 || recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(answer.socket)))
		return false;
	*out = answer.socket;
	return true;
}

static uint8_t shutdown_of(const struct nlmsghdr *head)
{
	const struct inet_diag_msg *m = NLMSG_DATA(head);
	size_t left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

	for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == INET_DIAG_SHUTDOWN && RTA_PAYLOAD(a) >= 1)
			return *(const uint8_t *)RTA_DATA(a);
	return 0;
}

/* Sockets may share a port and its addresses: all at the port are listed. */
uint8_t inet_diag_udp_shutdown(struct file_table *t, const struct file_probe *probe, int family)
{
	struct inet_question q = {
		.request = { .sdiag_family = family, .sdiag_protocol = IPPROTO_UDP,
			     .idiag_states = ~0u },
	};
	union { struct nlmsghdr head; char bytes[32768]; } answer;
	uint8_t local[INET_END], shut = 0;
	bool done = false;
	int fd;

	if (!inet_end_get(probe->fd, false, local))
		return 0;
	memcpy(&q.request.id.idiag_sport, local + 16, 2);
	fd = q.request.id.idiag_sport ? inet_diag_ask(t, &q, NLM_F_DUMP) : -ENOENT;
	while (fd >= 0 && !done) {
		ssize_t got = recv(fd, &answer, sizeof(answer), 0);

		if (got <= 0)
			break;
		for (const struct nlmsghdr *h = &answer.head; NLMSG_OK(h, (size_t)got);
		     h = NLMSG_NEXT(h, got)) {
			const struct inet_diag_msg *m = NLMSG_DATA(h);

			done |= h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (!done && m->idiag_inode == (uint32_t)probe->st.st_ino)
				shut = shutdown_of(h);
		}
	}
	return shut;
}
