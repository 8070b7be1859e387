// SPDX-License-Identifier: GPL-2.0
/*
 * The ports of a rank, one at each address that others know of it, and guests:
 * connections that are not authenticated yet.  Their time and number are limited; if
 * all slots are taken the oldest guest is closed, but not before it has had MOMENT_NS,
 * and until then the next ones wait in the kernel.  So strangers cannot make a rank
 * run out of file descriptors.
 */
#include "btl_cr_tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUESTS_MAX 64
#define PATIENCE_NS 5000000000LL	/* to authenticate */
#define MOMENT_NS 50000000LL		/* each has at least this */

struct guest {
	int fd;
	int64_t since;
	size_t have;
	struct cr_tcp_challenge challenge;
	struct cr_tcp_greeting greeting;
	struct guest *next;
};

static struct guest *guests;		/* the newest first */
static struct guest *gone;		/* closed; epoll events of them may be pending */
static unsigned int guests_count;
static int ports[CR_ADDRESS_NETS];
static unsigned int ports_count;

/* ---- ports ------------------------------------------------------------------ */

static int listen_at(struct cr_address_net *net)
{
	struct cr_address own = { .nets_count = 1, .nets[0] = *net };
	struct sockaddr_storage address;
	socklen_t length = cr_address_socket(&own, 0, &address);
	int one = 1, fd = socket(net->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	if (net->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (void *)&address, length) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (void *)&address, &length)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	/* A rank restarted elsewhere has no such address, and closes the socket there. */
	if (net->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one));
	else
		setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	net->port = ntohs(net->family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port :
						    ((struct sockaddr_in *)&address)->sin_port);
	return fd;
}

static int open_port(struct cr_address_net *net)
{
	int fd = listen_at(net), rc;

	if (fd < 0)
		return fd;
	rc = cr_tcp_watch(EPOLL_CTL_ADD, fd, EPOLLIN, (uint64_t)ports_count << 2 | 2);
	if (rc) {
		close(fd);
		return rc;
	}
	ports[ports_count++] = fd;
	return 0;
}

/* An address that we cannot listen on is not given to others. */
int cr_guest_open(void)
{
	struct cr_address *own = &cr_address_own;
	int rc = -EADDRNOTAVAIL, last;
	unsigned int good = 0;

	for (unsigned int i = 0; i < own->nets_count; i++) {
		last = open_port(&own->nets[i]);
		if (!last)
			own->nets[good++] = own->nets[i];
		else
			rc = last;
	}
	own->nets_count = good;
	return good ? 0 : rc;
}

/* ---- coming and going ------------------------------------------------------- */

static void forget(struct guest *guest)
{
	struct guest **at;

	for (at = &guests; *at != guest; at = &(*at)->next)
		;
	*at = guest->next;
	guest->next = gone;
	gone = guest;
	guest->fd = -1;
	guests_count--;
}

static void drop(struct guest *guest)
{
	cr_tcp_end(guest->fd);
	forget(guest);
}

static void free_gone(void)
{
	struct guest *guest;

	while ((guest = gone)) {
		gone = guest->next;
		free(guest);
	}
}

static struct guest *oldest(void)
{
	struct guest *last = guests;

	while (last && last->next)
		last = last->next;
	return last;
}

bool cr_guest_drop_oldest(void)
{
	struct guest *guest = oldest();

	if (guest)
		drop(guest);
	return guest;
}

void cr_guest_settle(bool all_heard)
{
	struct guest *guest;

	while (all_heard && (guest = oldest()) && cr_now() - guest->since > PATIENCE_NS)
		drop(guest);
	free_gone();
}

void cr_guest_close(void)
{
	while (cr_guest_drop_oldest())
		;
	free_gone();
	while (ports_count)
		close(ports[--ports_count]);
}

/* Makes it a guest and sends a challenge. */
static int receive(int fd)
{
	struct guest *guest = calloc(1, sizeof(*guest));
	int rc = guest ? seal_random(guest->challenge.number, CR_TCP_NUMBER) : -ENOMEM;

	if (!rc)
		rc = cr_tcp_watch(EPOLL_CTL_ADD, fd, EPOLLIN, (uintptr_t)guest | 1);
	if (rc) {
		free(guest);
		return rc;
	}
	guest->fd = fd;
	guest->since = cr_now();
	guest->challenge.magic = CR_TCP_MAGIC;
	guest->next = guests;
	guests = guest;
	guests_count++;
	cr_tcp_count++;
	cr_tcp_no_delay(fd);
	/* These few bytes fit into a new socket; a peer that does not get them cannot answer. */
	send(fd, &guest->challenge, sizeof(guest->challenge), MSG_NOSIGNAL);
	return 0;
}

static bool has_place(void)
{
	return guests_count < GUESTS_MAX || cr_now() - oldest()->since > MOMENT_NS;
}

/* If there is no free file descriptor, the oldest guest is closed. */
static int accept_one(int port)
{
	int fd;

	do
		fd = accept4(port, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (fd < 0 && (errno == EMFILE || errno == ENFILE) && cr_guest_drop_oldest());
	return fd;
}

static int accept_guests(int port)
{
	int fd, count = 0;

	while (count < GUESTS_MAX && has_place() && (fd = accept_one(port)) >= 0) {
		if (guests_count >= GUESTS_MAX)
			cr_guest_drop_oldest();
		if (receive(fd))
			close(fd);
		count++;
	}
	return count;
}

void cr_guest_take_all(void)
{
	int fd;

	for (unsigned int i = 0; i < ports_count; i++) {
		accept_guests(ports[i]);
		for (int left = SOMAXCONN; left && (fd = accept_one(ports[i])) >= 0; left--)
			close(fd);
	}
}

/* ---- greetings -------------------------------------------------------------- */

static int hear(struct guest *guest)
{
	ssize_t length = recv(guest->fd, (char *)&guest->greeting + guest->have,
			      sizeof(guest->greeting) - guest->have, 0);
	struct cr_tcp_meeting meeting;
	uint8_t proof[SEAL_KEY];
	int fd = guest->fd;

	if (fd < 0 || (length < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	if (length > 0) {
		guest->have += length;
		if (guest->have < sizeof(guest->greeting))
			return 0;
		meeting = (struct cr_tcp_meeting){
			.challenge = guest->challenge, .from = guest->greeting.rank,
			.to = opal_proc_local_get()->proc_name.vpid, .sealed = cr_param.seal,
		};
		memcpy(meeting.number, guest->greeting.number, CR_TCP_NUMBER);
		cr_tcp_prove(proof, cr_address_own.key, "kcr-mpi rank", &meeting);
	}
	if (length <= 0 || guest->greeting.magic != CR_TCP_MAGIC ||
	    !seal_same(proof, guest->greeting.proof, SEAL_KEY)) {
		drop(guest);
		return 1;
	}
	forget(guest);
	if (cr_tcp_welcome(&meeting, fd)) {
		cr_tcp_end(fd);
	}
	return 1;
}

int cr_guest_event(uint64_t cookie)
{
	return cookie & 1 ? hear((struct guest *)(uintptr_t)(cookie & ~3UL)) :
			    accept_guests(ports[cookie >> 2]);
}
