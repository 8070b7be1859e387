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
/*
 * The end of a TCP connection on this machine: `interface` is the one that the socket is bound
 * to, 0: none.  False: there is none, or sock_diag does not tell.
 */
bool inet_diag_end(struct file_table *t, const uint8_t local[INET_END],
		   const uint8_t remote[INET_END], uint32_t interface, struct inet_diag_msg *out);

/*
 * Which directions of a bound UDP socket have been ended, as RCV_SHUTDOWN 1 and SEND_SHUTDOWN 2;
 * 0 also if sock_diag does not tell.
 */
uint8_t inet_diag_udp_shutdown(struct file_table *t, const struct file_probe *probe, int family);

/* Does a TCP socket that listens or is connected have keys (TCP_MD5SIG)?  Only root is told. */
bool inet_diag_has_md5(struct file_table *t, const struct file_probe *probe, int family);

#endif /* KCR_RESOURCE_INET_DIAG_H */
