// SPDX-License-Identifier: GPL-2.0
/*
 * TCP connections that wait in the queue of a listening socket.  Only sock_diag shows
 * them, as connections that have no inode although they have not been closed; it does not
 * say in which queue they are, nor in which order: their addresses and their age do.
 * And connections whose other end has been closed with data unsent, which nobody can read.
 */
#include "resource/not_accepted.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "proc/clock.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_diag.h"
#include "resource/inet_socket.h"
#include "resource/option_names.h"
#include "resource/socket.h"

#define OPEN_STATES	(1 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT)
#define CLOSED_STATES	(1 << TCP_FIN_WAIT1 | 1 << TCP_CLOSING | 1 << TCP_LAST_ACK)

#define LIST_NS		2000000
#define LIST_TRIES	10

struct waiting {
	uint8_t local[INET_END], remote[INET_END];
	uint32_t client;		/* its file, 0: not in the tree */
	uint32_t age_ms;
	bool ended, unread;
};

struct queue {
	struct waiting *one;
	size_t count;
};

/* ---- sock_diag ------------------------------------------------------------------------ */

static uint32_t age_of(const struct nlmsghdr *head)
{
	struct tcp_info info;

	inet_diag_info(head, &info, sizeof(info));
	return info.tcpi_last_data_recv;	/* nothing received: since it was made */
}

/* Does a connection with this local end belong to a listening socket at `at`? */
static bool is_at(const uint8_t local[INET_END], const uint8_t at[INET_END])
{
	static const uint8_t any4[16] = { [10] = 0xff, [11] = 0xff }, any6[16];

	return !memcmp(local + 16, at + 16, 2) &&
	       (!memcmp(local, at, 16) || !memcmp(at, any4, 16) || !memcmp(at, any6, 16));
}

/* Adds the connection of one message, if it waits for the socket that listens at `at`. */
static int take(struct file_table *t, struct queue *q, const struct nlmsghdr *head,
		const uint8_t at[INET_END])
{
	const struct inet_diag_msg *m = NLMSG_DATA(head);
	struct waiting *more, *w;

	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->idiag_inode)
		return 0;
	more = realloc(q->one, (q->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	q->one = more;
	w = &more[q->count];
	inet_end_make(w->local, m->idiag_family, m->id.idiag_src, m->id.idiag_sport);
	inet_end_make(w->remote, m->idiag_family, m->id.idiag_dst, m->id.idiag_dport);
	if (!is_at(w->local, at))
		return 0;
	w->ended = m->idiag_state == TCP_CLOSE_WAIT;
	w->unread = m->idiag_rqueue > w->ended;		/* its end counts as a byte */
	w->age_ms = age_of(head);
	q->count++;
	return inet_end_find(t, w->remote, w->local, NULL, &w->client);
}

/* All that waits for the socket that listens at `at`. */
static int list_once(struct file_table *t, int family, const uint8_t at[INET_END], struct queue *q)
{
	struct inet_question question = {
		.request = { .sdiag_family = family, .sdiag_protocol = IPPROTO_TCP,
			     .idiag_states = OPEN_STATES,
			     .idiag_ext = 1 << (INET_DIAG_INFO - 1) },
	};
	union { struct nlmsghdr head; char bytes[32768]; } answer;
	int fd = inet_diag_ask(t, &question, NLM_F_DUMP), err = 0;
	bool done = false;

	if (fd < 0)
		return fd;
	while (!done) {
		ssize_t got = recv(fd, &answer, sizeof(answer), 0);

		if (got < 0)
			return -errno;
		for (const struct nlmsghdr *h = &answer.head; NLMSG_OK(h, (size_t)got) && !done;
		     h = NLMSG_NEXT(h, got)) {
			done = h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (h->nlmsg_type == NLMSG_ERROR)
				err = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			else if (!done && !err)
				err = take(t, q, h, at);
		}
	}
	return err;
}

/*
 * The kernel counts each age back from the moment when it comes to that socket: they
 * compare if the whole takes less than the unit of the kernel's clock.
 */
static int list(struct file_table *t, int family, const uint8_t at[INET_END], struct queue *q)
{
	uint64_t start;
	int err = 0;

	for (int try = 0; try < LIST_TRIES && !err; try++) {
		q->count = 0;
		start = now_ns();
		err = list_once(t, family, at, q);
		if (now_ns() - start < LIST_NS)
			break;
	}
	return err;
}

/* ---- listening sockets ------------------------------------------------------------------ */

static int by_age(const void *a, const void *b)
{
	const struct waiting *v = a, *w = b;

	if (v->age_ms != w->age_ms)
		return v->age_ms > w->age_ms ? -1 : 1;
	return (v->client > w->client) - (v->client < w->client);
}

/* With Multipath TCP it has connections of TCP, too. */
static bool listens(const struct file_probe *p)
{
	int protocol;

	if (!S_ISSOCK(p->st.st_mode) || socket_value(p->fd, SO_ACCEPTCONN) != 1)
		return false;
	protocol = socket_value(p->fd, SO_PROTOCOL);
	return protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP;
}

/* How many connections wait for other sockets of the tree at the same address before this one? */
static size_t count_before(struct file_table *t, const struct file_probe *probe,
			   const uint8_t at[INET_END])
{
	size_t sum = 0;

	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);
		struct tcp_info info = {};
		socklen_t length = sizeof(info);
		uint8_t end[INET_END];

		if (p == probe)
			break;
		if (listens(p) && inet_end_get(p->fd, false, end) && !memcmp(end, at, sizeof(end)) &&
		    !getsockopt(p->fd, IPPROTO_TCP, TCP_INFO, &info, &length))
			sum += info.tcpi_unacked;
	}
	return sum;
}

