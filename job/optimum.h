/* SPDX-License-Identifier: GPL-2.0 */
/* How often to save. */
#ifndef JOB_OPTIMUM_H
#define JOB_OPTIMUM_H

#include <stdint.h>

/*
 * The interval between saves of that cost which loses the least time on a machine with
 * that mean time to failure (both in ns, neither 0): J. T. Daly, "A higher order estimate
 * of the optimum checkpoint interval for restart dumps", 2006, equation 37.
 */
uint64_t optimum_interval(uint64_t cost_ns, uint64_t mttf_ns);

#endif /* JOB_OPTIMUM_H */
