// SPDX-License-Identifier: GPL-2.0
/*
 * What an image's description demands of its reader.  A reader that ignored one of these
 * fields would restart a program that differs from the saved one, and say nothing.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "context.h"

static uint64_t features_of_thread(const Kcr__Thread *t)
{
	return (t->credentials || t->cwd ? CONTEXT_HAS_OWN_THREADS : 0) |
	       (t->seccomp ? CONTEXT_HAS_SECCOMP : 0) |
	       (t->has_tsc || t->has_mce_kill || t->io_flusher ? CONTEXT_HAS_SETTINGS : 0) |
	       (t->store_bypass || t->indirect_branch || t->cache_flush || t->dispatch ?
		CONTEXT_HAS_MORE_SETTINGS : 0) |
	       (t->policy ? CONTEXT_HAS_POLICIES : 0);
}

/* Others than the kernel's, which it sets by itself. */
static bool has_keys(const Kcr__Mm *mm)
{
	bool found = mm->keys;

	for (size_t i = 0; i < mm->n_vma; i++)
		found |= mm->vma[i]->pkey && mm->vma[i]->pkey != mm->execute_key;
	return found;
}

/* A process in the memory of another that does not share the folder with it. */
static bool has_own_folder(const Kcr__Process *p, Kcr__Process *const *all, size_t count)
{
	if (p->mm || !p->has_mm_id || !p->cwd)
		return false;
	for (size_t i = 0; i < count; i++)
		if (all[i]->mm && all[i]->mm_id == p->mm_id)
			return all[i]->fs_id != p->fs_id;
	return false;
}

uint64_t context_needs(Kcr__Process *const *process, size_t count)
{
	uint64_t features = 0;

	for (size_t i = 0; i < count; i++) {
		const Kcr__Process *p = process[i];

		if (p->root && strcmp(p->root, "/"))
			features |= CONTEXT_HAS_ROOT;
		if (has_own_folder(p, process, count))
			features |= CONTEXT_HAS_OWN_THREADS;
		if (p->mm && p->mm->has_keys && has_keys(p->mm))
			features |= CONTEXT_HAS_KEYS;
		if (p->mm && p->mm->n_aio)
			features |= CONTEXT_HAS_ASYNC;
		if (p->mm && p->mm->n_policy)
			features |= CONTEXT_HAS_POLICIES;
		if (p->mdwe)
			features |= CONTEXT_HAS_SETTINGS;
		if (p->tracer || p->merge || p->thp_advised || p->amx)
			features |= CONTEXT_HAS_MORE_SETTINGS;
		if (p->n_semaphore_set || p->n_sysv_queue || p->n_semaphore_undo)
			features |= CONTEXT_HAS_SYSV;
		for (size_t t = 0; t < p->n_thread; t++)
			features |= features_of_thread(p->thread[t]);
	}
	return features;
}

/* The first readers know streams, and datagrams of UDP. */
static uint64_t needs_of_inet(const Kcr__InetSocket *s)
{
	return s->type == SOCK_STREAM || s->protocol == IPPROTO_UDP ? 0 : CONTEXT_HAS_RAW;
}

uint64_t context_file_needs(const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_INET_SOCKET:
		return needs_of_inet(file->inet_socket);
	case KCR__FILE__KIND_PACKET_SOCKET:
		return CONTEXT_HAS_PACKETS | (file->packet_socket->rx_ring || file->packet_socket->tx_ring ?
					      CONTEXT_HAS_RINGS : 0);
	case KCR__FILE__KIND_IO_URING:
		return CONTEXT_HAS_ASYNC;
	case KCR__FILE__KIND_USER_FAULT:
		return CONTEXT_HAS_USERFAULT;
	default:
		return 0;
	}
}
