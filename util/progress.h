/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Progress of a tool: a bar on a terminal, JSON lines for programs, else
 * nothing.  With JSON, warnings are such lines as well.
 */
#ifndef KCR_UTIL_PROGRESS_H
#define KCR_UTIL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool bar;		/* on stderr */
	bool json;		/* on stdout */
	bool shown;
	uint64_t last_ns;
};

void progress_init(struct progress *p, bool quiet, bool json);
/* For the progress callbacks of checkpoint.h and restart.h; `progress` is the argument. */
void progress_update(void *progress, uint64_t bytes_done, uint64_t bytes_total);
/* Clears the bar. */
void progress_end(struct progress *p);

#endif /* KCR_UTIL_PROGRESS_H */
