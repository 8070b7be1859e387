// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon of a node.  One thread owns everything here; node_start() only
 * makes the sockets, so that the ranks' one is there before they are.
 */
#include "mpi-plugin/coordinator/node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpi-plugin/coordinator/dump.h"
#include "mpi-plugin/coordinator/wire.h"
#include "mpi-plugin/job/local.h"
#include "mpi-plugin/job/request.h"
#include "mpi-plugin/job/snapshot.h"

#define MAX_ARGUMENTS	32
#define CONNECT_SECONDS	5

struct member {				/* a rank of this node */
	struct wire wire;
	uint32_t rank;			/* WIRE_ALL: it has not said yet */
	int32_t pid, top;		/* its own, and that of what the daemon started for it */
	bool suspends;			/* was told to, and has not answered */
	bool wanted;			/* is to be dumped then */
	bool waits;			/* for its turn to be dumped */
	bool owes;			/* an answer */
	struct dump dump;
	uint32_t dump_id;		/* of the checkpoint that it belongs to */
};

static struct {
	int listener;
	struct wire root;
	struct member **member;
	size_t nr_members;
	size_t nr_owing;
	size_t at_once;			/* dumps, as many as there are processors */
	uint32_t id;			/* of the checkpoint under way */
	struct wire_header go_on;	/* CONTINUE for those that suspend; type 0: none */
	struct wire_header next;	/* PREPARE for those not done with the last; type 0: none */
	uint32_t next_asker;		/* what came with it */
	struct wire_dump *order;
	char *argument[MAX_ARGUMENTS + 1];
	uint32_t *saved;		/* the ranks this checkpoint has saved here */
	size_t nr_saved;
	char **useless;			/* folders to remove once nothing is written any more */
} node;

static void begin_next(void);

int thread_start(void *(*function)(void *), void *argument)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, function, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_detach(thread);
	return -err;
}

/* ---- saving ---------------------------------------------------------------------- */

static void tell_failure(uint32_t id, uint32_t rank, int code, const char *text)
{
	size_t length = sizeof(struct wire_failed) + strlen(text) + 1;
	uint8_t *data = malloc(length);

	if (!data)
		return;
	memcpy(data, &(struct wire_failed){ code }, sizeof(struct wire_failed));
	strcpy((char *)data + sizeof(struct wire_failed), text);
	wire_send(&node.root, WIRE_FAILED, rank, id, data, length);
	free(data);
}

static void dump_member(struct member *m)
{
	char *path = snapshot_rank_path(node.order->strings, m->rank);
	int err = path ? dump_start(&m->dump, m->top, path, node.argument) : -ENOMEM;

	m->waits = false;
	m->dump_id = node.id;
	if (err)
		tell_failure(node.id, m->rank, -err, err == -ENOENT ?
			     "cr_checkpoint is not in the PATH of mpirun" :
			     "cannot start cr_checkpoint");
	free(path);
}

/* As many at a time as there are processors.  Returns how many are under way. */
static size_t dump_more(void)
{
	size_t running = 0;

	for (size_t i = 0; i < node.nr_members; i++)
		running += node.member[i]->dump.fd >= 0;
	for (size_t i = 0; i < node.nr_members && running < node.at_once; i++) {
		struct member *m = node.member[i];

		if (!m->waits)
			continue;
		dump_member(m);
		running += m->dump.fd >= 0;
	}
	return running;
}

static bool somebody_dumps(void)
{
	for (size_t i = 0; i < node.nr_members; i++)
		if (node.member[i]->dump.fd >= 0)
			return true;
	return false;
}

static void remove_useless(void)
{
	if (somebody_dumps())
		return;
	for (char **each = node.useless; each && *each; each++)
		local_remove(*each);
	strings_free(node.useless);
	node.useless = NULL;
}

static void dump_ended(struct member *m)
{
	char *message;
	int err = dump_finish(&m->dump, &message);

	if (err) {
		tell_failure(m->dump_id, m->rank, -err, message ? message : "cannot be saved");
	} else {
		node.saved[node.nr_saved++] = m->rank;
		wire_queue(&node.root, WIRE_DUMPED, m->rank, m->dump_id, NULL, 0);
	}
	free(message);
	if (!dump_more())
		wire_flush(&node.root);
	remove_useless();
	begin_next();
}

