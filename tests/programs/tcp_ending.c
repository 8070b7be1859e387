// SPDX-License-Identifier: GPL-2.0
/*
 * TCP connections within the program whose ends have been shut, in all states, with
 * data that were not read or had no room at the receiver: each byte arrives, and the
 * end of the stream behind it and not before.  With "4" or "6": the family.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "check.h"

/* What one end does before the checkpoint. */
enum deed {
	WRITES_LITTLE = 1,	/* 1000 bytes */
	FILLS = 2,		/* as much as the kernel takes */
	SHUTS = 4,		/* shutdown(SHUT_WR) */
	FIRST = 8,		/* … before the other writes anything */
	READS = 16,		/* what has come until then, the end too */
};

static const struct connection {
	const char *name;
	int deeds[2];
	uint8_t state[2];	/* that the kernel shows then */
} connections[] = {
	{ "open, little", { WRITES_LITTLE, WRITES_LITTLE }, { TCP_ESTABLISHED, TCP_ESTABLISHED } },
	{ "open, full", { FILLS, FILLS }, { TCP_ESTABLISHED, TCP_ESTABLISHED } },
	{ "shut, nothing", { SHUTS, 0 }, { TCP_FIN_WAIT2, TCP_CLOSE_WAIT } },
	{ "shut, little", { WRITES_LITTLE | SHUTS, 0 }, { TCP_FIN_WAIT2, TCP_CLOSE_WAIT } },
	{ "shut, full", { FILLS | SHUTS, 0 }, { TCP_FIN_WAIT1, TCP_ESTABLISHED } },
	{ "shut, full, both full", { FILLS | SHUTS, FILLS }, { TCP_FIN_WAIT1, TCP_ESTABLISHED } },
	{ "both shut, both full", { FILLS | SHUTS, FILLS | SHUTS },
	  { TCP_FIN_WAIT1, TCP_FIN_WAIT1 } },
	{ "both shut, one full", { FILLS | SHUTS, WRITES_LITTLE | SHUTS },
	  { TCP_CLOSING, TCP_FIN_WAIT2 } },
	{ "shut last, full", { SHUTS | FIRST, FILLS | SHUTS }, { TCP_FIN_WAIT2, TCP_LAST_ACK } },
	{ "half shut, then full", { SHUTS | FIRST, FILLS }, { TCP_FIN_WAIT2, TCP_CLOSE_WAIT } },
	{ "shut both, little", { WRITES_LITTLE | SHUTS | FIRST, WRITES_LITTLE | SHUTS },
	  { TCP_CLOSE, TCP_CLOSE } },
	{ "shut, read to the end", { WRITES_LITTLE | SHUTS, READS }, { TCP_FIN_WAIT2, TCP_CLOSE_WAIT } },
};

#define NR	(sizeof(connections) / sizeof(*connections))

static struct end {
	int fd;
	uint64_t written, read;
} ends[NR][2];

static unsigned char byte_at(size_t connection, int side, uint64_t at)
{
	return at * 31 + (at >> 9) + connection * 7 + side;
}

static void connect_pair(int family, struct end pair[2])
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr *address = family == AF_INET ? (void *)&v4 : (void *)&v6;
	socklen_t length = family == AF_INET ? sizeof(v4) : sizeof(v6);
	int listener = socket(family, SOCK_STREAM, 0);

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(listener >= 0 && !bind(listener, address, length) && !listen(listener, 1));
	NEED(!getsockname(listener, address, &length));
	pair[0].fd = socket(family, SOCK_STREAM, 0);
	NEED(pair[0].fd >= 0 && !connect(pair[0].fd, address, length));
	pair[1].fd = accept(listener, NULL, NULL);
	NEED(pair[1].fd >= 0);
	close(listener);
}

