// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of memory of sockets.  A restart can map the rings of a packet socket, which the kernel
 * maps as a whole only, and nothing else.
 */
#include "resource/packet_ring.h"

#include <errno.h>
#include <linux/kcr.h>
#include <string.h>

#include "report/report.h"

bool socket_memory_is(const char *path)
{
	return !strncmp(path, "socket:[", 8);
}

int socket_memory_check(pid_t pid, const Kcr__File *file, uint64_t offset, uint64_t length,
			bool shared)
{
	const Kcr__PacketSocket *s;

	if (!file)
		return report_fail(-EOPNOTSUPP, "process %d has memory of a socket mapped whose descriptor "
				   "is closed, which cannot be saved", pid);
	if (file->kind_case != KCR__FILE__KIND_PACKET_SOCKET)
		return report_fail(-EOPNOTSUPP, "process %d has memory of a socket mapped (as for "
				   "TCP_ZEROCOPY_RECEIVE), which cannot be saved: let the program do "
				   "without it", pid);
	s = file->packet_socket;
	if (shared && !offset && length == packet_ring_length(s->rx_ring) +
					   packet_ring_length(s->tx_ring))
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d has the ring of a packet socket mapped in parts, or not "
			   "shared, which cannot be saved: let the program leave the mapping as it is",
			   pid);
}

int socket_memories_check(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		const Kcr__Mm *mm = process[i]->mm;

		for (size_t k = 0; mm && k < mm->n_vma && !err; k++) {
			const Kcr__Vma *v = mm->vma[k];

			if (v->name && socket_memory_is(v->name))
				err = socket_memory_check(process[i]->pid, file_table_get(t, v->file_id),
							  v->offset, v->end - v->start,
							  v->flags & KCR_VMA_SHARED);
		}
	}
	return err;
}
