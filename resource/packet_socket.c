// SPDX-License-Identifier: GPL-2.0
/*
 * Packet sockets (packet(7)): protocol and interface, memberships, options, filter, fanout
 * group.  Interfaces are known by their names.  Packets not yet read are lost, as
 * packets may be, except those in a ring (packet_ring.c), and so are the counts of
 * PACKET_STATISTICS, which cannot be read without clearing them.  This file saves;
 * packet_rebuild.c restores.
 */
#include "resource/packet_socket.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/packet_diag.h"
#include "resource/packet_ring.h"
#include "resource/socket.h"
#include "resource/socket_unsaved.h"

static bool match(const struct file_probe *probe)
{
	return socket_family(probe) == AF_PACKET;
}

/* In the socket's own network namespace.  -ENODEV: it has been removed. */
static int name_of(const struct file_probe *probe, uint32_t interface, char **name)
{
	struct ifreq request = { .ifr_ifindex = interface };

	if (ioctl(probe->fd, SIOCGIFNAME, &request))
		return -errno;
	*name = file_string(request.ifr_name);
	return *name ? 0 : -ENOMEM;
}

static bool is_up(const struct file_probe *probe, const char *name)
{
	struct ifreq request = {};

	memcpy(request.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	return !ioctl(probe->fd, SIOCGIFFLAGS, &request) && request.ifr_flags & IFF_UP;
}

static int save_interface(struct file_table *t, const struct file_probe *probe,
			  const struct packet_state *state, Kcr__PacketSocket *s)
{
	struct pollfd p = { .fd = probe->fd };
	int err;

	if (!state->info.pdi_index)
		return 0;
	err = name_of(probe, state->info.pdi_index, &s->interface);
	if (err == -ENODEV)
		return file_unsupported(t, "a packet socket whose interface has been removed");
	if (err)
		return file_save_error(probe, err, "cannot query its interface");
	s->told_down = !is_up(probe, s->interface) && !poll(&p, 1, 0);
	s->has_told_down = s->told_down;
	return 0;
}

static int save_membership(const struct file_probe *probe, const struct packet_diag_mclist *m,
			   Kcr__PacketSocket *s)
{
	Kcr__PacketMembership *one = malloc(sizeof(*one));
	size_t length = m->pdmc_alen;
	int err;

	if (!one)
		return report_errno(-ENOMEM, "saving a socket");
	kcr__packet_membership__init(one);
	s->membership[s->n_membership++] = one;
	one->type = m->pdmc_type;
	one->count = m->pdmc_count;
	if (length > sizeof(m->pdmc_addr))
		length = sizeof(m->pdmc_addr);
	err = name_of(probe, m->pdmc_index, &one->interface);
	return err ? file_save_error(probe, err, "cannot query the interface of a membership") :
		     file_bytes(&one->address, m->pdmc_addr, length);
}

static int save_memberships(struct file_table *t, const struct file_probe *probe,
			    const struct packet_state *state, Kcr__PacketSocket *s)
{
	int err = 0;

	if (!state->nr_members)
		return 0;
	for (size_t i = 0; i < state->nr_members; i++)
		if (state->member[i].pdmc_count > CONTEXT_MEMBERSHIPS_MAX)
			return file_unsupported(t, "a packet socket that has one membership more "
						"than %d times", CONTEXT_MEMBERSHIPS_MAX);
	s->membership = calloc(state->nr_members, sizeof(*s->membership));
	if (!s->membership)
		return report_errno(-ENOMEM, "saving a socket");
	for (size_t i = 0; i < state->nr_members && !err; i++)
		err = save_membership(probe, &state->member[i], s);
	return err;
}

static int save_fanout(struct file_table *t, const struct file_probe *probe,
		       const struct packet_state *state, Kcr__PacketSocket *s)
{
	socklen_t length = sizeof(s->fanout);
	uint8_t type;

	/* What getsockopt() tells of a group may be 0, too. */
	if (!state->in_group)
		return 0;
	if (getsockopt(probe->fd, SOL_PACKET, PACKET_FANOUT, &s->fanout, &length))
		return file_save_error(probe, -errno, "cannot query its fanout group");
	s->has_fanout = true;
	type = s->fanout >> 16;
	/* The kernel does not tell the program. */
	return type == PACKET_FANOUT_CBPF || type == PACKET_FANOUT_EBPF ?
	       file_unsupported(t, "a packet socket in a fanout group with a BPF program") : 0;
}

static int save_options(struct file_table *t, const struct file_probe *probe,
			const struct packet_state *state, Kcr__PacketSocket *s)
{
	const uint32_t threshold = state->info.pdi_copy_thresh;
	int err = 0;

	if (threshold)
		err = socket_option_add(&s->option, &s->n_option, SOL_PACKET, PACKET_COPY_THRESH,
					&threshold, sizeof(threshold));
	return err ?: socket_options_save(t, probe, AF_PACKET, s->type, 0, &s->option,
					  &s->n_option);
}

/* With a ring only copies of packets that are too long for it are there (PACKET_COPY_THRESH). */
static bool has_unread(int fd, bool ring)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int length = 0;

	if (ring)
		return !ioctl(fd, FIONREAD, &length) && length;
	return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}

static void warn_unread(struct file_table *t, const struct file_probe *probe,
			const Kcr__PacketSocket *s)
{
	if (!file_table_is_dry(t) && has_unread(probe->fd, s->rx_ring))
		report_warn("process %d: packets that it has not read are not saved (%s)",
			    probe->pid, probe->link);
}

static int save_state(struct file_table *t, const struct file_probe *probe,
		      const struct packet_state *state, Kcr__PacketSocket *s)
{
	int err;

	s->type = socket_value(probe->fd, SO_TYPE);
	s->protocol = state->protocol;
	err = socket_count_check(t, probe);
	if (!err)
		err = save_interface(t, probe, state, s);
	if (!err)
		err = save_memberships(t, probe, state, s);
	if (!err)
		err = save_fanout(t, probe, state, s);
	if (!err)
		err = save_options(t, probe, state, s);
	if (!err)
		err = packet_rings_save(t, probe, state, s);
	if (!err)
		warn_unread(t, probe, s);
	return err;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__PacketSocket *s = file_new_kind(file, KCR__FILE__KIND_PACKET_SOCKET, sizeof(*s));
	struct packet_state state;
	int err;

	if (!s)
		return -ENOMEM;
	err = packet_diag(t, probe->st.st_ino, &state);
	if (err == -ENOENT)
		err = file_unsupported(t, "a packet socket, of which this kernel does not tell "
				       "enough: load its module packet_diag (modprobe packet_diag)");
	else if (err == -ESRCH)
		err = file_unsupported(t, "a packet socket of another network namespace");
	else if (err)
		err = file_save_error(probe, err, "cannot query its state");
	else
		err = save_state(t, probe, &state, s);
	packet_state_free(&state);
	return err;
}

const struct file_kind file_kind_packet_socket = {
	.kind = KCR__FILE__KIND_PACKET_SOCKET,
	.name = "packet socket",
	.match = match,
	.save = save,
	.open = packet_socket_open,
	.check = packet_socket_check,
};
