/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Telling programs that use libcr that they were restarted.
 */
#ifndef KCR_RESTART_RECORD_H
#define KCR_RESTART_RECORD_H

#include "resource/resource.h"

/*
 * Writes number, time and file of this restart into the memory of every
 * process that keeps a record (libcr/record.h).  All threads have entered, and
 * the memory is filled.  0 or -errno, reported.
 */
int record_restart(struct rebuild *r);

#endif /* KCR_RESTART_RECORD_H */
