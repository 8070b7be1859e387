// SPDX-License-Identifier: GPL-2.0
/*
 * Validates the open files of a context file: each refers to existing files of
 * the right kind.
 */
#include <string.h>
#include <sys/socket.h>

#include "section.h"

#define INTERFACE_MAX		16	/* bytes of a name, with its end */
#define LINK_ADDRESS_MAX	32	/* bytes */
#define RING_MAX		(1ull << 46)	/* likewise */

static const Kcr__File *of_kind(const struct context *c, uint32_t id, Kcr__File__KindCase kind)
{
	const Kcr__File *file = context_file(c, id);

	return file && file->kind_case == kind ? file : NULL;
}

static const char *check_epoll(const struct context *c, const Kcr__Epoll *epoll)
{
	const Kcr__EpollBusyPoll *busy = epoll->busy_poll;
	size_t i;

	if (busy && (busy->usecs > INT32_MAX || busy->budget > UINT16_MAX))
		return "epoll with impossible busy polling";
	for (i = 0; i < epoll->n_entry; i++) {
		if (epoll->entry[i]->fd < 0 || epoll->entry[i]->fd >= CONTEXT_FD_MAX)
			return "epoll entry's number";
		if (!context_file(c, epoll->entry[i]->file_id))
			return "epoll entry without its file";
	}
	return NULL;
}

/* The first file with the same contents precedes the others and refers to itself. */
static const char *check_origin(const struct context *c, const Kcr__File *file)
{
	const Kcr__File *origin;
	uint32_t first;

	switch (file->kind_case) {
	case KCR__FILE__KIND_REGULAR:
		if (!file->regular->deleted && !file->regular->shared_memory)
			return NULL;
		origin = of_kind(c, file->regular->link_group, file->kind_case);
		first = origin ? origin->regular->link_group : 0;
		break;
	case KCR__FILE__KIND_MEMFD:
		origin = of_kind(c, file->memfd->same_as, file->kind_case);
		first = origin ? origin->memfd->same_as : 0;
		break;
	case KCR__FILE__KIND_MESSAGE_QUEUE:
		origin = of_kind(c, file->message_queue->same_as, file->kind_case);
		first = origin ? origin->message_queue->same_as : 0;
		break;
	default:
		origin = of_kind(c, file->shared_memory->same_as, file->kind_case);
		first = origin ? origin->shared_memory->same_as : 0;
	}
	return origin && first == origin->id && first <= file->id ? NULL :
	       "file without its contents";
}

static const char *check_peer(const struct context *c, const Kcr__File *file)
{
	bool is_unix = file->kind_case == KCR__FILE__KIND_UNIX_SOCKET;
	uint32_t peer = is_unix ? file->unix_socket->peer_file_id :
				  file->inet_socket->peer_file_id;

	return !peer || of_kind(c, peer, file->kind_case) ? NULL : "socket without its peer";
}

static bool is_interface(const char *name)
{
	return *name && strlen(name) < INTERFACE_MAX && !strchr(name, '/');
}

/* In bytes; 0: there is none, or one that no machine has. */
static uint64_t ring_length(const Kcr__PacketRing *ring)
{
	uint64_t length = ring ? (uint64_t)ring->block_size * ring->block_nr : 0;

	return length < RING_MAX ? length : 0;
}

static bool is_ring(const Kcr__PacketRing *ring)
{
	return ring_length(ring) && ring->block_size % CONTEXT_PAGE == 0 &&
	       ring->next < (ring->has_sequence ? ring->block_nr : ring->frame_nr);
}

static const char *check_rings(const Kcr__PacketSocket *s)
{
	uint64_t length = ring_length(s->rx_ring) + ring_length(s->tx_ring);

	if ((s->rx_ring && !is_ring(s->rx_ring)) || (s->tx_ring && !is_ring(s->tx_ring)))
		return "packet socket with an impossible ring";
	for (size_t i = 0; i < s->n_part; i++)
		if (s->part[i]->offset > length || s->part[i]->data.len > length - s->part[i]->offset)
			return "packet socket with a ring that is too short";
	return NULL;
}

static const char *check_packet(const Kcr__PacketSocket *s)
{
	if (s->type != SOCK_RAW && s->type != SOCK_DGRAM && s->type != SOCK_PACKET)
		return "packet socket of an unknown type";
	if (s->protocol > UINT16_MAX)
		return "packet socket with an impossible protocol";
	if (s->interface && !is_interface(s->interface))
		return "packet socket with an impossible interface";
	for (size_t i = 0; i < s->n_membership; i++) {
		const Kcr__PacketMembership *m = s->membership[i];

		if (!is_interface(m->interface) || m->type > UINT16_MAX || !m->count ||
		    m->count > CONTEXT_MEMBERSHIPS_MAX || m->address.len > LINK_ADDRESS_MAX)
			return "packet socket with an impossible membership";
	}
	return check_rings(s);
}

static const char *check_io_uring(const Kcr__IoUring *ring)
{
	if (ring->n_sq_offset != CONTEXT_URING_OFFSETS || ring->n_cq_offset != CONTEXT_URING_OFFSETS)
		return "io_uring with an unknown layout";
	return NULL;
}

const char *check_file(const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND__NOT_SET:
		return "file of an unknown kind";
	case KCR__FILE__KIND_PACKET_SOCKET:
		return check_packet(file->packet_socket);
	case KCR__FILE__KIND_IO_URING:
		return check_io_uring(file->io_uring);
	default:
		return NULL;
	}
}

/* It is made by the process whose memory it works on. */
static const char *check_user_fault(const struct context *c, const Kcr__UserFault *fault)
{
	const Kcr__Process *p = context_process(c, fault->pid);

	return p && p->mm && p->mm->pid == p->pid ? NULL : "userfaultfd without its process";
}

static const char *check_reference(const struct context *c, const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_EPOLL:
		return check_epoll(c, file->epoll);
	case KCR__FILE__KIND_UNIX_SOCKET:
	case KCR__FILE__KIND_INET_SOCKET:
		return check_peer(c, file);
	case KCR__FILE__KIND_USER_FAULT:
		return check_user_fault(c, file->user_fault);
	case KCR__FILE__KIND_REGULAR:
	case KCR__FILE__KIND_MEMFD:
	case KCR__FILE__KIND_MESSAGE_QUEUE:
	case KCR__FILE__KIND_SHARED_MEMORY:
		return check_origin(c, file);
	default:
		return NULL;
	}
}

static const char *check_faulting(const struct context *c, const Kcr__Process *p)
{
	for (size_t i = 0; p->mm && i < p->mm->n_user_fault; i++) {
		const Kcr__File *file = context_file(c, p->mm->user_fault[i]->file_id);

		if (!file || file->kind_case != KCR__FILE__KIND_USER_FAULT ||
		    file->user_fault->pid != p->pid)
			return "memory area without its userfaultfd";
	}
	return NULL;
}

const char *check_references(const struct context *c)
{
	const char *wrong = NULL;
	size_t i;

	for (i = 0; i < c->nr_files && !wrong; i++)
		wrong = check_reference(c, c->file[i]);
	for (i = 0; i < c->nr_processes && !wrong; i++)
		wrong = check_faulting(c, c->process[i]);
	return wrong;
}
