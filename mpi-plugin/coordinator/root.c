// SPDX-License-Identifier: GPL-2.0
/*
 * The coordinator's thread and its connections to the daemons.  See root.h.
 */
#include "mpi-plugin/coordinator/root.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mpi-plugin/coordinator/node.h"
#include "mpi-plugin/coordinator/root_internal.h"

#define INTRODUCTION_MAX	4096	/* bytes of a daemon that has not shown the secret */
#define ADDRESS_ROOM		24	/* of one address with its port and comma */
#define RANKS_MAX	(1u << 22)

struct root root;

uint64_t root_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void root_broadcast(uint32_t type, uint32_t rank, const void *data, size_t length)
{
	for (size_t i = 0; i < root.nr_nodes; i++)
		if (root.node[i]->name)
			wire_queue(&root.node[i]->wire, type, rank, root.id, data, length);
}

/* ---- ranks ------------------------------------------------------------------------ */

static void rank_came(struct root_node *n, const struct wire_header *h, const uint8_t *data)
{
	struct wire_hello hello;
	struct root_rank *r;

	if (h->length < sizeof(hello))
		return;
	memcpy(&hello, data, sizeof(hello));
	if (!root.nr_ranks && hello.size && hello.size <= RANKS_MAX) {
		root.rank = calloc(hello.size, sizeof(*root.rank));
		root.nr_ranks = root.rank ? hello.size : 0;
	}
	if (h->rank >= root.nr_ranks || hello.address_length > h->length - sizeof(hello))
		return;
	r = &root.rank[h->rank];
	root.nr_present += !r->node;
	r->node = r->home = n;
	root.nr_restarted += !!hello.restarted - r->restarted;
	r->restarted = hello.restarted;
	free(r->address);
	r->address = malloc(hello.address_length + 1);
	r->address_length = r->address ? hello.address_length : 0;
	if (r->address_length)
		memcpy(r->address, data + sizeof(hello), r->address_length);
	if (hello.restarted)
		addresses_collect();
	if (root.nr_present == root.nr_ranks)
		programs_serve();
}

static void rank_gone(struct root_rank *r)
{
	if (!r->node)
		return;
	r->node = NULL;
	root.nr_present--;
	programs_lost(r);
	root.nr_restarted -= r->restarted;
	r->restarted = false;
	phases_lost(r);
}

static void from_rank(struct root_node *n, const struct wire_header *h, const uint8_t *data)
{
	struct root_rank *r = h->rank < root.nr_ranks ? &root.rank[h->rank] : NULL;

	if (h->type == WIRE_HELLO) {
		rank_came(n, h, data);
	} else if (h->type == WIRE_FAILED && h->rank == WIRE_ALL) {
		phases_node_failed(n, h, data);
	} else if (!r || (r->node != n && h->type != WIRE_SUMMED)) {
		return;
	} else if (h->type == WIRE_GONE) {
		rank_gone(r);
	} else if (h->type == WIRE_ASK) {
		programs_ask(r, data, h->length);
	} else if (h->type == WIRE_UNABLE) {
		root.unable = true;
	} else if (h->type == WIRE_LEAVE) {
		r->leaving = true;
		if (root.phase == PHASE_IDLE) {
			r->left = true;
			wire_queue(&n->wire, WIRE_LEFT, h->rank, 0, NULL, 0);
		}
	} else {
		phases_answer(r, h, data);
	}
}

/* ---- nodes ---------------------------------------------------------------------------- */

static void node_gone(struct root_node *n)
{
	wire_close(&n->wire);
	n->wants_addresses = false;
	for (uint32_t i = 0; i < root.nr_ranks; i++)
		if (root.rank[i].node == n)
			rank_gone(&root.rank[i]);
	phases_node_lost(n);
}

/* The first message of a daemon. */
static int introduce(struct root_node *n, const struct wire_header *h, const uint8_t *data)
{
	if (h->type != WIRE_NODE || h->length <= WIRE_SECRET || data[h->length - 1] ||
	    memcmp(data, root.secret, WIRE_SECRET))
		return -EPERM;
	n->name = strdup((const char *)data + WIRE_SECRET);
	return n->name ? 0 : -ENOMEM;
}

