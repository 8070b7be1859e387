// SPDX-License-Identifier: GPL-2.0
/*
 * mpirun's part: its coordinator in a process of its own, whose processor time is
 * read when all simulated daemons have got a message and before any answers.  A
 * checkpoint is led through all phases up to the checksums, where a rank fails, so
 * that no files are needed.  What the ranks are told of each other is compared.
 */
#include "scale.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/root.h"
#include "job/request.h"

static const struct {
	uint32_t order, answer;
} steps[] = {
	{ WIRE_PREPARE, WIRE_BOOKMARKS }, { WIRE_DRAIN, WIRE_DRAINED }, { WIRE_DUMP, WIRE_DUMPED },
	{ WIRE_CONTINUE, WIRE_CONTINUED }, { WIRE_SYNC, WIRE_FAILED },
	{ WIRE_CONTINUE, WIRE_CONTINUED },
};
#define STEPS (sizeof(steps) / sizeof(*steps))

struct rlimit scale_files;

static struct {
	pid_t pid;			/* of the coordinator */
	bool restarted;
	uint32_t ranks, per_node, nodes;
	struct wire *node;
	uint32_t id;			/* of the checkpoint */
	size_t step;
	uint32_t come;			/* orders of this step */
	double used[STEPS + 1];
	uint64_t messages, bookmarks;
	struct scale_questions questions;
} sim;

/* ---- the coordinator ---------------------------------------------------------------- */

static void coordinate(int out)
{
	static const struct root_settings settings;
	static struct snapshot job;
	struct scale_access access;
	int err = setrlimit(RLIMIT_NOFILE, &scale_files) ? -errno :
		  root_start(&job, &settings, access.address, sizeof(access.address),
			     access.secret);

	errno = -err;
	if (err || write(out, &access, sizeof(access)) != sizeof(access))
		scale_fail("the coordinator does not start");
	for (;;)
		pause();
}

static void start_coordinator(struct scale_access *access)
{
	int ends[2];

	if (pipe(ends))
		scale_fail("pipe");
	sim.pid = fork();
	if (sim.pid < 0)
		scale_fail("fork");
	if (!sim.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		coordinate(ends[1]);
	}
	close(ends[1]);
	errno = ECHILD;
	if (read(ends[0], access, sizeof(*access)) != sizeof(*access))
		scale_fail("coordinator");
	close(ends[0]);
}

/* ---- simulated daemons ---------------------------------------------------------------- */

static void join(const struct scale_access *access, uint32_t node)
{
	struct wire *w = &sim.node[node];

	scale_connect(w, access, node);
	for (uint32_t rank = node * sim.per_node; rank < scale_end(node, sim.ranks, sim.per_node); rank++)
		scale_hello(w, rank, sim.ranks, sim.restarted);
	wire_flush(w);
}

static void check_drain(uint32_t rank, const struct wire_bookmark *told, size_t count)
{
	struct wire_bookmark own[SCALE_PEERS_MAX];

	/* Who sends to it is also whom it sends to. */
	errno = EBADMSG;
	if (count != scale_bookmarks(rank, sim.ranks, own))
		scale_fail("a rank is not told of all that send to it");
	for (size_t i = 0; i < count; i++)
		if (told[i].sent != scale_sent(told[i].rank, rank))
			scale_fail("a rank is told a wrong number");
	sim.bookmarks += 2 * count * sizeof(*told);	/* as many in the other direction */
}

static void take_addresses(size_t number, const struct wire_header *h, const uint8_t *data)
{
	if (scale_take_addresses(&sim.questions, &sim.node[number], number, h, data))
		return;
	errno = EPROTO;
	scale_fail("an unexpected message");
}

static int all_nodes(void)
{
	return sim.questions.given == sim.nodes;
}

/* All memory of a node's ranks is there, if somebody asks after a restart. */
static void answer_load(size_t number, uint32_t id)
{
	uint32_t first = number * sim.per_node, end = scale_end(number, sim.ranks, sim.per_node);

	for (uint32_t rank = first; rank < end; rank++)
		wire_queue(&sim.node[number], WIRE_LOADED, rank, id, NULL, 0);
	wire_flush(&sim.node[number]);
}

static void take(size_t number, const struct wire_header *h, const uint8_t *data)
{
	if (h->type == WIRE_LOAD) {
		answer_load(number, h->id);
		return;
	}
	errno = EPROTO;
	if (sim.step == STEPS || h->type != steps[sim.step].order)
		scale_fail("an unexpected message");
	sim.id = h->id;
	sim.come++;
	if (h->type == WIRE_DRAIN)
		check_drain(h->rank, (const struct wire_bookmark *)data,
			    h->length / sizeof(struct wire_bookmark));
}

static int all_told(void)
{
	return sim.come == (steps[sim.step].order == WIRE_DRAIN ? sim.ranks : sim.nodes);
}

static int none(void)
{
	return false;
}

