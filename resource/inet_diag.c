// SPDX-License-Identifier: GPL-2.0
/* Queries of NETLINK_SOCK_DIAG about internet sockets. */
#include "resource/inet_diag.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "resource/file.h"
#include "resource/option_names.h"
#include "resource/socket.h"

#define WITH_KEYS	(1 << (INET_DIAG_INFO - 1))	/* what they come with */

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

union answer { struct nlmsghdr head; char bytes[32768]; };

static const struct nlmsghdr *ask_end(struct file_table *t, const uint8_t local[INET_END],
				      const uint8_t remote[INET_END], uint32_t interface,
				      uint8_t extensions, union answer *answer)
{
	struct inet_question q = {
		.request = { .sdiag_family = AF_INET6, .sdiag_protocol = IPPROTO_TCP,
			     .id.idiag_if = interface, .idiag_ext = extensions },
	};
	ssize_t got;
	int fd;

	memcpy(q.request.id.idiag_src, local, 16);
	memcpy(&q.request.id.idiag_sport, local + 16, 2);
	memcpy(q.request.id.idiag_dst, remote, 16);
	memcpy(&q.request.id.idiag_dport, remote + 16, 2);
	fd = inet_diag_ask(t, &q, 0);
	got = fd < 0 ? -1 : recv(fd, answer, sizeof(*answer), 0);
	return got >= 0 && NLMSG_OK(&answer->head, (size_t)got) &&
	       answer->head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
	       answer->head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg)) ?
	       &answer->head : NULL;
}

bool inet_diag_end(struct file_table *t, const uint8_t local[INET_END],
		   const uint8_t remote[INET_END], uint32_t interface, struct inet_diag_msg *out)
{
	union answer answer;
	const struct nlmsghdr *end = ask_end(t, local, remote, interface, 0, &answer);

	if (end)
		memcpy(out, NLMSG_DATA(end), sizeof(*out));
	return end;
}

static const struct rtattr *attribute(const struct nlmsghdr *head, int type)
{
	const struct inet_diag_msg *m = NLMSG_DATA(head);
	size_t left = head->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

	for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == type)
			return a;
	return NULL;
}

/*
 * The socket's own message among those of all in these states at its port, which it may share
 * with others; NULL: none, or sock_diag does not tell.
 */
static const struct nlmsghdr *find_at_port(struct file_table *t, const struct file_probe *probe,
					   struct inet_question *q, union answer *found)
{
	const struct nlmsghdr *own = NULL;
	union answer answer;
	uint8_t local[INET_END];
	bool done = false;
	int fd;

	if (!inet_end_get(probe->fd, false, local))
		return NULL;
	memcpy(&q->request.id.idiag_sport, local + 16, 2);
	fd = q->request.id.idiag_sport ? inet_diag_ask(t, q, NLM_F_DUMP) : -ENOENT;
	while (fd >= 0 && !done) {
		ssize_t got = recv(fd, &answer, sizeof(answer), 0);

		if (got <= 0)
			break;
		for (const struct nlmsghdr *h = &answer.head; NLMSG_OK(h, (size_t)got);
		     h = NLMSG_NEXT(h, got)) {
			const struct inet_diag_msg *m = NLMSG_DATA(h);

			done |= h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (!done && m->idiag_inode == (uint32_t)probe->st.st_ino)
				own = memcpy(found, h, h->nlmsg_len);
		}
	}
	return own;
}

uint8_t inet_diag_udp_shutdown(struct file_table *t, const struct file_probe *probe, int family)
{
	struct inet_question q = {
		.request = { .sdiag_family = family, .sdiag_protocol = IPPROTO_UDP,
			     .idiag_states = ~0u },
	};
	union answer answer;
	const struct nlmsghdr *own = find_at_port(t, probe, &q, &answer);
	const struct rtattr *shut = own ? attribute(own, INET_DIAG_SHUTDOWN) : NULL;

	return shut && RTA_PAYLOAD(shut) >= 1 ? *(const uint8_t *)RTA_DATA(shut) : 0;
}

bool inet_diag_has_md5(struct file_table *t, const struct file_probe *probe, int family)
{
	struct inet_question q = {
		.request = { .sdiag_family = family, .sdiag_protocol = IPPROTO_TCP,
			     .idiag_states = 1 << TCP_LISTEN, .idiag_ext = WITH_KEYS },
	};
	int interface = socket_value(probe->fd, SO_BINDTOIFINDEX);
	uint8_t local[INET_END], remote[INET_END];
	const struct nlmsghdr *own = NULL;
	union answer answer;

	if (socket_value(probe->fd, SO_ACCEPTCONN) == 1)
		own = find_at_port(t, probe, &q, &answer);
	else if (inet_end_get(probe->fd, false, local) && inet_end_get(probe->fd, true, remote))
		own = ask_end(t, local, remote, interface > 0 ? interface : 0, WITH_KEYS, &answer);
	return own && attribute(own, INET_DIAG_MD5SIG);
}
