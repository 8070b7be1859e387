// SPDX-License-Identifier: GPL-2.0
/*
 * A job's life but for its checkpoints: all of cr_mpirun (launch/watch.h) in a process of its
 * own, among simulated daemons whose ranks are started, live, are lost and come back.  Its
 * launcher only sleeps, and what goes back to the snapshot is the next such process.
 */
#include "scale.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/root.h"
#include "launch/launcher.h"
#include "launch/rank_message.h"
#include "launch/recovery.h"
#include "launch/watch.h"

#define SILENCE_S	3		/* the default of --node-timeout with --recover */
#define LATE_S		120
#define BEAT_MS		500.0		/* which daemons make of it (job/coordinator/node.c) */
#define BEATING_MS	4000.0
#define QUIET		40		/* looks at an idle process */
#define LOOK_US		20000

static struct {
	pid_t pid;
	int said;			/* readable when cr_mpirun is to go back */
	struct scale_access access;
	uint32_t ranks, per_node, nodes;
	struct wire *node;
	uint32_t signalled, beats;	/* nodes that are to end their ranks; answers to beats */
	struct scale_questions questions;
} sim;

/* ---- cr_mpirun ------------------------------------------------------------------------ */

static void be_mpirun(int out)
{
	char *const launcher[] = { "sleep", "1000", NULL };
	static struct snapshot job;
	struct recovery recovery;
	int messages = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC), err;
	const struct root_settings settings = { .launch = &messages, .silence_s = SILENCE_S };

	launcher_hold_signals(0);
	err = setrlimit(RLIMIT_NOFILE, &scale_files) ? -errno :
	      root_start(&job, &settings, sim.access.address, sizeof(sim.access.address),
			 sim.access.secret);
	errno = -err;
	if (err || write(out, &sim.access, sizeof(sim.access)) != sizeof(sim.access))
		scale_fail("cr_mpirun does not start");
	recovery_init(&recovery, 1, true);
	recovery.silence_s = SILENCE_S;
	recovery.late_s = LATE_S;
	dup2(null, STDERR_FILENO);
	watch_job(launcher, messages, &recovery);
	if (recovery.due && write(out, "", 1) == 1)
		pause();
	_exit(1);
}

static void start_mpirun(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		scale_fail("pipe");
	sim.pid = fork();
	if (sim.pid < 0)
		scale_fail("fork");
	if (!sim.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_mpirun(ends[1]);
	}
	close(ends[1]);
	errno = ECHILD;
	if (read(ends[0], &sim.access, sizeof(sim.access)) != sizeof(sim.access))
		scale_fail("cr_mpirun");
	sim.said = ends[0];
}

static void end_mpirun(void)
{
	kill(sim.pid, SIGKILL);
	waitpid(sim.pid, NULL, 0);
	close(sim.said);
	for (uint32_t i = 0; i < sim.nodes; i++)
		wire_close(&sim.node[i]);
}

/* Its processor time once it has nothing to do any more. */
static double used_at_rest(void)
{
	double used = scale_used(sim.pid), now;

	for (int quiet = 0; quiet < QUIET; quiet++, used = now) {
		usleep(LOOK_US);
		now = scale_used(sim.pid);
		if (now > used)
			quiet = 0;
	}
	return used;
}

/* ---- daemons ---------------------------------------------------------------------------- */

static void take(size_t number, const struct wire_header *h, const uint8_t *data)
{
	struct rank_message m;
	size_t length;

	if (rank_message_read(h, &data, &m, &length)) {
		sim.signalled += m.type == RANK_SIGNAL;
		if (m.type == RANK_SYNC) {
			rank_message_queue(&sim.node[number], RANK_SYNCED, WIRE_ALL, 0, !!sim.signalled, NULL, 0);
			wire_flush(&sim.node[number]);
		}
	} else if (h->type == WIRE_BEAT) {
		sim.beats++;
	} else if (!scale_take_addresses(&sim.questions, &sim.node[number], number, h, data)) {
		errno = EPROTO;
		scale_fail("an unexpected message");
	}
}

static int all_signalled(void)
{
	return sim.signalled >= sim.nodes;	/* again when its launcher has ended */
}

static int all_given(void)
{
	return sim.questions.given == sim.nodes;
}

static int none(void)
{
	return false;
}

