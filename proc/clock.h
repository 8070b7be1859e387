/* SPDX-License-Identifier: GPL-2.0 */
/* Clocks in nanoseconds. */
#ifndef KCR_PROC_CLOCK_H
#define KCR_PROC_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time of a clock of clock_gettime(2), in ns since its start; 0: no such clock. */
uint64_t clock_ns(clockid_t clock);

/* CLOCK_MONOTONIC, for measuring and waiting, in ns since boot. */
uint64_t now_ns(void);

#endif /* KCR_PROC_CLOCK_H */
