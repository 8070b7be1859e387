// SPDX-License-Identifier: GPL-2.0
/*
 * The coordinator's thread and its connections to the daemons.  See root.h.
 */
#include "job/coordinator/root.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/node.h"
#include "job/coordinator/root_internal.h"
#include "proc/thread.h"

#define READY_MAX	1024		/* nodes that are served before others have their turn */

void root_broadcast(struct root *root, uint32_t type, uint32_t rank,
		    const void *data, size_t length)
{
	for (size_t i = 0; i < root->nr_nodes; i++)
		if (root->node[i]->wire.fd >= 0)
			wire_queue(&root->node[i]->wire, type, rank, root->id, data, length);
}

/* ---- ranks ------------------------------------------------------------------------ */

/*
 * Refuses a restored rank that cannot take the others' addresses: closes the connection of
 * its daemon, which then closes those of its ranks, and these end, whatever their release.
 */
static void refuse_rank(struct root_node *n, const char *why)
{
	say_line("%s", why);
	shutdown(n->wire.fd, SHUT_RDWR);
}

static void rank_came(struct root *root, struct root_node *n, const struct wire_header *h,
		      const uint8_t *data)
{
	char why[VERSIONS_TEXT];
	struct wire_hello hello;
	struct root_rank *r;
	size_t end;

	if (h->length < sizeof(hello))
		return;
	memcpy(&hello, data, sizeof(hello));
	if (!root->nr_ranks && hello.size && hello.size <= WIRE_RANKS_MAX) {
		root->rank = calloc(hello.size, sizeof(*root->rank));
		root->nr_ranks = root->rank ? hello.size : 0;
	}
	if (h->rank >= root->nr_ranks || hello.address_length > h->length - sizeof(hello))
		return;
	end = sizeof(hello) + hello.address_length;
	r = &root->rank[h->rank];
	versions_take(r, data + end, h->length - end);
	if (hello.restarted && !versions_can(root, r, WIRE_CAN_MOVE, why)) {
		refuse_rank(n, why);
		return;
	}
	root->nr_present += !r->node;
	r->node = r->home = n;
	root->nr_restarted += !!hello.restarted - r->restarted;
	r->restarted = hello.restarted;
	free(r->address);
	r->address = malloc(hello.address_length + 1);
	r->address_length = r->address ? hello.address_length : 0;
	if (r->address_length)
		memcpy(r->address, data + sizeof(hello), r->address_length);
	if (hello.restarted) {
		addresses_came(root, n, r);
		wire_send(&root->launch, WIRE_HELLO, h->rank, 0, NULL, 0);
	}
	if (root->nr_present < root->nr_ranks)
		return;
	wire_send(&root->launch, WIRE_HELLO, WIRE_ALL, 0, NULL, 0);
	strangers_close();		/* every daemon has connected */
	periodic_begin(root);
	programs_serve(root);
}

static void rank_gone(struct root *root, struct root_rank *r)
{
	if (!r->node)
		return;
	r->node = NULL;
	root->nr_present--;
	programs_lost(root, r);
	root->nr_restarted -= r->restarted;
	r->restarted = false;
	phases_lost(root, r);
}

void root_from_node(struct root *root, struct root_node *n, const struct wire_header *h,
		    const uint8_t *data)
{
	struct root_rank *r = h->rank < root->nr_ranks ? &root->rank[h->rank] : NULL;

	hung_heard(n, h);
	if (h->type == WIRE_HELLO) {
		rank_came(root, n, h, data);
	} else if (h->type == WIRE_LAUNCH) {
		wire_send(&root->launch, h->type, h->rank, n->number, data, h->length);
	} else if (h->type == WIRE_BEAT) {
		wire_queue(&n->wire, h->type, h->rank, h->id, NULL, 0);
	} else if (h->type == WIRE_WHERE) {
		addresses_asked(root, n, h, data);
	} else if (h->type == WIRE_FAILED && h->rank == WIRE_ALL) {
		phases_node_failed(root, n, h, data);
	} else if (h->type == WIRE_FIGURES) {
		phases_figures(root, h, data);
	} else if (!r || r->home != n) {
		return;		/* the daemon also speaks for ranks that have ended */
	} else if (h->type == WIRE_GONE) {
		rank_gone(root, r);
	} else if (h->type == WIRE_ASK) {
		programs_ask(root, r, data, h->length);
	} else if (h->type == WIRE_UNABLE) {
		root->unable = true;
		if (h->length)
			wire_send(&root->launch, WIRE_UNABLE, WIRE_ALL, 0, NULL, 0);
	} else if (h->type == WIRE_LEAVE) {
		r->leaving = true;
		if (root->phase == PHASE_IDLE) {
			r->left = true;
			wire_queue(&n->wire, WIRE_LEFT, h->rank, 0, NULL, 0);
		}
	} else {
		phases_answer(root, r, h, data);
	}
}