/*
 * Of its `count` connections those that are not found have been reset.  A client in the tree
 * is listed for each socket of a group (SO_REUSEPORT), and connects once.
 */
static int save_queue(struct queue *q, size_t from, size_t count, Kcr__InetSocket *s,
		      const char **what)
{
	static const struct waiting reset;
	size_t all = from + count > q->count ? from + count : q->count;
	int err = 0;

	qsort(q->one, q->count, sizeof(*q->one), by_age);
	for (size_t i = 0; i < all && !err && !*what; i++) {
		const struct waiting *w = i < q->count ? &q->one[i] : &reset;

		if (!w->client && (i < from || i >= from + count))
			continue;
		if (w->unread)
			*what = "with data in a connection";
		else
			err = not_accepted_add(&s->not_accepted, &s->n_not_accepted, w->client,
					       w->ended);
	}
	return err;
}

/* *what: why one of them cannot be saved, NULL: all can. */
static int look(struct file_table *t, const struct file_probe *probe, size_t count,
		Kcr__InetSocket *s, const char **what)
{
	struct queue q = {};
	uint8_t at[INET_END];
	int err = -EINVAL;

	*what = NULL;
	not_accepted_clear(&s->not_accepted, &s->n_not_accepted);
	if (inet_end_get(probe->fd, false, at))
		err = list(t, s->family, at, &q);
	if (!err)
		err = save_queue(&q, count_before(t, probe, at), count, s, what);
	free(q.one);
	return err;
}

int tcp_waiting_save(struct file_table *t, const struct file_probe *probe, uint32_t count,
		     Kcr__InetSocket *s)
{
	for (int patience = 0; count; patience++) {
		const char *what;
		int err = look(t, probe, count, s, &what);

		if (err)
			return file_save_error(probe, err, "cannot list its connections (tcp_diag)");
		if (!what)
			return 0;
		if (!not_accepted_wait(t, patience))
			return not_accepted_refuse(t, probe, "a TCP socket", what);
	}
	return 0;
}

/* ---- clients -------------------------------------------------------------------------------- */

/* Does a socket of the tree listen at the other end of this connection? */
static bool has_listener(struct file_table *t, const uint8_t remote[INET_END])
{
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);
		uint8_t at[INET_END];

		if (listens(p) && inet_end_get(p->fd, false, at) && is_at(remote, at))
			return true;
	}
	return false;
}

bool tcp_waiting_has(struct file_table *t, const struct file_probe *client)
{
	uint8_t local[INET_END], remote[INET_END];
	struct inet_diag_msg other;
	uint64_t rate;

	return inet_end_get(client->fd, false, local) && inet_end_get(client->fd, true, remote) &&
	       inet_diag_end(t, remote, local, 0, &other, &rate) && !other.idiag_inode &&
	       1 << other.idiag_state & OPEN_STATES && has_listener(t, remote);
}

/*
 * Has a peer that has closed its socket, or a helper of a restart (inet_hung_up.c), yet to send
 * something?  Of a helper nobody else knows how much; it hangs up at its end.
 */
static bool is_unsent(struct file_table *t, const struct file_probe *probe, char *what, size_t size)
{
	uint8_t local[INET_END], remote[INET_END];
	struct inet_diag_msg other;
	uint64_t rate;

	if (!inet_end_get(probe->fd, false, local) || !inet_end_get(probe->fd, true, remote) ||
	    !inet_diag_end(t, remote, local, 0, &other, &rate))
		return false;
	if (other.idiag_inode && rate == INET_HELPER_RATE) {
		snprintf(what, size, "lost peer had sent more, which a process that cr_restart has left "
			 "behind has yet to send");
		return true;
	}
	if (other.idiag_inode || !(1 << other.idiag_state & CLOSED_STATES) || other.idiag_wqueue <= 1)
		return false;
	snprintf(what, size, "peer has closed it and has yet to send %u bytes", other.idiag_wqueue - 1);
	return true;
}

int tcp_orphan_check(struct file_table *t, const struct file_probe *probe)
{
	char what[128];

	for (int patience = 0; is_unsent(t, probe, what, sizeof(what)); patience++) {
		if (not_accepted_wait(t, patience))
			continue;
		if (!file_table_is_dry(t))
			return file_save_error(probe, -EBUSY, "its %s", what);
		return file_unsupported(t, "a TCP connection whose %s, when the program reads the others",
					what);
	}
	return 0;
}
