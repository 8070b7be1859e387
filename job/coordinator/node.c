// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon of a node: its ranks, and the messages between them and the root.
 * node_start() only creates the sockets, so that the ranks' socket exists before they
 * do; the thread does the rest.
 */
#include "job/coordinator/node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/node_internal.h"
#include "job/request.h"
#include "proc/clock.h"
#include "proc/thread.h"

#define CONNECT_SECONDS	5
#define GREETING_SECONDS 10		/* of retries: strangers may take all of mpirun's slots */
#define FIRST_MEMBER	3		/* of the descriptors polled, those of the daemon before */
#define PAUSE_MS	100		/* until a rank that there was no room for is accepted */

/* ---- messages ---------------------------------------------------------------------- */

static void set_owing(struct node *node, struct member *m, bool owes)
{
	node->nr_owing += owes - m->owes;
	m->owes = owes;
}

/*
 * The answers of a phase go to the root together, once all ranks of this node that
 * were asked have answered: one write and one read for all.  Any other message is
 * sent at once, with the answers queued so far.
 */
static void pass_up(struct node *node, struct member *m, const struct wire_header *h,
		    const uint8_t *data)
{
	bool awaited = m->owes && (h->type == WIRE_BOOKMARKS || h->type == WIRE_DRAINED ||
				   h->type == WIRE_CONTINUED);

	if (awaited || h->type == WIRE_FAILED)
		set_owing(node, m, false);
	wire_queue(&node->root, h->type, m->rank, h->id, data, h->length);
	if (!awaited || !node->nr_owing)
		wire_flush(&node->root);
}

static void pass_down(struct node *node, const struct wire_header *h, const uint8_t *data)
{
	for (size_t i = 0; i < node->nr_members; i++) {
		struct member *m = node->member[i];

		if (m->wire.fd < 0 || m->rank == WIRE_ALL ||
		    (h->rank != WIRE_ALL && h->rank != m->rank))
			continue;
		if (h->type == WIRE_PREPARE || h->type == WIRE_DRAIN || h->type == WIRE_CONTINUE)
			set_owing(node, m, true);
		wire_send(&m->wire, h->type, m->rank, h->id, data, h->length);
	}
}

static bool somebody_suspends(const struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		if (node->member[i]->suspends)
			return true;
	return false;
}

/*
 * CHECK or PREPARE, once all ranks are done with the last checkpoint (an aborted one goes on
 * in the daemon while a file is written to the disk, or a rank is stopped), or with a restart.
 */
static void begin_next(struct node *node)
{
	struct wire_header h = node->next;
	bool checked = h.type == WIRE_PREPARE && node->copies;	/* its own dumps wait */

	if (!h.type || node->go_on.type || node_addresses_wanted(node) ||
	    (!checked && saving_under_way(node)))
		return;
	node->next.type = 0;
	if (h.type == WIRE_CHECK)
		saving_check(node);
	else
		pass_down(node, &h, (const uint8_t *)&node->next_asker);
}

/* CONTINUE, once no rank is about to suspend. */
static void let_go_on(struct node *node)
{
	struct wire_header h = node->go_on;

	if (!h.type || somebody_suspends(node))
		return;
	node->go_on.type = 0;
	pass_down(node, &h, NULL);
	begin_next(node);
}

static void go_on(struct node *node, const struct wire_header *h)
{
	node->go_on = *h;
	node->go_on.type = WIRE_CONTINUE;
	node->go_on.length = 0;			/* it has no data */
	let_go_on(node);
}

/* The rank has suspended, or cannot, or is lost. */
static void has_suspended(struct node *node, struct member *m, bool well)
{
	m->suspends = false;
	m->waits = m->wanted && well;
	m->wanted = false;
	saving_more(node);
	let_go_on(node);
}

