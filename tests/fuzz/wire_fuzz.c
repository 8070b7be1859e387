// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the messages between mpirun, daemons and ranks, as received by mpirun, a
 * daemon and a rank.  The first byte of an input chooses: bytes of a connection, plain
 * or with a valid seal, a greeting, or a list of messages for any of the three, each
 * after a head of six bytes, so that sequences of messages are reached.  Nothing is
 * saved, killed, created or removed: functions that do so are replaced here.
 */
#include "mpi-plugin/hook/rank.c"

#include <fcntl.h>
#include <stdarg.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/node_internal.h"
#include "job/coordinator/root_internal.h"
#include "job/folder.h"
#include "job/local.h"

#define NODES	3
#define MEMBERS	4
#define SECRET	"0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- replaced functions, besides those of tests/unit/lone_rank.c ------------------------- */

static bool fails;			/* make them fail */

int kill(pid_t pid, int number)
{
	(void)pid;
	(void)number;
	return 0;
}

int shutdown(int fd, int how)
{
	(void)fd;
	(void)how;
	return 0;
}

int dump_start(struct dump *d, pid_t top, const char *path, char *const *arguments, bool copy,
	       int signal)
{
	(void)top;
	(void)signal;
	d->state = copy ? DUMP_CHECKS : DUMP_WRITES;
	d->copied = false;
	for (; *arguments; arguments++)
		if (!strlen(*arguments) && !path)
			abort();
	d->fd = fails ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fails ? -ENOENT : 0;
}

char *dump_warnings(const struct dump *d)
{
	(void)d;
	return NULL;
}

int dump_read(struct dump *d)
{
	(void)d;
	return 1;
}

int dump_finish(struct dump *d, char **message)
{
	close(d->fd);
	d->fd = -1;
	*message = fails ? strdup("not saved") : NULL;
	return fails ? -EIO : 0;
}

bool dump_is_held(const struct dump *d)
{
	return d->fd >= 0 && (d->state == DUMP_READY || d->state == DUMP_RELEASED ||
			      d->state == DUMP_SAVED);
}

void dump_go_on(struct dump *d)
{
	if (!dump_is_held(d))
		abort();
	d->state++;
}

void dump_cancel(struct dump *d)
{
	(void)d;
}

char *snapshot_name(const char *path)
{
	return strdup(path);
}

char *snapshot_rank_path(const char *dir, uint32_t rank)
{
	(void)rank;
	return strdup(dir);
}

struct job_destination {
	char *path;
	bool local, committed;
};

int job_destination_open(struct job_destination **out, const char *path, const char *local,
			 unsigned int keep, char ***gone)
{
	(void)keep;
	(void)gone;
	*out = fails ? NULL : calloc(1, sizeof(**out));
	if (!*out)
		return -EACCES;
	(*out)->path = strdup(path);
	(*out)->local = local;
	return 0;
}

const char *job_destination_folder(const struct job_destination *d, bool *local)
{
	*local = d->local;
	return d->path;
}

int job_destination_commit(struct job_destination *d, struct snapshot *s, char ***gone)
{
	for (uint32_t i = 0; i < s->nr_ranks; i++)
		if (!strlen(s->rank[i].node))
			abort();
	d->committed = !fails;
	return fails ? -EIO : strings_add(gone, d->path);
}

bool job_destination_committed(const struct job_destination *d)
{
	return d && d->committed;
}

void job_destination_close(struct job_destination *d, char ***gone)
{
	if (!d)
		return;
	if (!d->committed)
		strings_add(gone, d->path);
	free(d->path);
	free(d);
}

void snapshot_free(struct snapshot *s)
{
	free(s);
}

int snapshot_load_one(const char *dir, struct snapshot **out)
{
	*out = fails ? NULL : calloc(1, sizeof(**out));
	if (!*out)
		return -ENOENT;
	(*out)->id = strlen(dir);
	return 0;
}

char *snapshot_files_folder(const char *dir)
{
	return fails ? NULL : strdup(dir);
}

uint64_t snapshot_bytes(const struct snapshot *s, uint64_t *older)
{
	*older = 0;
	return s->nr_ranks;
}

int local_make(const char *folder)
{
	return fails || !strlen(folder) ? -EACCES : 0;
}

int local_sync(const char *folder)
{
	return fails || !strlen(folder) ? -EIO : 0;
}

void local_remove(const char *folder)
{
	if (strlen(folder) > WIRE_MAX)
		abort();
}

char *local_name(const char *parent, const char *path)
{
	(void)path;
	return strdup(parent);
}

void folder_look_again(const char *path)
{
	(void)path;
}

