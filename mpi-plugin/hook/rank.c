// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that takes a rank through checkpoints and restarts.  Between the
 * phases it sleeps in read() on its connection to the daemon, and is saved there;
 * in a restored rank that connection has ended.  It never calls
 * MPI.  `lock` guards writing to the connection and the two flags of leaving.
 */
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mpi-plugin/btl/btl_cr_control.h"
#include "job/coordinator/wire.h"
#include "proc/thread.h"

#define GATE_PATIENCE_MS	10000
#define DRAIN_PATIENCE_MS	30000	/* for one peer */
#define STEP_MS			100	/* between checks for a message */
#define RECONNECT_MS	2000
#define BOOKMARKS_AT_ONCE	64

static struct {
	int fd;
	uint32_t rank, size;
	char daemon_name[64];		/* its socket: WIRE_DAEMON_VARIABLE */
	const struct mca_btl_cr_control *btl;	/* NULL: a job of one rank may do without */
	bool gate_closed, suspended;
	bool apart;			/* restored, and does not know where its peers are yet */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool leaving, left;
} self = { .fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int send_message(uint32_t type, uint32_t id, const void *data, size_t length)
{
	int err;

	pthread_mutex_lock(&self.lock);
	err = wire_write(self.fd, type, self.rank, id, data, length);
	pthread_mutex_unlock(&self.lock);
	return err;
}

int rank_send(uint32_t type, const void *data, size_t length)
{
	if (self.fd < 0 || self.left)
		return -ENOTSUP;
	return send_message(type, 0, data, length);
}

static void send_failure(uint32_t id, int err, const char *text)
{
	struct {
		struct wire_failed head;
		char text[128];
	} failure = { .head.code = -err };

	snprintf(failure.text, sizeof(failure.text), "%s: %s", text, strerror(-err));
	send_message(WIRE_FAILED, id, &failure,
		     offsetof(typeof(failure), text) + strlen(failure.text) + 1);
}

/* ---- the phases ----------------------------------------------------------------------- */

static int take_addresses(const uint8_t *data, size_t length)
{
	struct wire_address head;
	int err = 0;

	for (size_t at = 0; at + sizeof(head) <= length && !err; at += sizeof(head) + head.length) {
		memcpy(&head, data + at, sizeof(head));
		if (head.length > length - at - sizeof(head))
			break;
		if (self.btl && head.length)
			err = self.btl->address_set(head.rank, data + at + sizeof(head), head.length);
	}
	return err;
}

/* An address that a thread of the program waits for, with the gate open: has it come? */
static bool take_found(void)
{
	struct wire_header h;
	ssize_t length = recv(self.fd, &h, sizeof(h), MSG_PEEK | MSG_DONTWAIT);
	uint8_t *data;

	if (length > 0 && length < (ssize_t)sizeof(h))
		return true;		/* the rest of it is on its way */
	if (length != sizeof(h) || h.type != WIRE_FOUND || wire_read(self.fd, &h, &data, WIRE_MAX))
		return false;
	take_addresses(data, h.length);
	free(data);
	return true;
}

/*
 * A message during a phase means that it is cancelled, and so does the end of the connection.
 * Except for the answer to a thread that has been inside since before, which has to leave.
 */
static bool called_off(void)
{
	struct pollfd connection = { .fd = self.fd, .events = POLLIN };

	return poll(&connection, 1, 0) > 0 && !take_found();
}

static int close_gate(void)
{
	int err = self.btl ? -ETIMEDOUT : 0;

	for (int waited = 0; err == -ETIMEDOUT && waited < GATE_PATIENCE_MS && !called_off();
	     waited += STEP_MS)
		err = self.btl->gate_close(STEP_MS);
	self.gate_closed = self.btl && !err;
	return err;
}

/* Goes on, from any phase. */
static int go_on(void)
{
	int err = 0;

	if (self.apart)
		return 0;		/* it has not begun */
	if (self.suspended)
		err = self.btl->resume();
	self.suspended = self.suspended && err;
	if (self.gate_closed && !err)
		err = self.btl->gate_open();
	self.gate_closed = self.gate_closed && err;
	return err;
}

/* Those of btl/cr: how many, and the list (malloc()ed), or -errno. */
static int get_bookmarks(struct mca_btl_cr_bookmark **out)
{
	struct mca_btl_cr_bookmark *entry = NULL;
	int room = BOOKMARKS_AT_ONCE, count = self.btl ? room + 1 : 0;

	while (count > room || !entry) {
		room = count > room ? count : room;
		free(entry);
		entry = malloc(room * sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		count = self.btl ? self.btl->bookmarks(entry, room) : 0;
		if (count < 0)
			break;
	}
	*out = entry;
	if (count < 0)
		free(entry);
	return count;
}

static int send_bookmarks(uint32_t id)
{
	struct mca_btl_cr_bookmark *entry;
	struct wire_bookmark *mark;
	int count = get_bookmarks(&entry);

	if (count < 0)
		return count;
	mark = calloc(count + 1, sizeof(*mark));
	for (int i = 0; mark && i < count; i++)
		mark[i] = (struct wire_bookmark){ .rank = entry[i].rank, .sent = entry[i].sent };
	if (mark)
		send_message(WIRE_BOOKMARKS, id, mark, count * sizeof(*mark));
	free(entry);
	free(mark);
	return mark ? 0 : -ENOMEM;
}

static void prepare(uint32_t id)
{
	int err = !self.btl && self.size > 1 ? -ESHUTDOWN : 0;

	if (err) {
		send_failure(id, err, "its messages do not go through btl/cr");
		return;
	}
	err = close_gate();
	if (err)
		send_failure(id, err, "cannot close the gate");
	else if ((err = send_bookmarks(id)))
		send_failure(id, err, "cannot report its bookmarks");
}

static int drain_peer(const struct wire_bookmark *mark)
{
	int err = self.btl ? -ETIMEDOUT : 0;

	for (int waited = 0; err == -ETIMEDOUT && waited < DRAIN_PATIENCE_MS && !called_off();
	     waited += STEP_MS)
		err = self.btl->drain(mark->rank, mark->sent, STEP_MS);
	return err;
}

static void drain(uint32_t id, const uint8_t *data, size_t length)
{
	struct wire_bookmark mark;
	int err = 0;

	for (size_t at = 0; at + sizeof(mark) <= length && !err; at += sizeof(mark)) {
		memcpy(&mark, data + at, sizeof(mark));
		err = drain_peer(&mark);
	}
	if (err)
		send_failure(id, err, "cannot receive what its peers have sent");
	else
		send_message(WIRE_DRAINED, id, NULL, 0);
}

static void suspend(uint32_t id)
{
	int err = self.gate_closed ? self.btl->suspend() : 0;

	self.suspended = self.gate_closed && !err;
	if (err)
		send_failure(id, err, "cannot release its shared memory");
	else
		send_message(WIRE_SUSPENDED, id, NULL, 0);
}

/* Of all other ranks, or of those that were asked for; after a restart it goes on with them. */
static void find_peers(const uint8_t *data, size_t length)
{
	int err = take_addresses(data, length);

	if (!err && self.apart && self.gate_closed)
		err = self.btl->reconnect(RECONNECT_MS);
	if (!err && self.apart && self.gate_closed)
		err = self.btl->gate_open();
	if (self.apart)
		self.apart = self.gate_closed = self.suspended = false;
	if (err) {
		fprintf(stderr, "KCR: rank %u cannot go on after the restart: %s\n", self.rank,
			strerror(-err));
		_exit(1);
	}
}

static void now_left(void)
{
	pthread_mutex_lock(&self.lock);
	self.left = true;
	pthread_cond_broadcast(&self.changed);
	pthread_mutex_unlock(&self.lock);
}

static void prepare_for(const struct wire_header *h, const uint8_t *data)
{
	uint32_t asker = WIRE_NOBODY;

	if (h->length >= sizeof(asker))
		memcpy(&asker, data, sizeof(asker));
	ask_prepared(self.rank, asker);
	prepare(h->id);
}

static void take_answer(const struct wire_header *h, const uint8_t *data)
{
	struct wire_failed answer = { EIO };

	if (h->length >= sizeof(answer))
		memcpy(&answer, data, sizeof(answer));
	ask_answered(answer.code);
}

static void act(const struct wire_header *h, const uint8_t *data)
{
	int err;

	switch (h->type) {
	case WIRE_PREPARE:
		prepare_for(h, data);
		break;
	case WIRE_ANSWER:
		take_answer(h, data);
		break;
	case WIRE_DRAIN:
		drain(h->id, data, h->length);
		break;
	case WIRE_SUSPEND:
		suspend(h->id);
		break;
	case WIRE_CONTINUE:
		err = go_on();
		if (err)
			send_failure(h->id, err, "cannot go on");
		else
			send_message(WIRE_CONTINUED, h->id, NULL, 0);
		break;
	case WIRE_ADDRESSES:
	case WIRE_FOUND:
		find_peers(data, h->length);
		break;
	case WIRE_LEFT:
		now_left();
		break;
	default:			/* of a later release: not for this one */
		break;
	}
}

/* ---- connection ----------------------------------------------------------------------- */

static int connect_to(const char *name, pid_t *daemon)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t length = sizeof(peer);
	size_t name_length = strlen(name);
	int fd;

	if (name_length >= sizeof(address.sun_path) - 1)
		return -ENAMETOOLONG;
	memcpy(address.sun_path + 1, name, name_length);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address,
		    offsetof(struct sockaddr_un, sun_path) + 1 + name_length) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length)) {
		int err = -errno;

		close(fd);
		return err;
	}
	if (peer.uid != geteuid() && peer.uid != 0) {
		fprintf(stderr, "KCR: rank %u: process %d of user %u holds the name of the socket of "
			"this node's daemon\n", self.rank, peer.pid, peer.uid);
		close(fd);
		return -EPERM;
	}
	*daemon = peer.pid;
	return fd;
}

