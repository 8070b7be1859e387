/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The new processes as descriptors (proc/handle.h), to be opened while none of them runs:
 * later each may have ended, and its number be another program's.
 */
#ifndef KCR_RESTART_HANDLES_H
#define KCR_RESTART_HANDLES_H

#include "resource/resource.h"

/*
 * When all have entered: one for each process in r->context; -1: a zombie, or one that was
 * killed meanwhile.  0 or -errno, reported.
 */
int handles_open(const struct rebuild *r, int **out);

#endif /* KCR_RESTART_HANDLES_H */