static void serve_node(struct root_node *n, short events)
{
	struct wire_header header;
	const uint8_t *data;
	int err = 0, got;

	if (events & POLLOUT)
		err = wire_flush(&n->wire);
	if (!err && events & ~POLLOUT)
		err = wire_fill(&n->wire);
	while ((got = wire_next(&n->wire, &header, &data)) == 1) {
		if (n->name)
			from_rank(n, &header, data);
		else
			err = introduce(n, &header, data);
		if (!n->name && err)
			break;
	}
	if (!n->name && n->wire.in_end - n->wire.in_begin > INTRODUCTION_MAX)
		err = -EPROTO;		/* a stranger, who would have us keep it */
	if (err || got < 0)
		node_gone(n);
}

static void add_node(int fd)
{
	struct root_node **grown, *n;

	wire_watch_peer(fd);
	grown = realloc(root.node, (root.nr_nodes + 1) * sizeof(*grown));
	n = calloc(1, sizeof(*n));
	if (grown)
		root.node = grown;
	if (!grown || !n) {
		free(n);
		close(fd);
		return;
	}
	wire_open(&n->wire, fd);
	root.node[root.nr_nodes++] = n;
}

static void accept_nodes(void)
{
	int fd;

	while ((fd = descriptors_accept(root.listener)) >= 0)
		add_node(fd);
}

static void *root_thread(void *unused)
{
	struct pollfd *p = NULL;

	(void)unused;
	for (;;) {
		size_t count = root.nr_nodes, clients;
		struct pollfd *grown = realloc(p, (2 + count + CLIENTS_MAX + 1) * sizeof(*p));

		if (!grown)
			break;
		p = grown;
		addresses_send();
		p[0] = (struct pollfd){ root.listener, POLLIN, 0 };
		for (size_t i = 0; i < count; i++) {
			struct wire *w = &root.node[i]->wire;

			wire_flush(w);		/* poll tells if it is lost */
			p[1 + i] = (struct pollfd){ w->fd, wire_events(w), 0 };
		}
		p[1 + count] = (struct pollfd){ trigger_fd(), POLLIN, 0 };
		clients = clients_watch(p + 2 + count);
		if (poll(p, 2 + count + clients, phases_patience()) < 0)
			continue;
		phases_timeout();
		for (size_t i = 0; i < count; i++)
			if (p[1 + i].revents && root.node[i]->wire.fd >= 0)
				serve_node(root.node[i], p[1 + i].revents);
		if (p[0].revents)
			accept_nodes();
		clients_serve(p + 2 + count, clients);
		if (p[1 + count].revents)
			trigger_serve();
	}
	free(p);
	return NULL;
}

/* ---- beginning ----------------------------------------------------------------------------- */

static int listen_for_nodes(unsigned short *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		int err = -errno;

		close(fd);
		return err;
	}
	*port = ntohs(address.sin_port);
	return fd;
}

/* All of this machine's addresses; the daemons take the first that answers. */
static void format_addresses(unsigned short port, char *out, size_t room)
{
	struct ifaddrs *list = NULL;
	size_t length = 0;

	*out = '\0';
	if (getifaddrs(&list))
		list = NULL;
	for (struct ifaddrs *each = list; each && length + 2 * ADDRESS_ROOM < room;
	     each = each->ifa_next) {
		char text[INET_ADDRSTRLEN];

		if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET ||
		    each->ifa_flags & IFF_LOOPBACK || !(each->ifa_flags & IFF_UP))
			continue;
		inet_ntop(AF_INET, &((struct sockaddr_in *)each->ifa_addr)->sin_addr, text,
			  sizeof(text));
		length += snprintf(out + length, room - length, "%s:%hu,", text, port);
	}
	freeifaddrs(list);
	snprintf(out + length, room - length, "127.0.0.1:%hu", port);
}

static int make_secret(char *out)
{
	uint8_t bytes[WIRE_SECRET / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
	return 0;
}

int root_start(struct snapshot *job, const char *local, char *address, size_t room,
	       char *secret)
{
	unsigned short port = 0;
	int err = make_secret(root.secret);

	if (err)
		return err;
	root.job = job;
	root.local_default = local;
	root.asker = WIRE_NOBODY;
	root.listener = listen_for_nodes(&port);
	if (root.listener < 0)
		return root.listener;
	err = descriptors_keep();
	if (!err)
		err = clients_open();
	if (!err)
		err = thread_start(root_thread, NULL);
	if (err) {
		close(root.listener);
		return err;
	}
	format_addresses(port, address, room);
	strcpy(secret, root.secret);
	return 0;
}
