/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a job for Prometheus (--prometheus): a file in its text format, as the
 * textfile collector of node_exporter reads it.
 */
#ifndef KCR_BATCH_METRICS_H
#define KCR_BATCH_METRICS_H

#include "batch/folder.h"
#include "batch/state.h"

#define METRICS_SUFFIX	".prom"		/* other files are not read by the collector */

/*
 * Replaces the file `path`, readable for all, or leaves it as it is.  0 or -errno, no
 * message.
 */
int metrics_write(const char *path, const struct folder *f, const struct state *s);

#endif /* KCR_BATCH_METRICS_H */
