/* SPDX-License-Identifier: GPL-2.0 */
/*
 * JSON lines of the tools.  Members have a comma before them: what begins an object prints
 * its first one.  The unit of a number is the end of its name: see cr_checkpoint(1), FIGURES.
 */
#ifndef KCR_UTIL_JSON_H
#define KCR_UTIL_JSON_H

#include <stdint.h>
#include <stdio.h>

/* {"event":"…" */
void json_event(FILE *out, const char *event);
/* The object's end, and the line's. */
void json_end(FILE *out);

/* Text as a JSON string, quotes included; the same as a member. */
void json_string(FILE *out, const char *text);
void json_text(FILE *out, const char *name, const char *text);
void json_number(FILE *out, const char *name, uint64_t number);
/* Nanoseconds, as "name_ms". */
void json_time(FILE *out, const char *name, uint64_t ns);
/* So many bytes in this time, as "name_mb_s"; 0: in no time. */
void json_rate(FILE *out, const char *name, uint64_t bytes, uint64_t ns);

#endif /* KCR_UTIL_JSON_H */
