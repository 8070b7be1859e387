// SPDX-License-Identifier: GPL-2.0
/* Queries of NETLINK_SOCK_DIAG about internet sockets. */
#include "resource/inet_diag.h"

#include <errno.h>
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