/* The order, and the folder if it is this node's. */
static int take_order(const uint8_t *data, size_t length)
{
	size_t count = 0;
	char *text, *end;

	free(node.order);
	free(node.saved);
	node.nr_saved = 0;
	node.order = length > sizeof(*node.order) ? malloc(length + 1) : NULL;
	node.saved = calloc(node.nr_members + 1, sizeof(*node.saved));
	if (!node.order || !node.saved)
		return -ENOMEM;
	memcpy(node.order, data, length);
	end = (char *)node.order + length;
	*end = '\0';
	for (text = node.order->strings + strlen(node.order->strings) + 1;
	     text < end && count < MAX_ARGUMENTS; text += strlen(text) + 1)
		node.argument[count++] = text;
	node.argument[count] = NULL;
	return node.order->local ? local_make(node.order->strings) : 0;
}

/* All ranks have drained their channels: this one may let go of its own. */
static void begin_member(struct member *m)
{
	m->suspends = m->wanted = true;
	wire_send(&m->wire, WIRE_SUSPEND, m->rank, node.id, NULL, 0);
}

static void dump_all(const uint8_t *data, size_t length)
{
	int err = take_order(data, length);
	char text[512];

	if (err) {
		snprintf(text, sizeof(text), "cannot create %s: %s",
			 node.order ? node.order->strings : "", strerror(-err));
		tell_failure(node.id, WIRE_ALL, -err, err == -ENOMEM ? "no memory" : text);
		return;
	}
	for (size_t i = 0; i < node.nr_members; i++)
		if (node.member[i]->rank != WIRE_ALL)
			begin_member(node.member[i]);
}

static void cancel_dumps(void)
{
	for (size_t i = 0; i < node.nr_members; i++) {
		node.member[i]->wanted = node.member[i]->waits = false;
		dump_cancel(&node.member[i]->dump);
	}
}

/* Of what was saved, also if the rank has ended meanwhile. */
static void sum_all(void)
{
	int synced = node.order->local && node.nr_saved ? local_sync(node.order->strings) : 0;

	for (size_t i = 0; i < node.nr_saved; i++) {
		struct wire_summed sum;
		char *path = snapshot_rank_path(node.order->strings, node.saved[i]);
		int err = path ? snapshot_sum(path, &sum.bytes, &sum.checksum) : -ENOMEM;

		free(path);
		if (err)
			tell_failure(node.id, node.saved[i], -err, "its context file cannot be read back");
		else if (synced)
			tell_failure(node.id, node.saved[i], -synced, "its folder cannot be written");
		else
			wire_queue(&node.root, WIRE_SUMMED, node.saved[i], node.id, &sum, sizeof(sum));
	}
	wire_flush(&node.root);
}

static void forget(const char *folder, size_t length)
{
	if (length && !folder[length - 1])
		strings_add(&node.useless, folder);
	remove_useless();
}

static void signal_all(const uint8_t *data, size_t length)
{
	int32_t number;

	if (length != sizeof(number))
		return;
	memcpy(&number, data, sizeof(number));
	/* The rank first: what started it may end the job when it ends. */
	for (size_t i = 0; i < node.nr_members; i++) {
		const struct member *m = node.member[i];

		if (m->rank == WIRE_ALL)
			continue;
		kill(m->pid, number);
		if (m->top != m->pid)
			kill(m->top, number);
	}
}

/* ---- messages ---------------------------------------------------------------------- */

static void set_owing(struct member *m, bool owes)
{
	node.nr_owing += owes - m->owes;
	m->owes = owes;
}

/*
 * The answers of a phase go to the root together, once all ranks of this node that
 * were asked have answered: a write and a read for all.  Anything else takes those
 * that are there along, at once.
 */
static void pass_up(struct member *m, const struct wire_header *h, const uint8_t *data)
{
	bool awaited = m->owes && (h->type == WIRE_BOOKMARKS || h->type == WIRE_DRAINED ||
				   h->type == WIRE_CONTINUED);

	if (awaited || h->type == WIRE_FAILED)
		set_owing(m, false);
	wire_queue(&node.root, h->type, m->rank, h->id, data, h->length);
	if (!awaited || !node.nr_owing)
		wire_flush(&node.root);
}

