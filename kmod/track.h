/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From when on the writes to a process's memory are known (KCR_IOC_TRACK): what the
 * kernel's soft-dirty bits alone do not say.  See scan.c for the use of these bits.
 */
#ifndef KCR_TRACK_H
#define KCR_TRACK_H

#include <linux/types.h>

/* Has the kernel soft-dirty bits that can be relied on? */
bool kcr_track_works(void);

/* Forgets everything; no job is left. */
void kcr_track_exit(void);

#endif /* KCR_TRACK_H */
