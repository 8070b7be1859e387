// SPDX-License-Identifier: GPL-2.0
/*
 * TCP connections that wait in the queue of a listening socket, at a restart; tcp_waiting.c
 * saves them.  All sockets are bound, and all other connections have been made: nobody
 * accepts these instead.  What nobody here can connect to, an address that is another
 * machine's, has no connections any more.
 */
#include "resource/inet_socket.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"
#include "resource/inet_connect.h"

#define ARRIVE_MS	1000

static bool is_connected(int fd)
{
	uint8_t end[INET_END];

	return inet_end_get(fd, true, end);
}

static bool is_out_of_reach(int err)
{
	return err == -EADDRNOTAVAIL || err == -ECONNREFUSED;
}

static void warn_lost(void)
{
	report_warn("a TCP connection that a program had yet to accept is lost: its address cannot "
		    "be reached here");
}

/*
 * connect() returns before the listener has got the last part of the handshake; if that comes
 * when the listener has its own options again, it may be dropped.  A socket of another tree at
 * the same port may have got the connection: this does not wait for ever.
 */
static void wait_until_there(const struct rebuild *r, const Kcr__File *listening, uint32_t before)
{
	for (int ms = 0; ms < ARRIVE_MS && inet_count_waiting(r, listening) <= before; ms++)
		usleep(1000);
}

static int connect_client(struct rebuild *r, const Kcr__File *listening, const Kcr__File *client)
{
	uint32_t before;
	int fd;

	if (is_connected(r->file_fd[client->id - 1]))
		return 0;
	before = inet_count_waiting(r, listening);
	fd = inet_connect(client->inet_socket, r->file_fd[listening->id - 1], true);
	if (is_out_of_reach(fd)) {
		warn_lost();
		return inet_open_hung_up(r, client);
	}
	if (fd < 0)
		return fd;
	wait_until_there(r, listening, before);
	inet_end_again(fd, client->inet_socket);
	return rebuild_put(r, client->id, fd);
}

/* ---- others' --------------------------------------------------------------------------- */

static void bind_to(int fd, const char *device)
{
	bool raised = identity_raise(false);

	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device));
	identity_lower(raised);
}

/*
 * A socket of nobody, connected to this one.  A listener that is bound to an interface gets
 * what is sent to the address of that, but not what comes by loopback; one in a VRF only what
 * is sent there.
 */
static int connect_somebody(const Kcr__InetSocket *s, int listener)
{
	Kcr__InetSocket nobody = inet_nobody(s->family);
	int fd = inet_connect(&nobody, listener, false);
	char device[IFNAMSIZ] = "";
	socklen_t length = sizeof(device);

	if (!is_out_of_reach(fd) ||
	    getsockopt(listener, SOL_SOCKET, SO_BINDTODEVICE, device, &length) || !device[0])
		return fd;
	if (fd == -EADDRNOTAVAIL) {
		nobody.option = s->option;
		nobody.n_option = s->n_option;
		return inet_connect(&nobody, listener, false);
	}
	bind_to(listener, "lo");
	fd = inet_connect(&nobody, listener, false);
	bind_to(listener, device);
	return fd;
}

/* A client that ends the connection at once, or resets it, as one that is gone has or would. */
static int connect_nobody(const struct rebuild *r, const Kcr__File *listening, bool ended)
{
	const struct linger reset = { .l_onoff = 1 };
	uint32_t before = inet_count_waiting(r, listening);
	int fd = connect_somebody(listening->inet_socket, r->file_fd[listening->id - 1]);

	if (is_out_of_reach(fd)) {
		warn_lost();
		return 0;
	}
	if (fd < 0)
		return fd;
	wait_until_there(r, listening, before);
	if (!ended)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return 0;
}

/* ---- all -------------------------------------------------------------------------------- */

static int connect_all(struct rebuild *r, const Kcr__File *listening)
{
	const Kcr__InetSocket *s = listening->inet_socket;
	int err = 0;

	for (size_t i = 0; i < s->n_not_accepted && !err; i++) {
		const Kcr__NotAccepted *one = s->not_accepted[i];
		const Kcr__File *client = context_file(r->context, one->file_id);

		if (!client)
			err = connect_nobody(r, listening, one->ended);
		else if (client->kind_case == KCR__FILE__KIND_INET_SOCKET &&
			 client->inet_socket->pending && r->file_fd[client->id - 1] >= 0)
			err = connect_client(r, listening, client);
	}
	return err;
}

/*
 * Meanwhile there is room for them, though strangers may connect, too; and they need not send
 * anything to be there.
 */
int inet_socket_complete(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__InetSocket *s = file->inet_socket;
	int listener = r->file_fd[file->id - 1], defer = 0, off = 0, err;
	socklen_t length = sizeof(defer);

	inet_bind_end(r, file);
	if (!s->listening || !s->n_not_accepted)
		return 0;
	getsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, &length);
	setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &off, sizeof(off));
	listen(listener, INT_MAX);
	err = connect_all(r, file);
	listen(listener, s->backlog);
	setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, sizeof(defer));
	return err ? inet_connect_error(file, err, "a client cannot connect to it") : 0;
}