static void pass_down(const struct wire_header *h, const uint8_t *data)
{
	for (size_t i = 0; i < node.nr_members; i++) {
		struct member *m = node.member[i];

		if (m->wire.fd < 0 || m->rank == WIRE_ALL ||
		    (h->rank != WIRE_ALL && h->rank != m->rank))
			continue;
		if (h->type == WIRE_PREPARE || h->type == WIRE_DRAIN || h->type == WIRE_CONTINUE)
			set_owing(m, true);
		wire_send(&m->wire, h->type, m->rank, h->id, data, h->length);
	}
}

static bool somebody_suspends(void)
{
	for (size_t i = 0; i < node.nr_members; i++)
		if (node.member[i]->suspends)
			return true;
	return false;
}

/* CONTINUE, once nobody is about to suspend. */
static void let_go_on(void)
{
	struct wire_header h = node.go_on;

	if (!h.type || somebody_suspends())
		return;
	node.go_on.type = 0;
	pass_down(&h, NULL);
	begin_next();
}

/*
 * PREPARE, once all ranks are done with the last checkpoint: one that was given up goes
 * on in the daemon while a file is written to the disk, or a rank is stopped.
 */
static void begin_next(void)
{
	struct wire_header h = node.next;

	if (!h.type || node.go_on.type || somebody_dumps())
		return;
	node.next.type = 0;
	pass_down(&h, (const uint8_t *)&node.next_asker);
}

/* It has, or cannot, or is gone. */
static void has_suspended(struct member *m, bool well)
{
	m->suspends = false;
	m->waits = m->wanted && well;
	m->wanted = false;
	dump_more();
	let_go_on();
}

static void from_root(const struct wire_header *h, const uint8_t *data)
{
	switch (h->type) {
	case WIRE_DUMP:
		dump_all(data, h->length);
		break;
	case WIRE_SUM:
		sum_all();
		break;
	case WIRE_FORGET:
		forget((const char *)data, h->length);
		break;
	case WIRE_SIGNAL:
		signal_all(data, h->length);
		break;
	case WIRE_PREPARE:
		node.id = h->id;
		if (h->length > sizeof(node.next_asker))
			break;
		node.next = *h;
		memcpy(&node.next_asker, data, h->length);
		begin_next();
		break;
	case WIRE_CONTINUE:
		node.next.type = 0;
		cancel_dumps();
		node.go_on = *h;
		let_go_on();
		break;
	default:
		pass_down(h, data);
	}
}

static void from_member(struct member *m, const struct wire_header *h, const uint8_t *data)
{
	struct wire_hello hello;

	if (h->type == WIRE_HELLO && h->length >= sizeof(hello)) {
		memcpy(&hello, data, sizeof(hello));
		m->rank = h->rank;
		m->pid = hello.pid;
		m->top = hello.top;
	}
	if (m->suspends && h->type == WIRE_SUSPENDED) {
		has_suspended(m, true);
		return;
	}
	if (m->rank != WIRE_ALL)
		pass_up(m, h, data);
	if (m->suspends && h->type == WIRE_FAILED)
		has_suspended(m, false);
}

/* Its messages; -errno: the connection is done with. */
static int serve(struct wire *w, struct member *m, short events)
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
			from_member(m, &header, data);
		else
			from_root(&header, data);
	}
	return got < 0 ? got : err;
}

/* ---- members -------------------------------------------------------------------------- */

static void accept_member(void)
{
	int fd = accept4(node.listener, NULL, NULL, SOCK_CLOEXEC);
	struct member **grown, *m;

	if (fd < 0)
		return;
	grown = job_peer_allowed(fd) ?
		realloc(node.member, (node.nr_members + 1) * sizeof(*grown)) : NULL;
	m = grown ? calloc(1, sizeof(*m)) : NULL;
	if (grown)
		node.member = grown;
	if (!m) {
		close(fd);
		return;
	}
	wire_open(&m->wire, fd);
	m->rank = WIRE_ALL;
	m->dump.fd = -1;
	node.member[node.nr_members++] = m;
}

