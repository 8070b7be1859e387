// SPDX-License-Identifier: GPL-2.0
/* The simulated job and what else both measurements share: see scale.h. */
#include "scale.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"

#define PATIENCE_MS 60000

void scale_fail(const char *what)
{
	fprintf(stderr, "scale: %s: %s\n", what, strerror(errno));
	exit(1);
}

uint32_t scale_end(uint32_t node, uint32_t ranks, uint32_t per_node)
{
	return ranks - node * per_node > per_node ? (node + 1) * per_node : ranks;
}

void scale_connect(struct wire *w, const struct scale_access *access, uint32_t node)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;
	char name[32];

	to.sin_port = htons(atoi(strrchr(access->address, ':') + 1));
	wire_watch_peer(fd, WIRE_SILENCE_S);
	wire_make_room(fd);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		scale_fail("connecting a daemon");
	snprintf(name, sizeof(name), "node%u", node);
	err = greeting_daemon(w, fd, access->secret, name);
	errno = -err;
	if (err)
		scale_fail("greeting");
}

void scale_hello(struct wire *w, uint32_t rank, uint32_t ranks, bool restarted)
{
	struct {
		struct wire_hello head;
		char rest[SCALE_ADDRESS + sizeof(struct wire_version)];
	} hello = { .head = { .pid = 1, .top = 1, .size = ranks, .restarted = restarted } };

	const struct wire_version version = { WIRE_VERSION, WIRE_CAN_0 | WIRE_CAN_FIND };
	size_t length = sizeof(hello.head) + (restarted ? SCALE_ADDRESS : 0);

	hello.head.address_length = restarted ? SCALE_ADDRESS : 0;
	memcpy(hello.rest, &rank, restarted ? sizeof(rank) : 0);
	memcpy((char *)&hello + length, &version, sizeof(version));
	wire_queue(w, WIRE_HELLO, rank, 0, &hello, length + (scale_old ? 0 : sizeof(version)));
}

/* The largest divisor of n whose power is not above n. */
static uint32_t divisor(uint32_t n, int power)
{
	uint32_t best = 1;

	for (uint64_t d = 1; (power == 3 ? d * d * d : d * d) <= n; d++)
		if (n % d == 0)
			best = d;
	return best;
}

static uint32_t add(uint32_t rank, uint32_t peer, struct wire_bookmark *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (out[i].rank == peer)
			return count;
	if (peer == rank)
		return count;
	out[count] = (struct wire_bookmark){ .rank = peer, .sent = scale_sent(rank, peer) };
	return count + 1;
}

uint32_t scale_bookmarks(uint32_t rank, uint32_t ranks, struct wire_bookmark *out)
{
	static uint32_t known, nx, ny, nz;
	uint32_t x, y, z, count = 0;

	if (known != ranks) {
		nz = divisor(ranks, 3);
		ny = divisor(ranks / nz, 2);
		nx = ranks / nz / ny;
		known = ranks;
	}
	x = rank % nx;
	y = rank / nx % ny;
	z = rank / nx / ny;
	for (uint32_t i = 0; i < 27; i++)
		count = add(rank, (x + nx + i % 3 - 1) % nx +
			    nx * ((y + ny + i / 3 % 3 - 1) % ny +
				  ny * ((z + nz + i / 9 - 1) % nz)), out, count);
	for (uint32_t bit = 1; bit < ranks; bit *= 2)
		if ((rank ^ bit) < ranks)
			count = add(rank, rank ^ bit, out, count);
	return count;
}

uint64_t scale_sent(uint32_t from, uint32_t to)
{
	return 1 + (((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15ull >> 24);
}

static void serve_one(struct wire *w, size_t number, short events,
		      void (*take)(size_t number, const struct wire_header *h, const uint8_t *data))
{
	struct wire_header header;
	const uint8_t *data;
	int err = events & POLLOUT ? wire_flush(w) : 0;

	if (!err && events & ~POLLOUT)
		err = wire_fill(w);
	while (!err && wire_next(w, &header, &data) == 1)
		take(number, &header, data);
	errno = -err;
	if (err)
		scale_fail("a connection is lost");
}

/* Whether something came in time; p[count] is for a descriptor of the caller's. */
static bool serve_all(struct wire *wires, size_t count, struct pollfd *p, int patience_ms,
		      void (*take)(size_t number, const struct wire_header *h, const uint8_t *data))
{
	for (size_t i = 0; i < count; i++)
		p[i] = (struct pollfd){ wires[i].fd, wire_events(&wires[i]), 0 };
	if (poll(p, count + 1, patience_ms) <= 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (p[i].revents)
			serve_one(&wires[i], i, p[i].revents, take);
	return true;
}

void scale_serve(struct wire *wires, size_t count, int extra, int (*done)(void),
		 void (*take)(size_t number, const struct wire_header *h, const uint8_t *data))
{
	struct pollfd *p = calloc(count + 1, sizeof(*p));

	while (p && !done()) {
		p[count] = (struct pollfd){ extra, POLLIN, 0 };
		errno = ETIMEDOUT;
		if (!serve_all(wires, count, p, PATIENCE_MS, take))
			scale_fail("waiting for messages");
		if (p[count].revents)
			break;
	}
	free(p);
}

void scale_serve_ready(struct wire *wires, size_t count,
		       void (*take)(size_t number, const struct wire_header *h, const uint8_t *data))
{
	struct pollfd *p = calloc(count + 1, sizeof(*p));

	if (!p)
		scale_fail("memory");
	p[count].fd = -1;
	serve_all(wires, count, p, 0, take);
	free(p);
}

double scale_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

double scale_used(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	errno = clock_getcpuclockid(pid, &clock);
	if (errno || clock_gettime(clock, &used))
		scale_fail("processor time");
	return used.tv_sec * 1e3 + used.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double scale_median(double *values, int count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
