/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lets programs that use libcr know that they were restarted.
 */
#ifndef KCR_RESTART_RECORD_H
#define KCR_RESTART_RECORD_H

#include "resource/resource.h"

/*
 * Writes count, time, file and requester of this restart into the memory of every process
 * that keeps a record (libcr/record.h), after all threads have entered and their
 * memory was filled.  0 or -errno, reported.
 */
int record_restart(struct rebuild *r);

#endif /* KCR_RESTART_RECORD_H */
