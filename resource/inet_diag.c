// SPDX-License-Identifier: GPL-2.0
/* Queries of NETLINK_SOCK_DIAG about internet sockets. */
#include "resource/inet_diag.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
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

void inet_diag_info(const struct nlmsghdr *head, void *info, size_t size)
{
	const struct inet_diag_msg *m = NLMSG_DATA(head);
	size_t left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

	memset(info, 0, size);
	for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == INET_DIAG_INFO)
			memcpy(info, RTA_DATA(a), RTA_PAYLOAD(a) < size ? RTA_PAYLOAD(a) : size);
}

bool inet_diag_end(struct file_table *t, const uint8_t local[INET_END],
		   const uint8_t remote[INET_END], uint32_t interface, struct inet_diag_msg *out,
		   uint64_t *rate)
{
	struct inet_question q = {
		.request = { .sdiag_family = AF_INET6, .sdiag_protocol = IPPROTO_TCP,
			     .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			     .id.idiag_if = interface },
	};
	union { struct nlmsghdr head; char bytes[32768]; } answer;
	struct tcp_info info;
	ssize_t got;
	int fd;

	memcpy(q.request.id.idiag_src, local, 16);
	memcpy(&q.request.id.idiag_sport, local + 16, 2);
	memcpy(q.request.id.idiag_dst, remote, 16);
	memcpy(&q.request.id.idiag_dport, remote + 16, 2);
	fd = inet_diag_ask(t, &q, 0);
	got = fd < 0 ? -1 : recv(fd, &answer, sizeof(answer), 0);
	if (got < 0 || !NLMSG_OK(&answer.head, (size_t)got) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(*out)))
		return false;
	memcpy(out, NLMSG_DATA(&answer.head), sizeof(*out));
	inet_diag_info(&answer.head, &info, sizeof(info));
	*rate = info.tcpi_max_pacing_rate;
	return true;
}
