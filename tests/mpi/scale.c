// SPDX-License-Identifier: GPL-2.0
/*
 * scale [OPTIONS] [RANKS...]: how long the coordination of a checkpoint takes, from
 * the request until the ranks may be dumped, for jobs of 1000, 10000 and 100000
 * ranks.  The parts of mpirun and of a daemon are measured (scale.h), one after
 * the other added up as if none overlapped, with the hops between them; what
 * closing gates and draining takes in the ranks themselves is not in it.
 *   --per-node N   ranks of a node (64)
 *   --network US   one way through the network, beside the measured hop (20)
 *   --gbit N       mpirun's link, which all bookmarks go through (10)
 *   --rounds N     checkpoints to take the medians of (9)
 *   --restart      instead, a restart, in which each node gets the addresses that it needs
 *   --old          there and with --job: restored ranks are of release 0.1.0, so it gets all
 *   --job          instead, the rest of a job's life: its launch, through proxies, heartbeats,
 *                  the loss of a node or a rank and the return to a snapshot
 *   --files N[:M]  mpirun's limits of open files, soft and hard (1024)
 */
#include "scale.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PINGS	401
#define PING	16		/* bytes: a message's header */

static int per_node = 64, rounds = 9;
static double network_ms = 0.020, gbit = 10;
static bool restart, job;

/* ---- hops --------------------------------------------------------------------------- */

static void tcp_pair(int *ends)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length) ||
	    connect(ends[0], (struct sockaddr *)&address, sizeof(address)))
		scale_fail("a pair of TCP sockets");
	ends[1] = accept(listener, NULL, NULL);
	close(listener);
	wire_watch_peer(ends[0], WIRE_SILENCE_S);
	wire_watch_peer(ends[1], WIRE_SILENCE_S);
}

static void echo(int fd)
{
	char word[PING];

	while (recv(fd, word, sizeof(word), MSG_WAITALL) == sizeof(word))
		if (send(fd, word, sizeof(word), MSG_NOSIGNAL) != sizeof(word))
			break;
	_exit(0);
}

/* One way between two processes that sleep until something comes, ms. */
static double hop(int family)
{
	double times[PINGS];
	char word[PING] = "";
	int ends[2];
	pid_t pid;

	if (family == AF_INET)
		tcp_pair(ends);
	else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		scale_fail("a pair of sockets");
	pid = fork();
	if (pid < 0)
		scale_fail("fork");
	if (!pid) {
		close(ends[0]);
		echo(ends[1]);
	}
	for (int i = 0; i < PINGS; i++) {
		double start = scale_now();

		if (send(ends[0], word, PING, 0) != PING ||
		    recv(ends[0], word, PING, MSG_WAITALL) != PING)
			scale_fail("ping");
		times[i] = (scale_now() - start) / 2;
	}
	close(ends[0]);
	close(ends[1]);
	waitpid(pid, NULL, 0);
	return scale_median(times, PINGS);
}

/* ---- the table ------------------------------------------------------------------------ */

static double network, local;	/* hops */

static void line(uint32_t ranks)
{
	struct scale_root root;
	struct scale_node node;
	double gate, exchange, barrier, mpirun;

	scale_root(ranks, per_node, rounds, false, &root);
	scale_node(ranks, per_node, rounds, &node);
	gate = root.order_ms + network + node.order_ms + local;
	exchange = local + node.bookmarks_ms + network + root.exchange_ms +
		   root.bookmarks * 8 / (gbit * 1e6) + network + node.drain_ms + local;
	barrier = local + node.drained_ms + network + root.barrier_ms + network;
	mpirun = root.order_ms + root.exchange_ms + root.barrier_ms;
	printf("%8u %7u %8.2f %9.2f %8.2f %8.2f %8.2f %8.2f %9.1f %9.2f\n", ranks,
	       (ranks + per_node - 1) / per_node, gate, exchange, barrier, gate + exchange + barrier,
	       mpirun, node.order_ms + node.bookmarks_ms + node.drain_ms + node.drained_ms,
	       root.bookmarks / 1e6, root.messages / mpirun / 1e3);
	fflush(stdout);
}

static void restart_line(uint32_t ranks)
{
	uint64_t nodes = (ranks + per_node - 1) / per_node;
	struct scale_root root;

	scale_root(ranks, per_node, 1, true, &root);
	printf("%8u %7lu %10.3f %10.1f %10.1f %10.1f %10.2f\n", ranks, nodes,
	       root.addresses / 1e6 / nodes, root.restart_ms, root.addresses * 8 / (gbit * 1e6),
	       root.memory / 1e6, scale_node_restart(ranks, per_node));
	fflush(stdout);
}