/* Those whose connection is lost and whose dump, if any, has ended. */
static void remove_members(void)
{
	for (size_t i = 0; i < node.nr_members; ) {
		struct member *m = node.member[i];

		if (m->wire.fd >= 0 || m->dump.fd >= 0) {
			i++;
			continue;
		}
		free(m);
		node.member[i] = node.member[--node.nr_members];
	}
}

static void lose_member(struct member *m)
{
	set_owing(m, false);
	if (m->rank != WIRE_ALL)
		wire_send(&node.root, WIRE_GONE, m->rank, node.id, NULL, 0);
	m->wanted = m->waits = false;
	dump_cancel(&m->dump);
	wire_close(&m->wire);
	if (m->suspends)
		has_suspended(m, false);
}

/* ---- the thread ------------------------------------------------------------------------ */

static size_t watch(struct pollfd *p, size_t count)
{
	size_t n = 0;

	p[n++] = (struct pollfd){ node.listener, POLLIN, 0 };
	p[n++] = (struct pollfd){ node.root.fd, wire_events(&node.root), 0 };
	for (size_t i = 0; i < count; i++) {
		struct member *m = node.member[i];

		p[n++] = (struct pollfd){ m->wire.fd, wire_events(&m->wire), 0 };
		p[n++] = (struct pollfd){ m->dump.fd, POLLIN, 0 };
	}
	return n;
}

static void *node_thread(void *unused)
{
	struct pollfd *p = NULL;
	int err = 0;

	(void)unused;
	while (!err) {
		size_t count = node.nr_members;
		struct pollfd *grown = realloc(p, (2 + 2 * count) * sizeof(*p));

		if (!grown)
			break;
		p = grown;
		if (poll(p, watch(p, count), -1) < 0)
			continue;
		for (size_t i = 0; i < count; i++) {
			struct member *m = node.member[i];

			if (p[2 + 2 * i].revents && serve(&m->wire, m, p[2 + 2 * i].revents))
				lose_member(m);
			if (p[3 + 2 * i].revents && dump_read(&m->dump))
				dump_ended(m);
		}
		if (p[1].revents)
			err = serve(&node.root, NULL, p[1].revents);
		if (p[0].revents)
			accept_member();
		remove_members();
	}
	/* The ranks see the end of their connections and end themselves. */
	cancel_dumps();
	for (size_t i = 0; i < node.nr_members; i++)
		wire_close(&node.member[i]->wire);
	close(node.listener);
	free(p);
	return NULL;
}

/* ---- beginning ------------------------------------------------------------------------- */

static int listen_for_ranks(char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), length, err;
	uint64_t number = 0;

	/* A restored rank tells the new daemon from the old one by the name. */
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
static int connect_to(const char *text)
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
	wire_watch_peer(fd);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/*
 * The first of its addresses that answers.  The loopback address, last in the
 * list, is for mpirun itself, which names nothing else.
 */
static int connect_to_root(const char *root)
{
	bool list = strchr(root, ',') != NULL;
	int fd = -EINVAL;

	while (root && *root) {
		fd = list && !strncmp(root, "127.", 4) ? -ECONNREFUSED : connect_to(root);
		if (fd >= 0)
			return fd;
		root = strchr(root, ',');
		root += root != NULL;
	}
	return fd;
}

int node_start(const char *root, const char *secret, const char *host, char *name)
{
	char hello[WIRE_SECRET + 256];
	int fd, err;

	node.listener = listen_for_ranks(name);
	if (node.listener < 0)
		return node.listener;
	fd = connect_to_root(root);
	if (fd < 0) {
		close(node.listener);
		return fd;
	}
	wire_open(&node.root, fd);
	node.at_once = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
	snprintf(hello, sizeof(hello), "%.*s%s", WIRE_SECRET, secret, host);
	wire_send(&node.root, WIRE_NODE, WIRE_ALL, 0, hello, strlen(hello) + 1);
	err = thread_start(node_thread, NULL);
	if (err) {
		wire_close(&node.root);
		close(node.listener);
	}
	return err;
}
