/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the coordination of a checkpoint costs mpirun and a node's daemon, by
 * their own code among simulated ones of the others: scale_root.c and
 * scale_node.c measure, scale.c makes a table of it.  A figure is processor time
 * of the process that is measured; all are medians of several checkpoints.
 */
#ifndef KCR_TESTS_MPI_SCALE_H
#define KCR_TESTS_MPI_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "job/coordinator/wire.h"

#define SCALE_PEERS_MAX	64
#define SCALE_ROUNDS_MAX 99

struct scale_root {
	double order_ms;	/* from the request until all daemons have been told to close gates */
	double exchange_ms;	/* from their bookmarks until all have what was sent to their ranks */
	double barrier_ms;	/* from their word that all is drained until all may dump */
	double resume_ms;	/* from their word that all is dumped until all may go on */
	uint64_t bookmarks;	/* bytes of them, there and back */
	double restart_ms;	/* of a restarted job: from its start until all have their addresses */
	uint64_t addresses;	/* bytes of them, there and back */
	uint64_t memory;	/* that mpirun needed at most, bytes */
	uint64_t messages;	/* that mpirun takes and gives in order, exchange and barrier */
};

struct scale_node {
	double order_ms;	/* passing the order on to the ranks */
	double bookmarks_ms;	/* their bookmarks to mpirun */
	double drain_ms;	/* what was sent to them, to them */
	double drained_ms;	/* their word that all is drained */
};

/* Of all of cr_mpirun, ms of processor time but for the silence. */
struct scale_job {
	double launch_ms;	/* until all daemons have joined, and all ranks been through MPI_Init */
	double beating_ms;	/* heartbeats: in a second */
	double beats;		/* of them, in a second */
	double silent_s;	/* from when a node is cut off until others are told to end their ranks */
	/* A rank is lost: */
	double order_ms;	/* from when it is known until all are told to end theirs */
	double end_ms;		/* from their ends until the job goes back */
	double read_ms;		/* the snapshot's manifest */
	double return_ms;	/* launch_ms, and until all nodes have their addresses */
	uint64_t addresses;	/* bytes of them, there and back */
};

/* What starting ranks through proxies costs on one node, in processor time but for the first. */
struct scale_launch {
	double all_ms;		/* from the first proxy's start until all ranks have been started */
	double daemon_ms, proxy_ms;	/* proxy: each */
	double direct_ms;	/* as all_ms, for the programs themselves */
};

extern bool scale_old;			/* restored ranks are of release 0.1.0 */
extern struct rlimit scale_files;	/* of the coordinator: open files */

/*
 * Measures mpirun's part for so many ranks, which were restarted or not; ends the
 * program where that fails.
 */
void scale_root(uint32_t ranks, uint32_t per_node, int rounds, bool restarted,
		struct scale_root *out);

/* Measures a daemon's part: ranks 0 to `per_node` - 1 of `ranks`. */
void scale_node(uint32_t ranks, uint32_t per_node, int rounds, struct scale_node *out);

/* Its part after a restart: asking mpirun for addresses, and the answers to its ranks, ms. */
double scale_node_restart(uint32_t ranks, uint32_t per_node);

/* For a daemon with SCALE_SECRET, mpirun's part: a socket, and WIRE_ROOT_VARIABLE for it. */
#define SCALE_SECRET	"0123456789abcdef0123456789abcdef"
#define SCALE_ROOT	32
int scale_listen(char root[SCALE_ROOT]);
/* Lets the daemon in, and closes the socket. */
void scale_accept(int listener, struct wire *w);

/* Measures a job's life but for its checkpoints, and the return to a snapshot. */
void scale_job(uint32_t ranks, uint32_t per_node, int rounds, struct scale_job *out);

/* Processor time for reading the manifest of a snapshot of so many ranks at a restart, ms. */
double scale_read(uint32_t ranks);

/* Measures a node with so many ranks: cr_node and cr_rank of the folder `bin`. */
void scale_launch(const char *bin, uint32_t count, int rounds, struct scale_launch *out);

/* ---- scale_peers.c: what all simulate ---- */

#define SCALE_ADDRESS	232	/* bytes: what btl/cr makes known */

/* How to reach a coordinator, as root_start() says. */
struct scale_access {
	char address[1024];
	char secret[WIRE_SECRET + 1];
};

/* The first rank behind those of a node. */
uint32_t scale_end(uint32_t node, uint32_t ranks, uint32_t per_node);

/* Connects a simulated daemon, up to its welcome. */
void scale_connect(struct wire *w, const struct scale_access *access, uint32_t node);

/* Has it say, when `w` is flushed, that the rank is there; if restarted, with its address. */
void scale_hello(struct wire *w, uint32_t rank, uint32_t ranks, bool restarted);

/* ---- scale_addresses.c: a daemon's questions after a restart ---- */

/* Of all ranks, and what they have communicated with: asks for those on other nodes, each once. */
struct scale_questions {
	uint32_t ranks, per_node;
	uint64_t bytes;		/* of questions and answers */
	uint32_t given;		/* nodes that have their answer */
};

/* A rank's question: its peers. */
void scale_ask(struct wire *w, uint32_t rank, uint32_t ranks);

/*
 * Handles BACK by asking, FOUND by looking whether it is what was asked for, and ADDRESSES
 * likewise.  False: it is another message.
 */
bool scale_take_addresses(struct scale_questions *all, struct wire *w, uint32_t node,
			  const struct wire_header *h, const uint8_t *data);

/* mpirun's answer to the daemon: the addresses it has asked for, or those of all. */
void scale_answer(struct wire *w, const uint32_t *asked, uint32_t count);
void scale_tell_all(struct wire *w, uint32_t ranks);

/*
 * The bookmarks of a rank: its 26 neighbours in a periodic grid of three
 * dimensions and those of recursive doubling (rank xor 2^k).  Returns how many.
 */
uint32_t scale_bookmarks(uint32_t rank, uint32_t ranks, struct wire_bookmark *out);

/* What `from` has sent to `to`. */
uint64_t scale_sent(uint32_t from, uint32_t to);

/*
 * Serves the connections until done() or `extra` (a descriptor, -1: none) is
 * readable.  take() gets the number of the connection with each message.
 */
void scale_serve(struct wire *wires, size_t count, int extra, int (*done)(void),
		 void (*take)(size_t number, const struct wire_header *h, const uint8_t *data));

/* Serves those that are ready now. */
void scale_serve_ready(struct wire *wires, size_t count,
		       void (*take)(size_t number, const struct wire_header *h, const uint8_t *data));

/* The time, ms. */
double scale_now(void);

/* Processor time that a process has used, ms. */
double scale_used(pid_t pid);

double scale_median(double *values, int count);

/* Ends the program with what errno says. */
void scale_fail(const char *what) __attribute__((noreturn));

#endif
