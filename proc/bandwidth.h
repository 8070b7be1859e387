/* SPDX-License-Identifier: GPL-2.0 */
/* Rates as people write them. */
#ifndef KCR_PROC_BANDWIDTH_H
#define KCR_PROC_BANDWIDTH_H

#include <stdint.h>

#define BANDWIDTH_LEAST	1000		/* bytes per second */

/* The bytes per second in "800K", "100M", "1.5G" (thousands) or "2500000"; 0: none of these, or below 1K. */
uint64_t bandwidth_parse(const char *text);

#endif /* KCR_PROC_BANDWIDTH_H */