/* Does btl/cr ask for addresses? */
static bool asks(void)
{
	return self.btl && mca_btl_cr_control_asks(self.btl);
}

static int say_hello(const struct launcher *l, const void *address, size_t length)
{
	const struct wire_version version = {
		WIRE_VERSION, WIRE_CAN_SAVE | WIRE_CAN_MOVE | (asks() ? WIRE_CAN_FIND : 0),
	};
	struct {
		struct wire_hello head;
		uint8_t rest[MCA_BTL_CR_ADDRESS_MAX + sizeof(version)];
	} hello = { .head = {
		.pid = getpid(), .top = l->top, .size = self.size, .restarted = l->restart,
		.address_length = length,
	} };

	if (length)
		memcpy(hello.rest, address, length);
	memcpy(hello.rest + length, &version, sizeof(version));
	return send_message(WIRE_HELLO, 0, &hello, sizeof(hello.head) + length + sizeof(version));
}

/* Connects to the daemon with this name and lets its children save this process. */
static int connect_daemon(const char *name, pid_t *daemon)
{
	int fd = connect_to(name, daemon);

	if (fd < 0)
		return fd;
	snprintf(self.daemon_name, sizeof(self.daemon_name), "%s", name);
	/* Yama would allow ancestors only, and has one exception per process.  Without Yama this fails. */
	if (self.btl && mca_btl_cr_control_traces(self.btl))
		self.btl->tracer(*daemon);
	else
		prctl(PR_SET_PTRACER, *daemon, 0, 0, 0);
	pthread_mutex_lock(&self.lock);
	if (self.fd >= 0)
		close(self.fd);
	self.fd = fd;
	pthread_mutex_unlock(&self.lock);
	return 0;
}

