/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fields of the texts of /proc/PID/status and /proc/PID/stat (proc(5)), read by proc.h.
 */
#ifndef KCR_PROC_STATUS_H
#define KCR_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The text that follows "KEY:" and white space in a status text, up to the end of the
 * text (not of the line); NULL: no such line.
 */
const char *status_value(const char *status, const char *key);
/* The number there (base as in strtoull(3)), or `otherwise` without such a line. */
uint64_t status_number(const char *status, const char *key, int base, uint64_t otherwise);

/*
 * A field of a stat text, numbered as in proc(5) from 3 (the state) on; 0: the text
 * is malformed.
 */
int64_t stat_number(const char *stat, int field);

#define STAT_START_TIME	22	/* a field: in clock ticks since boot */

/* Is this process there, and no zombie? */
bool stat_lives(pid_t pid);

/* The PID of the parent of a process; 0: it is the first, has ended or is hidden. */
pid_t stat_parent(pid_t pid);

#endif /* KCR_PROC_STATUS_H */
