/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rings of a process's contexts of io_setup(2), which only the kernel can map: made while
 * cr_restart's memory is still there, kept at addresses that nobody needs, and moved to their
 * places when the memory map is made.
 */
#ifndef KCR_RESTART_AIO_RINGS_H
#define KCR_RESTART_AIO_RINGS_H

#include <stdbool.h>

#include "resource/resource.h"
#include "restart/hole.h"

/* Makes the contexts of this process, the calling one: r->aio_ring.  0 or -errno, reported. */
int aio_rings_make(struct rebuild *r, const Kcr__Process *p);
/* Moves the rings out of the way of `busy`, and adds them to it.  0 or -errno, reported. */
int aio_rings_park(struct rebuild *r, const Kcr__Mm *mm, struct ranges *busy);
/* Adds them to the memory that is not unmapped. */
int aio_rings_ranges(const struct rebuild *r, const Kcr__Mm *mm, struct ranges *kept);
/* Is the mapping one of them?  Then it is moved to its place. */
bool aio_rings_script(const struct rebuild *r, const Kcr__Mm *mm, const Kcr__Vma *vma,
		      struct script *s);

#endif /* KCR_RESTART_AIO_RINGS_H */