void node_from_root(struct node *node, const struct wire_header *h, const uint8_t *data)
{
	switch (h->type) {
	case WIRE_DUMP:
		if (!saving_take_order(node, data, h->length, false))
			saving_begin(node);
		break;
	case WIRE_COPY:
		if (node->copies && node->id == h->id)
			saving_begin(node);
		break;
	case WIRE_CHECK:
		node->id = h->id;
		node->next = *h;
		if (saving_take_order(node, data, h->length, true))
			node->next.type = 0;
		begin_next(node);
		break;
	case WIRE_LOAD:
		loading_await(node, h);
		break;
	case WIRE_SYNC:
		saving_sync(node);
		break;
	case WIRE_FORGET:
		saving_forget(node, (const char *)data, h->length);
		break;
	case WIRE_SIGNAL:
		saving_signal(node, data, h->length);
		break;
	case WIRE_PREPARE:
		node->copies = node->copies && node->id == h->id;
		node->id = h->id;
		node->next = *h;
		if (node->next.length > sizeof(node->next_asker))
			node->next.length = sizeof(node->next_asker);
		memcpy(&node->next_asker, data, node->next.length);
		begin_next(node);
		break;
	case WIRE_WRITE:
		saving_write(node);
		go_on(node, h);
		break;
	case WIRE_LAUNCH:
		wire_send(&node->launch, h->type, h->rank, h->id, data, h->length);
		break;
	case WIRE_BEAT:
		node->beat_owed = false;
		break;
	case WIRE_ALIVE:
		beats_answer(node, h);
		break;
	case WIRE_BACK:
		node_addresses_back(node);
		break;
	case WIRE_FOUND:
		node_addresses_found(node, h, data);
		begin_next(node);
		break;
	case WIRE_ADDRESSES:
		pass_down(node, h, data);
		node_addresses_all(node);
		begin_next(node);
		break;
	case WIRE_CONTINUE:
		node->next.type = 0;
		loading_forget(node);
		saving_cancel(node);
		go_on(node, h);
		break;
	default:
		pass_down(node, h, data);
	}
}

void node_from_member(struct node *node, struct member *m, const struct wire_header *h,
		      const uint8_t *data)
{
	struct wire_hello hello;

	if (h->type == WIRE_HELLO && h->length >= sizeof(hello)) {
		memcpy(&hello, data, sizeof(hello));
		m->rank = h->rank;
		m->pid = hello.pid;
		m->top = hello.top;
		if (hello.restarted && hello.address_length <= h->length - sizeof(hello))
			node_addresses_came(node, m, data + sizeof(hello), hello.address_length);
	}
	if (m->rank != WIRE_ALL && h->type == WIRE_WHERE) {
		node_addresses_ask(node, m, h, data);
		begin_next(node);
		return;
	}
	if (m->suspends && h->type == WIRE_SUSPENDED) {
		has_suspended(node, m, true);
		return;
	}
	if (m->rank != WIRE_ALL)
		pass_up(node, m, h, data);
	if (m->suspends && h->type == WIRE_FAILED)
		has_suspended(node, m, false);
}

/* Handles its messages; -errno: the connection is to be closed. */
static int serve(struct node *node, struct wire *w, struct member *m, short events)
{
	struct wire_header header;
	const uint8_t *data;
	int err = 0, got;

	if (events & POLLOUT)
		err = wire_flush(w);
	if (!err && events & (POLLIN | POLLHUP | POLLERR))
		err = wire_fill(w);
	while ((got = wire_next(w, &header, &data)) == 1) {
		if (m)
			node_from_member(node, m, &header, data);
		else if (w == &node->root)
			node_from_root(node, &header, data);
		else
			wire_send(&node->root, WIRE_LAUNCH, header.rank, 0, data, header.length);
	}
	return got < 0 ? got : err;
}

/* ---- members -------------------------------------------------------------------------- */

