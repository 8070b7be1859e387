/* SPDX-License-Identifier: GPL-2.0 */
/* Lengths of time as people and schedulers write them. */
#ifndef KCR_PROC_DURATION_H
#define KCR_PROC_DURATION_H

#include <stddef.h>
#include <stdint.h>

/*
 * The seconds in "90", "90s", "15m", "12h", "2d", "MM:SS", "HH:MM:SS" or "D-HH:MM:SS";
 * -1: none of these, or more than a hundred years.
 */
int64_t duration_parse(const char *text);

/* Writes seconds for people, in two units at most ("3 d 4 h", "12 min 5 s"); returns `out`. */
char *duration_format(char *out, size_t size, int64_t seconds);

#endif /* KCR_PROC_DURATION_H */