static void job_line(uint32_t ranks)
{
	uint64_t nodes = (ranks + per_node - 1) / per_node;
	struct scale_job job;
	double link;

	scale_job(ranks, per_node, rounds, &job);
	link = job.addresses * 8 / (gbit * 1e6);
	printf("%8u %7lu %9.1f %8.0f %7.1f %6.2f %8.2f %8.1f %8.1f %9.1f %9.1f %9.1f\n", ranks, nodes,
	       job.launch_ms, job.beats, job.beating_ms, job.silent_s, job.order_ms, job.end_ms,
	       job.read_ms, job.return_ms, link,
	       job.order_ms + job.end_ms + job.read_ms + job.return_ms + link);
	fflush(stdout);
}

/* cr_node and cr_rank are where the build puts them, beside this program's folder. */
static void launch_line(const char *self)
{
	struct scale_launch launch;
	char bin[4096];

	snprintf(bin, sizeof(bin), "%.*s/../../bin", (int)(strrchr(self, '/') - self), self);
	scale_launch(bin, per_node, rounds, &launch);
	printf("A node's %d ranks: started in %.1f ms, %.1f without proxies; processor time of cr_node "
	       "%.1f ms, of each cr_rank %.2f ms\n", per_node, launch.all_ms, launch.direct_ms,
	       launch.daemon_ms, launch.proxy_ms);
}

static void each_size(int count, char **sizes, void (*show)(uint32_t ranks))
{
	static const uint32_t usual[] = { 1000, 10000, 100000 };

	for (int i = 0; i < count; i++)
		show(strtoul(sizes[i], NULL, 10));
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual) && !count; i++)
		show(usual[i]);
}

static void usage(void)
{
	fprintf(stderr, "usage: scale [--per-node N] [--network US] [--gbit N] [--rounds N] "
		"[--restart | --job] [--old] [--files N[:M]] [RANKS...]\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "per-node", required_argument, NULL, 'p' }, { "network", required_argument, NULL, 'n' },
		{ "gbit", required_argument, NULL, 'g' }, { "rounds", required_argument, NULL, 'r' },
		{ "files", required_argument, NULL, 'f' }, { "restart", no_argument, NULL, 'R' },
		{ "job", no_argument, NULL, 'j' }, { "old", no_argument, NULL, 'o' },
		{ 0 },
	};
	unsigned long soft, hard;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'p': per_node = atoi(optarg); break;
		case 'n': network_ms = atof(optarg) / 1e3; break;
		case 'g': gbit = atof(optarg); break;
		case 'R': restart = true; break;
		case 'j': job = true; break;
		case 'o': scale_old = true; break;
		case 'r': rounds = atoi(optarg); break;
		case 'f':
			switch (sscanf(optarg, "%lu:%lu", &soft, &hard)) {
			case 2: scale_files.rlim_max = hard; /* fall through */
			case 1: scale_files.rlim_cur = soft; break;
			default: usage();
			}
			break;
		default: usage();
		}
	}
	if (per_node < 1 || rounds < 1 || rounds > SCALE_ROUNDS_MAX || network_ms < 0 || gbit <= 0)
		usage();
}

/* The simulated daemons have a descriptor each, too. */
static void raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		scale_fail("limit of open files");
	scale_files = limit;
	if (scale_files.rlim_cur > 1024)
		scale_files.rlim_cur = 1024;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	raise_files();
	parse(argc, argv);
	if (restart) {
		printf("Addresses of the ranks after a restart; %d ranks per node\n%8s %7s %10s %10s %10s "
		       "%10s %10s\n", per_node, "ranks", "nodes", "MB a node", "mpirun ms", "its link",
		       "its MB", "daemon ms");
		each_size(argc - optind, argv + optind, restart_line);
		return 0;
	}
	if (job) {
		launch_line(argv[0]);
		printf("cr_mpirun's processor time, ms; its link: %g Gbit/s; %d ranks per node; a second of "
		       "heartbeats;\nseconds until a silent node is noticed; a rank lost until all are "
		       "back, but for mpirun and the images\n%8s %7s %9s %8s %7s %6s %8s %8s %8s %9s "
		       "%9s %9s\n", gbit, per_node, "ranks", "nodes", "launch", "beats", "ms", "silent",
		       "order", "end", "read", "return", "link", "sum");
		fflush(stdout);
		each_size(argc - optind, argv + optind, job_line);
		return 0;
	}
	network = hop(AF_INET);
	local = hop(AF_UNIX);
	printf("Coordination of a checkpoint until the dump may begin, ms; %d ranks per node\n"
	       "A hop: between nodes %.0f + %.0f µs, to a rank %.0f µs; mpirun's link: %g Gbit/s\n"
	       "%8s %7s %8s %9s %8s %8s %8s %8s %9s %9s\n", per_node, network * 1e3,
	       network_ms * 1e3, local * 1e3, gbit, "ranks", "nodes", "gate", "exchange", "barrier",
	       "sum", "mpirun", "daemon", "MB", "msg/µs");
	fflush(stdout);
	network += network_ms;
	each_size(argc - optind, argv + optind, line);
	return 0;
}