static void accept_member(struct node *node)
{
	int fd = accept4(node->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct member **grown, *m;

	node->crowded = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	if (fd < 0)
		return;
	grown = job_peer_allowed(fd) ?
		realloc(node->member, (node->nr_members + 1) * sizeof(*grown)) : NULL;
	m = grown ? calloc(1, sizeof(*m)) : NULL;
	if (grown)
		node->member = grown;
	if (!m) {
		close(fd);
		return;
	}
	wire_open(&m->wire, fd);
	m->rank = WIRE_ALL;
	m->dump.fd = -1;
	node->member[node->nr_members++] = m;
}

/* Removes those whose connection is lost and whose dump, if any, has ended. */
static void remove_members(struct node *node)
{
	for (size_t i = 0; i < node->nr_members;) {
		struct member *m = node->member[i];

		if (m->wire.fd >= 0 || m->dump.fd >= 0) {
			i++;
			continue;
		}
		free(m);
		node->member[i] = node->member[--node->nr_members];
	}
}

static void lose_member(struct node *node, struct member *m)
{
	set_owing(node, m, false);
	if (m->rank != WIRE_ALL)
		wire_send(&node->root, WIRE_GONE, m->rank, node->id, NULL, 0);
	saving_lost(m);
	wire_close(&m->wire);
	if (m->suspends)
		has_suspended(node, m, false);
}

/* ---- the thread ------------------------------------------------------------------------ */

static size_t watch(const struct node *node, struct pollfd *p, size_t count)
{
	size_t n = 0;

	p[n++] = (struct pollfd){ node->crowded ? -1 : node->listener, POLLIN, 0 };
	p[n++] = (struct pollfd){ node->root.fd, wire_events(&node->root), 0 };
	p[n++] = (struct pollfd){ node->launch.fd, wire_events(&node->launch), 0 };
	for (size_t i = 0; i < count; i++) {
		struct member *m = node->member[i];

		p[n++] = (struct pollfd){ m->wire.fd, wire_events(&m->wire), 0 };
		p[n++] = (struct pollfd){ m->dump.fd, POLLIN, 0 };
	}
	return n;
}

static void hear_dump(struct node *node, struct member *m)
{
	if (!dump_read(&m->dump)) {
		saving_heard(node, m);
		return;
	}
	saving_ended(node, m);
	begin_next(node);
}

static int patience(const struct node *node)
{
	const int each[] = { beats_patience(node), node->crowded ? PAUSE_MS : -1, loading_patience(node) };
	int least = -1;

	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++)
		if (each[i] >= 0 && (least < 0 || each[i] < least))
			least = each[i];
	return least;
}

static void *node_thread(void *argument)
{
	struct node *node = argument;
	struct pollfd *p = NULL;
	int err = 0;

	while (!err) {
		size_t count = node->nr_members;
		struct pollfd *grown = realloc(p, (FIRST_MEMBER + 2 * count) * sizeof(*p));

		if (!grown)
			break;
		p = grown;
		beats_serve(node);
		loading_look(node);
		if (poll(p, watch(node, p, count), patience(node)) < 0)
			continue;
		node->crowded = false;
		for (size_t i = 0; i < count; i++) {
			struct member *m = node->member[i];

			const struct pollfd *of = p + FIRST_MEMBER + 2 * i;

			if (of[0].revents && serve(node, &m->wire, m, of[0].revents))
				lose_member(node, m);
			if (of[1].revents)
				hear_dump(node, m);
		}
		if (p[2].revents && serve(node, &node->launch, NULL, p[2].revents))
			wire_close(&node->launch);
		if (p[1].revents)
			err = serve(node, &node->root, NULL, p[1].revents);
		if (p[0].revents)
			accept_member(node);
		remove_members(node);
	}
	/* The ranks see the end of their connections and end themselves. */
	saving_cancel(node);
	for (size_t i = 0; i < node->nr_members; i++)
		wire_close(&node->member[i]->wire);
	close(node->listener);
	free(p);
	node_addresses_free(node);
	wire_close(&node->launch);		/* the ranks are ended meanwhile */
	saving_end(node);
	return NULL;
}

/* ---- beginning ------------------------------------------------------------------------- */