static void answer_rank(struct wire *w, uint32_t rank)
{
	struct wire_bookmark mark[SCALE_PEERS_MAX];
	uint32_t type = steps[sim.step].answer, count = 0;

	if (type == WIRE_BOOKMARKS)
		count = scale_bookmarks(rank, sim.ranks, mark);
	wire_queue(w, type, rank, sim.id, mark, count * sizeof(*mark));
}

static void answer(void)
{
	if (steps[sim.step].answer == WIRE_FAILED) {
		wire_send(&sim.node[0], WIRE_FAILED, 0, sim.id, NULL, 0);
		return;
	}
	for (uint32_t i = 0; i < sim.nodes; i++) {
		for (uint32_t rank = i * sim.per_node; rank < scale_end(i, sim.ranks, sim.per_node); rank++)
			answer_rank(&sim.node[i], rank);
		wire_flush(&sim.node[i]);
	}
}

/* ---- a checkpoint ------------------------------------------------------------------------ */

static int ask(void)
{
	char path[64];
	struct job_request request = { .path = path, .keep = 1 };
	int fd = job_connect(sim.pid);
	char *line;

	snprintf(path, sizeof(path), "/tmp/kcr-scale.%d.kcr", sim.pid);
	line = job_request_format(&request);

	if (fd < 0 || !line || send(fd, line, strlen(line), 0) < 0 || send(fd, "\n", 1, 0) < 0)
		scale_fail("asking for a checkpoint");
	free(line);
	return fd;
}

/* The answer to a request that is refused or was to fail: its errno. */
static int refusal(int fd)
{
	char line[4096] = "";
	struct job_answer answer = { 0 };
	ssize_t length = recv(fd, line, sizeof(line) - 1, 0);
	int code;

	if (length <= 0 || job_answer_parse(line, &answer))
		scale_fail("no answer");
	code = answer.code;
	if (code != EBUSY && code != EIO)
		fprintf(stderr, "scale: %s\n", answer.message ? answer.message : "no reason");
	job_answer_free(&answer);
	close(fd);
	return code;
}

/* Returns whether it was accepted. */
static bool lead(void)
{
	int fd;

	sim.messages = sim.bookmarks = 0;
	sim.used[0] = scale_used(sim.pid);
	fd = ask();
	for (sim.step = 0; sim.step < STEPS; sim.step++) {
		sim.come = 0;
		scale_serve(sim.node, sim.nodes, fd, all_told, take);
		sim.used[sim.step + 1] = scale_used(sim.pid);
		if (!all_told())
			break;
		if (sim.step < 2)
			sim.messages += sim.ranks;
		sim.messages += sim.come * (sim.step < 3);
		answer();
	}
	if (sim.step == STEPS)		/* what has not been written yet */
		scale_serve(sim.node, sim.nodes, fd, none, take);
	errno = refusal(fd);
	if (errno == EBUSY)
		return false;
	if (errno != EIO)
		scale_fail("another end than expected");
	return true;
}

/* The most that the coordinator has had in memory, bytes. */
static uint64_t most_memory(void)
{
	char name[64], text[256];
	unsigned long kib = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", sim.pid);
	file = fopen(name, "r");
	while (file && fgets(text, sizeof(text), file))
		if (sscanf(text, "VmHWM: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib << 10;
}

void scale_root(uint32_t ranks, uint32_t per_node, int rounds, bool restarted,
		struct scale_root *out)
{
	double restart_ms = 0;
	double part[4][SCALE_ROUNDS_MAX];
	struct scale_access access;

	sim.ranks = ranks;
	sim.per_node = per_node;
	sim.restarted = restarted;
	sim.nodes = (ranks + per_node - 1) / per_node;
	sim.node = calloc(sim.nodes, sizeof(*sim.node));
	start_coordinator(&access);
	for (uint32_t i = 0; i < sim.nodes; i++)
		join(&access, i);
	sim.questions = (struct scale_questions){ .ranks = ranks, .per_node = per_node };
	if (restarted) {
		scale_serve(sim.node, sim.nodes, -1, all_nodes, take_addresses);
		restart_ms = scale_used(sim.pid);
	}
	while (!lead())			/* the first one is not counted */
		usleep(100000);
	for (int round = 0; round < rounds; round++) {
		if (!lead())
			scale_fail("a checkpoint is refused");
		for (int i = 0; i < 4; i++)
			part[i][round] = sim.used[i + 1] - sim.used[i];
	}
	*out = (struct scale_root){
		.order_ms = scale_median(part[0], rounds), .exchange_ms = scale_median(part[1], rounds),
		.barrier_ms = scale_median(part[2], rounds), .resume_ms = scale_median(part[3], rounds),
		.bookmarks = sim.bookmarks, .messages = sim.messages, .restart_ms = restart_ms,
		.addresses = sim.questions.bytes, .memory = most_memory(),
	};
	kill(sim.pid, SIGKILL);
	waitpid(sim.pid, NULL, 0);
	for (uint32_t i = 0; i < sim.nodes; i++)
		wire_close(&sim.node[i]);
	free(sim.node);
}