/* ---- nodes ---------------------------------------------------------------------------- */

static void tell_gone(struct root *root, const struct root_node *n, int err)
{
	size_t length = strlen(n->name);
	struct {
		struct wire_failed head;
		char name[GREETING_NAME_MAX];
	} gone = { .head.code = -err };

	memcpy(gone.name, n->name, length);
	wire_send(&root->launch, WIRE_GONE, WIRE_ALL, n->number, &gone,
		  sizeof(gone.head) + length + 1);
}

static void node_gone(struct root *root, struct root_node *n, int err)
{
	epoll_ctl(root->ready, EPOLL_CTL_DEL, n->wire.fd, NULL);
	wire_close(&n->wire);
	addresses_lost(n);
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		if (root->rank[i].node == n)
			rank_gone(root, &root->rank[i]);
	phases_node_lost(root, n);
	tell_gone(root, n, err);
}

static void serve_node(struct root *root, struct root_node *n, short events)
{
	struct wire_header header;
	const uint8_t *data;
	int err = 0, got;

	if (events & POLLOUT)
		err = wire_flush(&n->wire);
	if (!err && events & ~POLLOUT)
		err = wire_fill(&n->wire);
	while ((got = wire_next(&n->wire, &header, &data)) == 1)
		root_from_node(root, n, &header, data);
	if (err || got < 0)
		node_gone(root, n, err ?: got);
}

/* Writes what there is for it, and has root->ready report what comes. */
static void watch_node(struct root *root, struct root_node *n)
{
	struct epoll_event wanted = { .data.ptr = n };

	if (n->wire.fd < 0)
		return;
	wire_flush(&n->wire);		/* a lost connection is reported */
	wanted.events = wire_events(&n->wire);
	if (n->watched == (short)wanted.events)
		return;
	if (epoll_ctl(root->ready, n->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, n->wire.fd, &wanted))
		node_gone(root, n, -errno);
	n->watched = wanted.events;
}

static void serve_nodes(struct root *root)
{
	struct epoll_event event[READY_MAX];
	int count = epoll_wait(root->ready, event, READY_MAX, 0);

	for (int i = 0; i < count; i++) {
		struct root_node *n = event[i].data.ptr;

		if (n->wire.fd >= 0)
			serve_node(root, n, event[i].events);
	}
}

/* The loop of root_thread() writes it. */
static void from_launch(struct root *root, const struct wire_header *h, const uint8_t *data)
{
	for (size_t i = 0; i < root->nr_nodes; i++)
		if (h->id == WIRE_ALL || h->id == i)
			wire_queue(&root->node[i]->wire, WIRE_LAUNCH, h->rank, h->id, data,
				   h->length);
}

/* Nothing of a checkpoint under way is to stay behind. */
static void end_job(struct root *root)
{
	phases_abort(root, ECANCELED, "the job has ended");
	result_close(root);
	for (size_t i = 0; i < root->nr_nodes; i++)
		wire_flush(&root->node[i]->wire);
	wire_close(&root->launch);
}

/* False: the job has ended. */
static bool serve_launch(struct root *root)
{
	struct wire_header header;
	const uint8_t *data;
	int err = wire_flush(&root->launch);

	if (!err)
		err = wire_fill(&root->launch);
	while (wire_next(&root->launch, &header, &data) == 1)
		from_launch(root, &header, data);
	if (err)
		end_job(root);
	return !err;
}

static void tell_joined(struct root *root, const struct root_node *n)
{
	struct sockaddr_in peer = { 0 };
	socklen_t size = sizeof(peer);
	struct {
		struct in_addr address;
		char name[GREETING_NAME_MAX];
	} joined;

	getpeername(n->wire.fd, (struct sockaddr *)&peer, &size);
	joined.address = peer.sin_addr;
	strcpy(joined.name, n->name);
	wire_send(&root->launch, WIRE_NODE, WIRE_ALL, n->number, &joined,
		  sizeof(joined.address) + strlen(n->name) + 1);
}