static int listen_for_ranks(char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), length, err;
	uint64_t number = 0;

	/* A restored rank distinguishes the new daemon from the old one by the name. */
	if (fd < 0 || getrandom(&number, sizeof(number), 0) < 0)
		return -errno;
	length = snprintf(name, NODE_NAME_MAX, "kcr-mpi-node.%d.%016" PRIx64, getpid(), number);
	memcpy(address.sun_path + 1, name, length);
	if (bind(fd, (struct sockaddr *)&address,
		 offsetof(struct sockaddr_un, sun_path) + 1 + length) || listen(fd, SOMAXCONN)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* One "address:port". */
static int connect_to(const char *text, unsigned int silence_s)
{
	struct timeval patience = { .tv_sec = CONNECT_SECONDS };
	struct sockaddr_in address = { .sin_family = AF_INET };
	char host[INET_ADDRSTRLEN] = "";
	unsigned short port;
	int fd;

	if (sscanf(text, "%15[0-9.]:%hu", host, &port) != 2 ||
	    inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return -EINVAL;
	address.sin_port = htons(port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	wire_make_room(fd);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		int err = -errno;

		close(fd);
		return err;
	}
	wire_watch_peer(fd, silence_s);		/* before, its time would be that of connect(2) */
	return fd;
}

/*
 * The first of its addresses that answers.  The loopback address, last in the
 * list, is used where there is no other.
 */
static int connect_to_root(const char *root, unsigned int silence_s)
{
	bool list = strchr(root, ',') != NULL;
	int fd = -EINVAL;

	while (root && *root) {
		fd = list && !strncmp(root, "127.", 4) ? -ECONNREFUSED :
								    connect_to(root, silence_s);
		if (fd >= 0)
			return fd;
		root = strchr(root, ',');
		root += root != NULL;
	}
	return fd;
}

/* cr_mpirun may be stopped, for hours: only a lost connection ends this. */
static void await_challenge(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

/*
 * Retries if the connection is lost during the greeting, as strangers may have taken its slot, or if
 * that has stood still.
 */
static int join_root(struct node *node, const char *root, const char *secret, const char *host,
		     unsigned int silence_s)
{
	const struct timespec nap = { 0, PAUSE_MS * 1000000 };
	time_t end = time(NULL) + GREETING_SECONDS;
	int fd, err;

	do {
		fd = connect_to_root(root, silence_s);
		if (fd < 0)
			return fd;
		await_challenge(fd);
		err = greeting_daemon(&node->root, fd, secret, host);
		if (!err)
			return 0;
		close(fd);
		nanosleep(&nap, NULL);
		if (err == -ETIMEDOUT)
			end = time(NULL) + GREETING_SECONDS;
	} while ((err == -ECONNRESET || err == -EPIPE || err == -ETIMEDOUT) && time(NULL) < end);
	return err;
}

static pthread_t thread;
static struct wire *to_root;		/* of the thread */

static int start(struct node *node, const char *root, const char *secret, const char *host,
		 unsigned int silence_s, char *name)
{
	int err;

	node->listener = listen_for_ranks(name);
	if (node->listener < 0)
		return node->listener;
	err = join_root(node, root, secret, host, silence_s ?: WIRE_SILENCE_S);
	if (err) {
		close(node->listener);
		return err;
	}
	beats_begin(node, silence_s);
	node->at_once = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
	err = thread_start(&thread, node_thread, node);
	if (err) {
		wire_close(&node->root);
		close(node->listener);
	}
	return err;
}

int node_start(const char *root, const char *secret, const char *host, unsigned int silence_s,
	       char *name, int *launch)
{
	int ends[2] = { -1, -1 }, err = seal_init();
	struct node *node;

	if (err)
		return err;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	if (launch && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		err = -errno;
	wire_open(&node->launch, ends[1]);
	if (!err)
		err = start(node, root, secret, host, silence_s, name);
	if (err) {
		close(ends[0]);
		close(ends[1]);
		free(node);
		return err;
	}
	to_root = &node->root;
	if (launch)
		*launch = ends[0];
	return 0;
}

void node_finish(void)
{
	shutdown(to_root->fd, SHUT_RDWR);
	pthread_join(thread, NULL);
}
