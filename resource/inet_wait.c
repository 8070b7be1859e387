// SPDX-License-Identifier: GPL-2.0
/*
 * Ports that connections of the killed program still occupy.  The kernel remembers a
 * connection for a minute after its end (TIME_WAIT), and gives its port only to sockets
 * with SO_REUSEADDR if that of the program had it, too.  A socket in repair mode
 * (TCP_REPAIR) could be bound, but not listen.  So a restart waits, before it begins;
 * what else is in the way of a port is reported when the socket is made.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "proc/clock.h"
#include "proc/proc.h"
#include "report/report.h"

#define WAIT_NS		90000000000ull	/* longer than the kernel remembers: 60 s */
#define POLL_US		200000

/* Counts the sockets at a port: all, and those that a process has. */
static void count_sockets(const char *table, unsigned int port, size_t *all, size_t *alive)
{
	FILE *f = proc_stream(PROC_ROOT, table);
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long inode;
		unsigned int at;

		if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %*x %*x:%*x %*x:%*x %*x %*u "
			   "%*u %lu", &at, &inode) != 2 || at != port)
			continue;
		++*all;
		*alive += inode != 0;
	}
	if (f)
		fclose(f);
}

/* Is the port occupied, and only by connections that no process has any more? */
static bool has_ended(unsigned int port)
{
	size_t all = 0, alive = 0;

	count_sockets("net/tcp", port, &all, &alive);
	count_sockets("net/tcp6", port, &all, &alive);
	return all && !alive;
}

static void await_port(const Kcr__InetSocket *s)
{
	uint64_t end = now_ns() + WAIT_NS;
	unsigned int port;
	bool said = false;

	while (inet_socket_try(s, &port) == -EADDRINUSE && has_ended(port) && now_ns() < end) {
		if (!said)
			report_warn("port %u is occupied by connections that have ended: waiting "
				    "until the kernel has forgotten them, up to a minute", port);
		said = true;
		usleep(POLL_US);
	}
}

void ports_await(const struct rebuild *r)
{
	for (size_t i = 0; i < r->context->nr_files && !r->any_port; i++)
		if (r->context->file[i]->kind_case == KCR__FILE__KIND_INET_SOCKET)
			await_port(r->context->file[i]->inet_socket);
}