void root_add_node(struct root *root, const struct wire *w, char *name)
{
	struct root_node **grown, *n;

	grown = realloc(root->node, (root->nr_nodes + 1) * sizeof(*grown));
	n = calloc(1, sizeof(*n));
	if (grown)
		root->node = grown;
	if (!grown || !n) {
		struct wire lost = *w;

		wire_close(&lost);
		free(name);
		free(n);
		return;
	}
	n->wire = *w;
	n->name = name;
	n->number = root->nr_nodes;
	root->node[root->nr_nodes++] = n;
	/* Before it is told that it is welcome: what it does then comes behind this. */
	tell_joined(root, n);
	serve_node(root, n, 0);		/* messages that came with its greeting */
}

static int patience(const struct root *root)
{
	const int each[] = { phases_patience(root), hung_patience(root), strangers_patience(),
			     clients_patience(), periodic_patience(root) };
	int least = -1;

	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++)
		if (each[i] >= 0 && (least < 0 || each[i] < least))
			least = each[i];
	return least;
}

static void *root_thread(void *argument)
{
	struct pollfd p[POLLED_MAX + STRANGERS_MAX];
	struct root *root = argument;

	for (;;) {
		size_t clients, strangers;

		addresses_send(root);
		hung_look(root);
		for (size_t i = 0; i < root->nr_nodes; i++)
			watch_node(root, root->node[i]);
		p[0] = (struct pollfd){ trigger_fd(), POLLIN, 0 };
		p[1] = (struct pollfd){ root->launch.fd, wire_events(&root->launch), 0 };
		p[2] = (struct pollfd){ root->ready, POLLIN, 0 };
		clients = clients_watch(p + OWN_FDS);
		strangers = strangers_watch(p + OWN_FDS + clients);
		if (poll(p, OWN_FDS + clients + strangers, patience(root)) < 0)
			continue;
		phases_timeout(root);
		if (p[2].revents)
			serve_nodes(root);
		clients_serve(root, p + OWN_FDS, clients);
		strangers_serve(root, p + OWN_FDS + clients, strangers);
		if (p[1].revents && !serve_launch(root))
			return NULL;
		if (p[0].revents)
			trigger_serve(root);
		periodic_serve(root);
	}
	return NULL;
}

/* ---- beginning ----------------------------------------------------------------------------- */

static int make_secret(char *out)
{
	uint8_t bytes[WIRE_SECRET / 2];
	int err = seal_random(bytes, sizeof(bytes));

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(bytes); i++)
		sprintf(out + 2 * i, "%02x", bytes[i]);
	return 0;
}

static int open_launch(struct root *root)
{
	int ends[2];

	root->launch.fd = -1;
	if (!root->settings.launch)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	wire_open(&root->launch, ends[1]);
	*root->settings.launch = ends[0];
	return 0;
}

static void close_launch(struct root *root)
{
	if (root->launch.fd < 0)
		return;
	wire_close(&root->launch);
	close(*root->settings.launch);
	*root->settings.launch = -1;
}

static int start(struct root *root, char *address, size_t room)
{
	int err = make_secret(root->secret);

	if (!err)
		err = strangers_open(root->settings.interfaces, address, room);
	if (err)
		return err;
	err = descriptors_keep();
	root->ready = epoll_create1(EPOLL_CLOEXEC);
	if (!err && root->ready < 0)
		err = -errno;
	if (!err)
		err = clients_open();
	if (!err)
		err = open_launch(root);
	say_begin(&root->launch);
	if (!err)
		err = thread_start(NULL, root_thread, root);
	if (err) {
		close_launch(root);
		say_begin(NULL);
		if (root->ready >= 0)
			close(root->ready);
		strangers_close();
	}
	return err;
}

int root_start(struct snapshot *job, const struct root_settings *settings,
	       char *address, size_t room, char *secret)
{
	struct root *root;
	int err = seal_init();

	if (err)
		return err;
	root = calloc(1, sizeof(*root));
	if (!root)
		return -ENOMEM;
	root->job = job;
	root->settings = *settings;
	root->asker = WIRE_NOBODY;
	err = start(root, address, room);
	if (err)
		free(root);
	else
		strcpy(secret, root->secret);
	return err;
}
