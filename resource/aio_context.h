/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts of io_setup(2), what the other rooms need of them: attribute_aio_context saves
 * them; a restart makes them before the memory map is in place, and moves their rings there.
 */
#ifndef KCR_RESOURCE_AIO_CONTEXT_H
#define KCR_RESOURCE_AIO_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/context.h"

/* Is this the name of a mapping that is the ring of a context? */
bool aio_context_is_ring(const char *name);

/*
 * Can contexts be saved here?  Tries the kernel's and the module's with one of our own, once.
 * 0; -EOPNOTSUPP, reported with the PID of a process that has some.
 */
int aio_context_check(int job, pid_t pid);

/*
 * Has the stopped process requests in flight?  1, with *waits: one of them waits for an event,
 * perhaps for ever; 0; -errno, reported.
 */
int aio_context_busy(int job, pid_t pid, bool *waits);

/*
 * In a process that is being rebuilt: makes the context, with its events.  *ring: where the
 * kernel has put its ring, for mremap(2).  0 or -errno, reported.
 */
int aio_context_make(pid_t pid, const Kcr__AioContext *saved, uint64_t *ring);

static inline uint64_t aio_context_length(const Kcr__AioContext *saved)
{
	return saved->event.len + CONTEXT_AIO_HEAD;
}

/* The one whose ring this mapping is; NULL: none. */
static inline const Kcr__AioContext *aio_context_of(const Kcr__Mm *mm, const Kcr__Vma *vma)
{
	for (size_t i = 0; i < mm->n_aio; i++)
		if (mm->aio[i]->id == vma->start)
			return mm->aio[i];
	return NULL;
}

#endif /* KCR_RESOURCE_AIO_CONTEXT_H */
