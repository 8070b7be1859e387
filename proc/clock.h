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

/* How long until that time of now_ns(), in ms for poll(2), rounded up; 0: it is over. */
int ms_until(uint64_t time_ns);

#endif /* KCR_PROC_CLOCK_H */
