// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon's part: the real one in a process of its own, between a simulated mpirun
 * and the simulated ranks of its node.  Its processor time is read when all that
 * it was given has come out at the other side.
 */
#include "scale.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/node.h"

#define GREETING_MS 5000

enum { ORDER, BOOKMARKS, DRAIN, DRAINED, CONTINUE, CONTINUED, PARTS };

static struct {
	uint32_t ranks, count;
	struct wire *wire;		/* of rank i, then mpirun's */
	uint32_t *asked, nr_asked;	/* ranks whose addresses it needs */
	uint32_t expected, come;	/* messages; those that come here from the daemon */
	uint32_t type;
} sim;

static void be_daemon(const char *root, int out)
{
	char name[NODE_NAME_MAX] = "";
	int err = node_start(root, SCALE_SECRET, "node", 0, name, NULL);

	errno = -err;
	if (err || write(out, name, sizeof(name)) != sizeof(name))
		scale_fail("the daemon does not start");
	for (;;)
		pause();
}

int scale_listen(char root[SCALE_ROOT])
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&address, &length))
		scale_fail("listening");
	snprintf(root, SCALE_ROOT, "127.0.0.1:%u", ntohs(address.sin_port));
	return fd;
}

/* mpirun's part of the greeting. */
static void greet(struct wire *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	struct greeting_challenge challenge;
	struct wire_header header;
	const uint8_t *data;
	char *name;

	errno = EPROTO;
	if (greeting_challenge(w, &challenge))
		scale_fail("greeting");
	while (!wire_next(w, &header, &data))
		if (poll(&p, 1, GREETING_MS) <= 0 || wire_fill_once(w) < 0)
			scale_fail("waiting for the daemon's greeting");
	if (greeting_take(w, &challenge, SCALE_SECRET, &header, data, &name))
		scale_fail("the daemon's greeting");
	wire_flush(w);
	free(name);
}

void scale_accept(int listener, struct wire *w)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		scale_fail("accept");
	wire_watch_peer(fd, WIRE_SILENCE_S);
	wire_open(w, fd);
	greet(w);
	close(listener);
}

static pid_t start_daemon(char *name)
{
	char root[SCALE_ROOT];
	int ends[2], listener = scale_listen(root);
	pid_t pid;

	if (pipe(ends))
		scale_fail("pipe");
	pid = fork();
	if (pid < 0)
		scale_fail("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_daemon(root, ends[1]);
	}
	close(ends[1]);
	scale_accept(listener, &sim.wire[sim.count]);
	errno = ECHILD;
	if (read(ends[0], name, NODE_NAME_MAX) != NODE_NAME_MAX)
		scale_fail("daemon");
	close(ends[0]);
	return pid;
}

static void join(const char *name, uint32_t rank, bool restarted)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(to.sun_path + 1, name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to,
			      offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)))
		scale_fail("connecting a rank");
	wire_open(&sim.wire[rank], fd);
	scale_hello(&sim.wire[rank], rank, sim.ranks, restarted);
	if (restarted && !scale_old)
		scale_ask(&sim.wire[rank], rank, sim.ranks);
	wire_flush(&sim.wire[rank]);
}

static void take(size_t number, const struct wire_header *h, const uint8_t *data)
{
	errno = EPROTO;
	if (number < sim.count && h->rank != number)
		scale_fail("another rank's message");
	if (h->type == WIRE_WHERE && h->rank == WIRE_ALL) {
		sim.nr_asked = h->length / sizeof(*sim.asked);
		sim.asked = malloc(h->length + 1);
		memcpy(sim.asked, data, h->length);
	}
	sim.come += h->type == sim.type;
}

static int all_come(void)
{
	return sim.come == sim.expected;
}

static void expect(uint32_t type, uint32_t count)
{
	sim.type = type;
	sim.come = 0;
	sim.expected = count;
	scale_serve(sim.wire, sim.count + 1, -1, all_come, take);
}