/* ---- restart -------------------------------------------------------------------------- */

/* For a thread of the program that meets another rank for the first time since the restart. */
static int ask_for_address(uint32_t rank)
{
	return send_message(WIRE_WHERE, 0, &rank, sizeof(rank));
}

/* Where are those that it has communicated with? */
static int ask_for_peers(void)
{
	struct mca_btl_cr_bookmark *entry;
	uint32_t *rank;
	int count, err;

	if (!asks())
		return 0;
	self.btl->address_source(ask_for_address);
	count = get_bookmarks(&entry);
	if (count < 0)
		return count;
	rank = malloc(count * sizeof(*rank) + 1);
	for (int i = 0; rank && i < count; i++)
		rank[i] = entry[i].rank;
	err = rank ? send_message(WIRE_WHERE, 0, rank, count * sizeof(*rank)) : -ENOMEM;
	free(entry);
	free(rank);
	return err;
}

static int join_new_job(const struct launcher *l)
{
	uint8_t address[MCA_BTL_CR_ADDRESS_MAX];
	const char *name = launcher_get(l, WIRE_DAEMON_VARIABLE);
	int length = 0, err;
	pid_t daemon;

	/* Its parent is cr_restart: no daemon would end it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = name ? connect_daemon(name, &daemon) : -ENOENT;
	if (!err)
		err = runtime_reattach(l);
	if (!err && self.btl) {
		err = self.btl->restart();
		length = err ? 0 : self.btl->address_get(address, sizeof(address));
		err = length < 0 ? length : err;
	}
	if (err)
		return err;
	self.apart = true;
	err = say_hello(l, address, length);
	if (!err)
		err = ask_for_peers();
	if (!err)
		err = ask_restarted();
	if (!err && self.leaving && !self.left)
		err = send_message(WIRE_LEAVE, 0, NULL, 0);
	return err;
}

/*
 * The connection has ended: this is a restored rank, or the daemon died and
 * the job with it.
 */
static void connection_ended(void)
{
	const char *name;
	struct launcher l;
	int err = launcher_find(&l, 0);

	if (self.left)
		for (;;)
			pause();	/* what follows is up to the program */
	name = err ? NULL : launcher_get(&l, WIRE_DAEMON_VARIABLE);
	if (!name || !strcmp(name, self.daemon_name))
		_exit(1);
	err = join_new_job(&l);
	launcher_free(&l);
	if (!err)
		return;
	fprintf(stderr, "KCR: rank %u cannot join the restarted job: %s\n", self.rank,
		strerror(-err));
	_exit(1);
}

static void *rank_thread(void *unused)
{
	(void)unused;
	for (;;) {
		struct wire_header header;
		uint8_t *data;

		if (wire_read(self.fd, &header, &data, WIRE_MAX)) {
			connection_ended();
			continue;
		}
		act(&header, data);
		free(data);
	}
	return NULL;
}

/* ---- MPI_Init, MPI_Finalize ----------------------------------------------------------- */

int rank_begin(uint32_t rank, uint32_t size)
{
	const char *name = getenv(WIRE_DAEMON_VARIABLE);
	struct launcher l;
	pid_t daemon;
	int err;

	if (!name)
		return -ENOENT;
	self.rank = rank;
	self.size = size;
	self.btl = mca_btl_cr_control_find();
	err = connect_daemon(name, &daemon);
	if (!err)
		err = launcher_find(&l, daemon);
	if (!err)
		err = runtime_watch();
	if (!err)
		err = say_hello(&l, NULL, 0);
	if (!err)
		err = thread_start(NULL, rank_thread, NULL);
	if (err && self.fd >= 0) {
		close(self.fd);
		self.fd = -1;
	}
	return err;
}

void rank_give_up(bool met)
{
	rank_send(WIRE_UNABLE, "", met);
	now_left();
}

void rank_leave(void)
{
	if (self.fd < 0)
		return;
	pthread_mutex_lock(&self.lock);
	self.leaving = true;
	wire_write(self.fd, WIRE_LEAVE, self.rank, 0, NULL, 0);
	while (!self.left)
		pthread_cond_wait(&self.changed, &self.lock);
	pthread_mutex_unlock(&self.lock);
}
