/* SPDX-License-Identifier: GPL-2.0 */
/* One line per event: in NAME.log of the folder, and on standard error if it matters there. */
#ifndef KCR_BATCH_LOG_H
#define KCR_BATCH_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/folder.h"

enum log_weight {
	LOG_ROUTINE,		/* standard error gets it with `verbose` only */
	LOG_NOTICE,		/* and without `quiet` */
	LOG_FAILURE,		/* in any case */
};

/* Until this is called all lines go to standard error.  The folder must stay open. */
void log_open(const struct folder *f);
void log_set_level(bool quiet, bool verbose);

/*
 * Adds "TIME TEXT" to the log: a line, whatever the text contains.  A log that cannot be
 * written stops nothing.
 */
void log_event(enum log_weight weight, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What was said last of something that may come again and again. */
struct log_repeated {
	char text[512];
	uint64_t said_ns;
};

/*
 * Is a text to be said at now_ns (of CLOCK_MONOTONIC)?  Not if it is the last one, and that
 * was less than an hour ago; else it is remembered.
 */
bool log_is_news(struct log_repeated *last, const char *text, uint64_t now_ns);

#endif /* KCR_BATCH_LOG_H */
