/* SPDX-License-Identifier: GPL-2.0 */
/* What sock_diag tells of internet sockets. */
#ifndef KCR_RESOURCE_INET_DIAG_H
#define KCR_RESOURCE_INET_DIAG_H

#include <linux/inet_diag.h>
#include <linux/netlink.h>

#include "resource/inet_socket.h"

struct inet_question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 request;
};

/*
 * Sends a question about sockets of its protocol and family; `flags` as NLM_F_DUMP.  The
 * descriptor that the answer comes to, or -errno.
 */
int inet_diag_ask(struct file_table *t, struct inet_question *q, int flags);
/* Copies the struct tcp_info of an answer, as much of it as there is (INET_DIAG_INFO). */
void inet_diag_info(const struct nlmsghdr *head, void *info, size_t size);
/*
 * The end of a TCP connection on this machine: `interface` is the one that the socket is bound
 * to, 0: none; *rate is its SO_MAX_PACING_RATE.  False: there is none, or sock_diag does not tell.
 */
bool inet_diag_end(struct file_table *t, const uint8_t local[INET_END],
		   const uint8_t remote[INET_END], uint32_t interface, struct inet_diag_msg *out,
		   uint64_t *rate);

#endif /* KCR_RESOURCE_INET_DIAG_H */