static void tell_ranks(uint32_t type, uint32_t id)
{
	wire_send(&sim.wire[sim.count], type, WIRE_ALL, id, NULL, 0);
	expect(type, sim.count);
}

static void tell_marks(uint32_t id)
{
	struct wire_bookmark mark[SCALE_PEERS_MAX];

	for (uint32_t i = 0; i < sim.count; i++) {
		uint32_t count = scale_bookmarks(i, sim.ranks, mark);

		wire_send(&sim.wire[sim.count], WIRE_DRAIN, i, id, mark, count * sizeof(*mark));
	}
	expect(WIRE_DRAIN, sim.count);
}

static void answer(uint32_t type, uint32_t id)
{
	struct wire_bookmark mark[SCALE_PEERS_MAX];

	for (uint32_t i = 0; i < sim.count; i++) {
		uint32_t count = type == WIRE_BOOKMARKS ? scale_bookmarks(i, sim.ranks, mark) : 0;

		wire_send(&sim.wire[i], type, i, id, mark, count * sizeof(*mark));
	}
	expect(type, sim.count);
}

static void lead(pid_t pid, uint32_t id, double *part)
{
	for (int i = 0; i < PARTS; i++) {
		double used = scale_used(pid);

		switch (i) {
		case ORDER: tell_ranks(WIRE_PREPARE, id); break;
		case BOOKMARKS: answer(WIRE_BOOKMARKS, id); break;
		case DRAIN: tell_marks(id); break;
		case DRAINED: answer(WIRE_DRAINED, id); break;
		case CONTINUE: tell_ranks(WIRE_CONTINUE, id); break;
		case CONTINUED: answer(WIRE_CONTINUED, id); break;
		}
		part[i] = scale_used(pid) - used;
	}
}

static pid_t begin(uint32_t ranks, uint32_t per_node, bool restarted)
{
	char name[NODE_NAME_MAX];
	pid_t pid;

	sim.ranks = ranks;
	sim.count = per_node;
	sim.wire = calloc(per_node + 1, sizeof(*sim.wire));
	pid = start_daemon(name);
	for (uint32_t i = 0; i < per_node; i++)
		join(name, i, restarted);
	expect(WIRE_HELLO, per_node);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (uint32_t i = 0; i <= sim.count; i++)
		wire_close(&sim.wire[i]);
	free(sim.wire);
}

double scale_node_restart(uint32_t ranks, uint32_t per_node)
{
	pid_t pid = begin(ranks, per_node, true);
	double used = scale_used(pid);

	if (scale_old) {
		scale_tell_all(&sim.wire[sim.count], ranks);
		expect(WIRE_ADDRESSES, per_node);
	} else {
		wire_send(&sim.wire[sim.count], WIRE_BACK, WIRE_ALL, 0, NULL, 0);
		expect(WIRE_WHERE, 1);
		scale_answer(&sim.wire[sim.count], sim.asked, sim.nr_asked);
		expect(WIRE_FOUND, per_node);
		free(sim.asked);
	}
	used = scale_used(pid) - used;
	end(pid);
	return used;
}

void scale_node(uint32_t ranks, uint32_t per_node, int rounds, struct scale_node *out)
{
	double part[PARTS][SCALE_ROUNDS_MAX], one[PARTS];
	pid_t pid = begin(ranks, per_node, false);

	for (int round = -1; round < rounds; round++) {		/* the first one is not counted */
		lead(pid, round + 2, one);
		for (int i = 0; i < PARTS && round >= 0; i++)
			part[i][round] = one[i];
	}
	*out = (struct scale_node){
		.order_ms = scale_median(part[ORDER], rounds),
		.bookmarks_ms = scale_median(part[BOOKMARKS], rounds),
		.drain_ms = scale_median(part[DRAIN], rounds),
		.drained_ms = scale_median(part[DRAINED], rounds),
	};
	end(pid);
}