static void write_some(size_t connection, int side, uint64_t most)
{
	struct end *end = &ends[connection][side];
	unsigned char data[16384];
	int quiet = 0;

	while (end->written < most && quiet < 20) {
		size_t length = sizeof(data) < most - end->written ? sizeof(data) :
				most - end->written;
		ssize_t n;

		for (size_t i = 0; i < length; i++)
			data[i] = byte_at(connection, side, end->written + i);
		n = send(end->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			end->written += n;
			quiet = 0;
		} else {
			bool full = errno == EAGAIN;

			NEED(full);
			check_sleep_ms(5);
			quiet++;
		}
	}
}

/* Reads what there is: -1, the stream goes on; 0, it has ended. */
static int read_some(size_t connection, int side)
{
	struct end *end = &ends[connection][side];
	unsigned char data[65536];
	ssize_t n;

	while ((n = recv(end->fd, data, sizeof(data), MSG_DONTWAIT)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != byte_at(connection, !side, end->read + i)) {
				CHECK(!"the bytes that were written");
				return 0;
			}
		end->read += n;
	}
	if (n < 0) {
		bool empty = errno == EAGAIN;

		CHECK(empty);
	}
	return n;
}

static void act(size_t connection, int side)
{
	int deeds = connections[connection].deeds[side];

	if (deeds & WRITES_LITTLE)
		write_some(connection, side, 1000);
	if (deeds & FILLS)
		write_some(connection, side, UINT64_MAX);
	if (deeds & SHUTS)
		NEED(!shutdown(ends[connection][side].fd, SHUT_WR));
	if (deeds & READS) {
		struct pollfd p = { .fd = ends[connection][side].fd, .events = POLLRDHUP };

		NEED(poll(&p, 1, 5000) == 1);
		NEED(!read_some(connection, side));
	}
}

static int state_of(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	NEED(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	return info.tcpi_state;
}

static void begin(size_t i, int family)
{
	const struct connection *c = &connections[i];

	connect_pair(family, ends[i]);
	act(i, 0);
	if (c->deeds[0] & FIRST)
		check_sleep_ms(50);
	act(i, 1);
	for (int side = 0; side < 2; side++) {
		int state = 0;

		for (int wait = 0; wait < 200; wait++) {
			state = state_of(ends[i][side].fd);
			if (state == c->state[side])
				break;
			check_sleep_ms(10);
		}
		if (state != c->state[side]) {
			fprintf(stderr, "# %s: side %d is in state %d\n", c->name, side, state);
			NEED(!"the state that is to be tested");
		}
	}
}

/* Both sides read all; those that have not shut write once more before. */
static void end(size_t i)
{
	bool ended[2] = { false, false };

	for (int side = 0; side < 2; side++) {
		if (!(connections[i].deeds[side] & (SHUTS | FILLS))) {
			write_some(i, side, ends[i][side].written + 100);
			CHECK(!shutdown(ends[i][side].fd, SHUT_WR));
		}
	}
	for (int wait = 0; wait < 3000 && (!ended[0] || !ended[1]); wait++) {
		for (int side = 0; side < 2; side++) {
			struct end *other = &ends[i][!side];

			if (!ended[side])
				ended[side] = !read_some(i, side);
			/* One that was full and open goes on when there is room. */
			if (ends[i][side].read == other->written && !ended[side] &&
			    !(connections[i].deeds[!side] & SHUTS) &&
			    connections[i].deeds[!side] & FILLS)
				CHECK(!shutdown(other->fd, SHUT_WR));
		}
		if (!ended[0] || !ended[1])
			check_sleep_ms(5);
	}
	for (int side = 0; side < 2; side++) {
		if (!ended[side] || ends[i][side].read != ends[i][!side].written)
			fprintf(stderr, "# %s: side %d has read %llu of %llu, end %d\n",
				connections[i].name, side, (unsigned long long)ends[i][side].read,
				(unsigned long long)ends[i][!side].written, ended[side]);
		CHECK(ended[side] && ends[i][side].read == ends[i][!side].written);
	}
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(argc == 4);
	for (size_t i = 0; i < NR; i++)
		begin(i, *argv[3] == '4' ? AF_INET : AF_INET6);
	check_ready();
	check_wait();
	for (size_t i = 0; i < NR; i++)
		end(i);
	return !!check_failures;
}
