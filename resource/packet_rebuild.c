// SPDX-License-Identifier: GPL-2.0
/*
 * Packet sockets at a restart.  A new one has no protocol until all that decides what comes
 * to it is set: options, filter, memberships, rings; then it is bound, and joins its fanout group.
 * The one exception is SOCK_PACKET, which cannot be given a protocol later.
 */
#include "resource/packet_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/packet_ring.h"
#include "resource/socket.h"
#include "resource/socket_filter.h"

#define GROUP_USUAL	256	/* members that a fanout group may have unless asked for more */
#define DRAIN_MAX	65536

static int new_socket(const Kcr__File *file)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	int protocol = s->type == SOCK_PACKET ? htons(s->protocol) : 0;
	int fd = socket(AF_PACKET, s->type | SOCK_CLOEXEC, protocol);

	if (fd >= 0)
		return fd;
	return errno == EPERM ?
	       rebuild_error(file, -EPERM, "the restart needs the right to use packet sockets "
			     "(CAP_NET_RAW)") : rebuild_error(file, -errno, "socket");
}

static int find_interface(const Kcr__File *file, int fd, const char *name, int *interface)
{
	struct ifreq request = {};

	memcpy(request.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	if (ioctl(fd, SIOCGIFINDEX, &request))
		return rebuild_error(file, -errno, errno == ENODEV ?
				     "there is no interface %s here" :
				     "cannot find its interface %s", name);
	*interface = request.ifr_ifindex;
	return 0;
}

/* ---- what comes before it is bound ------------------------------------------------------ */

static int join(const Kcr__File *file, int fd, const Kcr__PacketMembership *m)
{
	struct {
		int interface;
		uint16_t type, length;
		uint8_t address[32];
	} request = { .type = m->type, .length = m->address.len };
	int err = find_interface(file, fd, m->interface, &request.interface);

	if (m->address.len)
		memcpy(request.address, m->address.data, m->address.len);
	for (uint32_t i = 0; i < m->count && !err; i++)
		if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)))
			err = rebuild_error(file, -errno, "cannot get a membership on %s again",
					    m->interface);
	return err;
}

static int prepare(const struct rebuild *r, const Kcr__File *file, int fd)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	int err;

	socket_options_set(fd, s->option, s->n_option);
	err = socket_filter_set(file, fd, s->option, s->n_option);
	for (size_t i = 0; i < s->n_membership && !err; i++)
		err = join(file, fd, s->membership[i]);
	if (!err)
		err = packet_rings_make(r, file, fd);
	return err;
}

/* ---- binding ------------------------------------------------------------------------------ */

static int bind_link(const Kcr__PacketSocket *s, int fd, int interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(s->protocol),
		.sll_ifindex = interface,
	};

	return bind(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

static int bind_name(const Kcr__PacketSocket *s, int fd)
{
	struct sockaddr address = { .sa_family = AF_PACKET };

	memcpy(address.sa_data, s->interface, strnlen(s->interface, sizeof(address.sa_data) - 1));
	return bind(fd, &address, sizeof(address)) ? -errno : 0;
}

/* What has come before it was bound; a busy network must not keep us here. */
static void drain(int fd)
{
	for (int i = 0; i < DRAIN_MAX && recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0; i++)
		;
}

static int bind_again(const Kcr__File *file, int fd)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	int interface = 0, err = 0;

	if (s->interface)
		err = find_interface(file, fd, s->interface, &interface);
	if (err)
		return err;
	if (s->type == SOCK_PACKET && interface)
		err = bind_name(s, fd);
	else if (s->type != SOCK_PACKET && (interface || s->protocol))
		err = bind_link(s, fd, interface);
	if (err)
		return rebuild_error(file, err, "it cannot be bound");
	if (s->type == SOCK_PACKET)
		drain(fd);
	if (s->told_down)
		socket_value(fd, SO_ERROR);
	return 0;
}

/* ---- fanout -------------------------------------------------------------------------------- */

/* Sockets of the image in its group. */
static uint32_t count_members(const struct rebuild *r, const Kcr__PacketSocket *s)
{
	uint32_t count = 0;

	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *f = r->context->file[i];

		count += f->kind_case == KCR__FILE__KIND_PACKET_SOCKET &&
			 f->packet_socket->has_fanout && f->packet_socket->fanout == s->fanout;
	}
	return count;
}

static int join_group(const struct rebuild *r, const Kcr__File *file, int fd)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	struct { uint16_t id, type_and_flags; uint32_t most; } group = {
		.id = s->fanout, .type_and_flags = s->fanout >> 16, .most = count_members(r, s),
	};
	socklen_t length = group.most > GROUP_USUAL ? sizeof(group) : sizeof(int);

	return setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, length) ?
	       rebuild_error(file, -errno, "cannot join its fanout group %u", group.id) : 0;
}

/* ---- all ------------------------------------------------------------------------------------ */

int packet_socket_open(struct rebuild *r, const Kcr__File *file)
{
	int fd = new_socket(file), err;

	if (fd < 0)
		return fd;
	err = prepare(r, file, fd);
	if (!err)
		err = bind_again(file, fd);
	if (!err && file->packet_socket->has_fanout)
		err = join_group(r, file, fd);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

int packet_socket_check(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__PacketSocket *s = file->packet_socket;
	int fd = new_socket(file), interface, err = 0;

	(void)r;
	if (fd < 0)
		return fd;
	if (s->interface)
		err = find_interface(file, fd, s->interface, &interface);
	for (size_t i = 0; i < s->n_membership && !err; i++)
		err = find_interface(file, fd, s->membership[i]->interface, &interface);
	close(fd);
	return err;
}
