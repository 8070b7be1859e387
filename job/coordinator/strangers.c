// SPDX-License-Identifier: GPL-2.0
/*
 * mpirun's ports for the daemons, and the connections that have not yet proved to
 * know the job's secret.  Their number and time are limited: if all slots are
 * taken the oldest one is closed, but not before it has had MOMENT_NS to answer; until
 * then the next ones wait in the kernel.  The ports are at the interfaces that the
 * job may use, and are closed once all ranks have connected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/root_internal.h"
#include "proc/clock.h"

#define PATIENCE_NS	5000000000ull	/* for the greeting */
#define MOMENT_NS	50000000ull	/* each has at least this */
#define AT_ONCE		64		/* accepted in one round */
#define ADDRESS_ROOM	24		/* of one address with its port and comma */

static struct stranger {
	struct wire wire;
	struct greeting_challenge challenge;
	uint64_t since_ns;
} strangers[STRANGERS_MAX];		/* the oldest first */
static size_t nr_strangers;

static int listener[LISTENERS_MAX];
static size_t nr_listeners;

/* ---- ports ---------------------------------------------------------------------------- */

static int listen_at(struct in_addr host, unsigned short *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = host };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	wire_make_room(fd);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		int err = -errno;

		close(fd);
		return err;
	}
	*port = ntohs(address.sin_port);
	listener[nr_listeners++] = fd;
	return 0;
}

/* Is it in the comma-separated list?  An empty list contains all. */
static bool listed(const char *name, const char *list)
{
	size_t length = strlen(name);

	if (!list || !*list)
		return true;
	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
			return true;
	}
	return false;
}

static bool wanted(const struct ifaddrs *each, const char *interfaces)
{
	return each->ifa_addr && each->ifa_addr->sa_family == AF_INET &&
	       !(each->ifa_flags & IFF_LOOPBACK) && each->ifa_flags & IFF_UP &&
	       listed(each->ifa_name, interfaces);
}

int strangers_open(const char *interfaces, char *out, size_t room)
{
	struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	struct ifaddrs *list = NULL;
	unsigned short port;
	size_t length = 0;
	int err;

	*out = '\0';
	if (getifaddrs(&list))
		list = NULL;
	for (struct ifaddrs *each = list; each && length + 2 * ADDRESS_ROOM < room &&
	     nr_listeners < LISTENERS_MAX - 1; each = each->ifa_next) {
		char text[INET_ADDRSTRLEN];
		struct in_addr host;

		if (!wanted(each, interfaces))
			continue;
		host = ((struct sockaddr_in *)each->ifa_addr)->sin_addr;
		if (listen_at(host, &port))
			continue;
		inet_ntop(AF_INET, &host, text, sizeof(text));
		length += snprintf(out + length, room - length, "%s:%hu,", text, port);
	}
	freeifaddrs(list);
	err = listen_at(loopback, &port);
	if (err)
		strangers_close();
	else
		snprintf(out + length, room - length, "127.0.0.1:%hu", port);
	return err;
}

/* ---- strangers ------------------------------------------------------------------------ */

static void forget(size_t i)
{
	nr_strangers--;
	memmove(&strangers[i], &strangers[i + 1], (nr_strangers - i) * sizeof(*strangers));
}

static void drop(size_t i)
{
	wire_close(&strangers[i].wire);
	forget(i);
}

void strangers_close(void)
{
	while (nr_strangers)
		drop(0);
	while (nr_listeners)
		close(listener[--nr_listeners]);
}

size_t strangers_count(void)
{
	return nr_strangers;
}

bool strangers_drop_oldest(void)
{
	if (!nr_strangers)
		return false;
	drop(0);
	return true;
}

/* What the oldest has left of that time, in ns. */
static uint64_t left_to_oldest(uint64_t time_ns)
{
	uint64_t end = strangers[0].since_ns + time_ns, now = now_ns();

	return end > now ? end - now : 0;
}

/* For a new one, if need be in the place of the oldest. */
static bool is_room(void)
{
	return nr_strangers < STRANGERS_MAX || !left_to_oldest(MOMENT_NS);
}

static void take(const struct root *root, int fd)
{
	struct stranger *s = &strangers[nr_strangers];

	wire_watch_peer(fd, root->settings.silence_s ?: WIRE_SILENCE_S);
	wire_open(&s->wire, fd);
	s->since_ns = now_ns();
	if (greeting_challenge(&s->wire, &s->challenge))
		wire_close(&s->wire);
	else
		nr_strangers++;
}

static void accept_some(struct root *root, int from)
{
	int fd;

	for (int i = 0; i < AT_ONCE; i++) {
		if (!is_room())
			return;
		fd = descriptors_accept(root, from);
		if (fd < 0)
			return;
		if (nr_strangers == STRANGERS_MAX)
			drop(0);
		take(root, fd);
	}
}

/* The daemon itself has no standard error that the user sees. */
static void tell_versions(const char *name, uint32_t version)
{
	say_line("the ranks on %s cannot be checkpointed: its daemon has version %" PRIu32 " of the "
		 "greeting, mpirun has version %u: install the same release of KCR on all nodes", name,
		 version, GREETING_VERSION);
}

/* Is it one of the job? */
static bool is_known(const struct root *root, struct stranger *s, const struct wire_header *header,
		     const uint8_t *data, char **name)
{
	int err = greeting_take(&s->wire, &s->challenge, root->secret, header, data, name);

	if (err == -EPROTONOSUPPORT) {
		tell_versions(*name, header->id);
		free(*name);
	}
	return !err;
}

/* Handles its answer, if it has arrived. */
static void hear(struct root *root, size_t i)
{
	struct stranger *s = &strangers[i];
	struct wire_header header;
	const uint8_t *data;
	char *name;
	int err, got = 0;

	/* This process has stood still: a daemon has given up by now, and comes once more. */
	if (now_ns() >= s->since_ns + PATIENCE_NS) {
		drop(i);
		return;
	}
	err = wire_fill_once(&s->wire);
	if (err >= 0)
		got = wire_next(&s->wire, &header, &data);
	if (got == 1 && is_known(root, s, &header, data, &name)) {
		struct wire w = s->wire;

		forget(i);
		root_add_node(root, &w, name);
		return;
	}
	if (got || err < 0 || s->wire.in_end - s->wire.in_begin > GREETING_MAX)
		drop(i);
}

size_t strangers_watch(struct pollfd *p)
{
	bool room = is_room();

	for (size_t i = 0; i < nr_listeners; i++)
		p[i] = (struct pollfd){ room ? listener[i] : -1, POLLIN, 0 };
	for (size_t i = 0; i < nr_strangers; i++)
		p[nr_listeners + i] = (struct pollfd){ strangers[i].wire.fd, POLLIN, 0 };
	return nr_listeners + nr_strangers;
}

int strangers_patience(void)
{
	if (!nr_strangers)
		return -1;
	return left_to_oldest(is_room() ? PATIENCE_NS : MOMENT_NS) / 1000000 + 1;
}

void strangers_serve(struct root *root, const struct pollfd *p, size_t count)
{
	size_t listeners = nr_listeners;

	/* From the newest on: removing one does not move the older ones. */
	for (size_t i = count; i-- > listeners;)
		if (p[i].revents && nr_listeners && i - listeners < nr_strangers)
			hear(root, i - listeners);
	while (nr_strangers && !left_to_oldest(PATIENCE_NS))
		drop(0);
	for (size_t i = 0; i < nr_listeners; i++)
		if (p[i].revents)
			accept_some(root, listener[i]);
}