char *folder_path(const char *format, ...)
{
	va_list args;
	char *path;
	int length;

	va_start(args, format);
	length = vasprintf(&path, format, args);
	va_end(args);
	return length < 0 ? NULL : path;
}

/* ---- mpirun, daemon and rank ------------------------------------------------------------ */

static int ends[2];			/* they write to this, and it is discarded */
static struct snapshot job;
static struct root root;
static struct node node;

static void empty_sink(void)
{
	static char bytes[65536];

	while (recv(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void begin(void)
{
	if (!ends[1] && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
		abort();
	memset(&root, 0, sizeof(root));
	memset(&node, 0, sizeof(node));
	root.job = &job;
	root.asker = WIRE_NOBODY;
	root.node = calloc(NODES, sizeof(*root.node));
	for (root.nr_nodes = 0; root.nr_nodes < NODES; root.nr_nodes++) {
		root.node[root.nr_nodes] = calloc(1, sizeof(struct root_node));
		root.node[root.nr_nodes]->wire.fd = ends[0];
		root.node[root.nr_nodes]->name = strdup("node");
	}
	node.root.fd = ends[0];
	node.launch.fd = root.launch.fd = ends[0];
	node.at_once = 2;
	node.member = calloc(MEMBERS, sizeof(*node.member));
	for (node.nr_members = 0; node.nr_members < MEMBERS; node.nr_members++) {
		struct member *m = calloc(1, sizeof(*m));

		m->wire.fd = ends[0];
		m->rank = WIRE_ALL;
		m->dump.fd = -1;
		node.member[node.nr_members] = m;
	}
	self.size = 1;
	self.fd = -1;
	self.left = self.leaving = false;
}

/* Drops the connections, as at the end of a job. */
static void end_root(void)
{
	struct wire_header gone = { .type = WIRE_GONE };

	fails = false;
	for (gone.rank = 0; gone.rank < root.nr_ranks; gone.rank++)
		if (root.rank[gone.rank].node)
			root_from_node(&root, root.rank[gone.rank].node, &gone, NULL);
	phases_abort(&root, ECANCELED, NULL);
	if (root.phase != PHASE_IDLE)
		abort();		/* there is nobody left to wait for */
	addresses_send(&root);
	for (size_t i = 0; i < NODES; i++)
		addresses_lost(root.node[i]);
	for (uint32_t i = 0; i < root.nr_ranks; i++) {
		free(root.rank[i].address);
		free(root.rank[i].asks);
		free(root.rank[i].file);
	}
	free(root.rank);
	for (size_t i = 0; i < NODES; i++) {
		root.node[i]->wire.fd = -1;
		wire_close(&root.node[i]->wire);
		free(root.node[i]->name);
		free(root.node[i]);
	}
	free(root.node);
	root.launch.fd = -1;
	wire_close(&root.launch);
	job.interval = 0;
}

static void end_node(void)
{
	saving_cancel(&node);
	node_addresses_free(&node);
	for (size_t i = 0; i < MEMBERS; i++) {
		struct member *m = node.member[i];
		char *message;

		if (m->dump.fd >= 0) {
			dump_finish(&m->dump, &message);
			free(message);
		}
		m->wire.fd = -1;
		wire_close(&m->wire);
		free(m);
	}
	free(node.member);
	free(node.order);
	free(node.saved);
	strings_free(node.useless);
	node.root.fd = node.launch.fd = -1;
	wire_close(&node.root);
	wire_close(&node.launch);
}

/* ---- messages ----------------------------------------------------------------------------- */

struct head {
	uint8_t who, type, rank, id;
	uint16_t length;
} __attribute__((packed));

static void ask_for_one(void)
{
	const char *why;

	phases_begin_own(&root, "/saved.kcr", 1, &why);
}

/* Lets the member's dump wait, or end, if it has one. */
static void go_on_with_dump(struct member *m)
{
	if (m->dump.fd < 0)
		return;
	if (!fails && m->dump.state == DUMP_WRITES && node.order && node.order->signal) {
		m->dump.state = DUMP_SAVED;
		saving_heard(&node, m);
	} else if (fails || dump_is_held(&m->dump) || m->dump.state >= DUMP_WRITES) {
		saving_ended(&node, m);
	} else {
		m->dump.state++;
		m->dump.copied = true;
		saving_heard(&node, m);
	}
}

static void deliver(const struct head *head, const uint8_t *data)
{
	struct wire_header h = {
		.length = head->length, .type = head->type,
		.rank = head->rank == 255 ? WIRE_ALL : head->rank,
		.id = head->id == 255 ? root.id : head->id == 254 ? node.id : head->id,
	};
	uint8_t *copy = malloc(h.length + 1);	/* so that ASan sees overruns */

	copy = realloc(copy, h.length ? h.length : 1);
	memcpy(copy, data, h.length);
	fails = head->who & 0x80;
	switch (head->who % 8) {
	case 0: case 1: case 2:
		root_from_node(&root, root.node[head->who % 8], &h, copy);
		addresses_send(&root);
		break;
	case 3:
		node_from_root(&node, &h, copy);
		break;
	case 4:
		node_from_member(&node, node.member[head->rank % MEMBERS], &h, copy);
		break;
	case 5:
		act(&h, copy);
		break;
	case 6:
		go_on_with_dump(node.member[head->rank % MEMBERS]);
		break;
	case 7:
		ask_for_one();
		break;
	}
	free(copy);
	empty_sink();
}

static void deliver_all(const uint8_t *data, size_t size)
{
	struct head head;

	begin();
	while (size >= sizeof(head)) {
		memcpy(&head, data, sizeof(head));
		data += sizeof(head);
		size -= sizeof(head);
		if (head.length > size)
			head.length = size;
		deliver(&head, data);
		data += head.length;
		size -= head.length;
	}
	end_root();
	end_node();
}

/* ---- bytes -------------------------------------------------------------------------------- */

static void read_all(struct wire *w, const uint8_t *data, size_t size)
{
	struct wire_header h;
	const uint8_t *message;
	volatile uint8_t last;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		abort();
	if (send(pair[1], data, size, MSG_DONTWAIT) < 0 && size)
		abort();
	w->fd = pair[0];
	fcntl(pair[0], F_SETFL, O_RDWR | O_NONBLOCK);
	wire_fill(w);
	while (wire_next(w, &h, &message) == 1)
		if (h.length)
			last = message[h.length - 1];
	(void)last;
	wire_close(w);
	close(pair[1]);
}

static void read_plain(const uint8_t *data, size_t size)
{
	struct wire w;

	memset(&w, 0, sizeof(w));
	read_all(&w, data, size);
}

/* Cuts the bytes into frames, each as long as its first byte says, with a valid seal. */
static void read_sealed(const uint8_t *data, size_t size)
{
	static const uint8_t key[SEAL_KEY];
	struct seal seal = { .number = 0 };
	uint8_t *bytes = malloc(size * (1 + sizeof(struct wire_seal)) + 1);
	size_t length = 0;
	struct wire w;

	while (size) {
		struct wire_seal head = { .length = data[0] < size - 1 ? data[0] : size - 1 };
		struct iovec part[] = {
			{ &head.length, sizeof(head.length) }, { (void *)(data + 1), head.length },
		};

		seal_make(&seal, part, 2, head.tag);
		memcpy(bytes + length, &head, sizeof(head));
		memcpy(bytes + length + sizeof(head), data + 1, head.length);
		length += sizeof(head) + head.length;
		data += 1 + head.length;
		size -= 1 + head.length;
	}
	memset(&w, 0, sizeof(w));
	wire_seal(&w, key, key);
	read_all(&w, bytes, length);
	free(bytes);
}

static void prove_right(struct greeting_node *said, struct greeting_challenge *challenge)
{
	const struct iovec part[] = {
		{ challenge, sizeof(*challenge) }, { said->number, GREETING_NUMBER },
		{ said->name, strlen(said->name) },
	};

	seal_proof(said->proof, SECRET, WIRE_SECRET, "kcr-mpi daemon", part, 3);
}

/* A greeting as it is, or with a correct proof. */
static void greet(const uint8_t *data, size_t size, bool right)
{
	struct greeting_challenge challenge = { .version = GREETING_VERSION };
	struct greeting_node *said = malloc(size + 1);
	struct wire_header h = { size, WIRE_NODE, WIRE_ALL, 0 };
	struct wire w = { .fd = -1 };
	char *name = NULL;
	int err;

	memcpy(said, data, size);
	said = realloc(said, size ? size : 1);
	if (right && size > sizeof(*said) + 1 && !data[size - 1])
		prove_right(said, &challenge);
	err = greeting_take(&w, &challenge, SECRET, &h, (uint8_t *)said, &name);
	if (!err != !!name || (!err && !right))
		abort();
	free(name);
	free(said);
	wire_close(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || seal_init())
		return 0;
	switch (data[0] % 5) {
	case 0: read_plain(data + 1, size - 1); break;
	case 1: read_sealed(data + 1, size - 1); break;
	case 2: greet(data + 1, size - 1, false); break;
	case 3: greet(data + 1, size - 1, true); break;
	case 4: deliver_all(data + 1, size - 1); break;
	}
	return 0;
}
