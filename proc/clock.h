/* SPDX-License-Identifier: GPL-2.0 */
/* Clocks in nanoseconds. */
#ifndef KCR_PROC_CLOCK_H
#define KCR_PROC_CLOCK_H

#include <stdint.h>
#include <time.h>

/* What a clock of clock_gettime(2) shows, in ns since it began; 0: there is no such clock. */
uint64_t clock_ns(clockid_t clock);

/* The one to measure by and to wait by (CLOCK_MONOTONIC), in ns since the machine started. */
uint64_t now_ns(void);

#endif /* KCR_PROC_CLOCK_H */
