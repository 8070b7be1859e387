/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Deferred pages that are in a process already.  Where memory was filled the kernel may have
 * made a huge page, which reaches into what is deferred: as these pages are there, as zeros,
 * nobody would ask for them.
 */
#ifndef KCR_RESTART_LAZY_PRESENT_H
#define KCR_RESTART_LAZY_PRESENT_H

#include "image/deferred.h"
#include "resource/resource.h"

/*
 * Fills those of process `pid`, as saved, in [start, end); they stay deferred.  It must have
 * entered, and not run.  0 or -errno with a message.
 */
int lazy_fill_present(const struct rebuild *r, const struct deferred *d, int32_t pid,
		      uint64_t start, uint64_t end);

#endif /* KCR_RESTART_LAZY_PRESENT_H */