/* Proxies have all ranks started, and these then get through MPI_Init. */
static void join(uint32_t node, bool restarted)
{
	uint32_t first = node * sim.per_node, end = scale_end(node, sim.ranks, sim.per_node);
	struct wire *w = &sim.node[node];

	scale_connect(w, &sim.access, node);
	for (uint32_t rank = first; rank < end; rank++)
		rank_message_queue(w, RANK_STARTED, rank, 0, false, &sim.ranks, sizeof(sim.ranks));
	wire_flush(w);
	for (uint32_t rank = first; rank < end; rank++)
		scale_hello(w, rank, sim.ranks, restarted);
	wire_flush(w);
}

static void begin(bool restarted)
{
	sim.signalled = 0;
	sim.questions = (struct scale_questions){ .ranks = sim.ranks, .per_node = sim.per_node };
	start_mpirun();
	for (uint32_t i = 0; i < sim.nodes; i++)
		join(i, restarted);
}

static void lose_rank(uint32_t node, uint32_t rank)
{
	rank_message_queue(&sim.node[node], RANK_ENDED, rank, 0, SIGKILL, NULL, 0);
	wire_queue(&sim.node[node], WIRE_GONE, rank, 0, NULL, 0);
}

/* All but rank 0. */
static void lose_ranks(void)
{
	for (uint32_t i = 0; i < sim.nodes; i++) {
		for (uint32_t rank = i * sim.per_node; rank < scale_end(i, sim.ranks, sim.per_node); rank++)
			if (rank)
				lose_rank(i, rank);
		wire_flush(&sim.node[i]);
	}
}

/* ---- heartbeats --------------------------------------------------------------------------- */

/* Each node sends a beat in its turn, for so long or until nodes are to end their ranks. */
static void beat(uint32_t nodes, double ms)
{
	double start = scale_now(), now;
	uint64_t sent = 0;

	while ((now = scale_now()) < start + ms && !sim.signalled) {
		for (; sent < (now - start) / BEAT_MS * nodes; sent++)
			wire_send(&sim.node[sent % nodes], WIRE_BEAT, WIRE_ALL, 0, NULL, 0);
		scale_serve_ready(sim.node, nodes, take);
	}
}

/* From now on the node's kernel gets nothing, and sends nothing. */
static void silence(uint32_t node)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &drop };
	int fd = sim.node[node].fd, zero = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &zero, sizeof(zero)) ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		scale_fail("cutting a node off");
}

/* ---- measuring ---------------------------------------------------------------------------- */

static void measure_beats(struct scale_job *out)
{
	double used, start;

	begin(false);
	used_at_rest();
	sim.beats = 0;
	used = scale_used(sim.pid);
	beat(sim.nodes, BEATING_MS);
	out->beating_ms = (scale_used(sim.pid) - used) / (BEATING_MS / 1e3);
	out->beats = sim.beats / (BEATING_MS / 1e3);
	silence(sim.nodes - 1);
	start = scale_now();
	beat(sim.nodes - 1, 10 * SILENCE_S * 1e3);
	errno = ETIMEDOUT;
	if (!sim.signalled)
		scale_fail("a silent node");
	out->silent_s = (scale_now() - start) / 1e3;
	end_mpirun();
}

static void measure_loss(double *launch, double *order, double *end)
{
	double used;

	begin(false);
	*launch = used = used_at_rest();
	lose_rank(0, 0);
	wire_flush(&sim.node[0]);
	scale_serve(sim.node, sim.nodes, -1, all_signalled, take);
	*order = scale_used(sim.pid) - used;
	used += *order;
	lose_ranks();
	scale_serve(sim.node, sim.nodes, sim.said, none, take);
	*end = scale_used(sim.pid) - used;
	end_mpirun();
}

static double measure_return(void)
{
	double used;

	begin(true);
	scale_serve(sim.node, sim.nodes, -1, all_given, take);
	used = used_at_rest();
	end_mpirun();
	return used;
}

void scale_job(uint32_t ranks, uint32_t per_node, int rounds, struct scale_job *out)
{
	double launch[SCALE_ROUNDS_MAX], order[SCALE_ROUNDS_MAX], end[SCALE_ROUNDS_MAX];

	sim.ranks = ranks;
	sim.per_node = per_node;
	sim.nodes = (ranks + per_node - 1) / per_node;
	sim.node = calloc(sim.nodes, sizeof(*sim.node));
	measure_beats(out);
	for (int i = 0; i < rounds; i++)
		measure_loss(&launch[i], &order[i], &end[i]);
	out->launch_ms = scale_median(launch, rounds);
	out->order_ms = scale_median(order, rounds);
	out->end_ms = scale_median(end, rounds);
	out->read_ms = scale_read(ranks);
	out->return_ms = measure_return();
	out->addresses = sim.questions.bytes;
	free(sim.node);
}
