/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of the processes that have entered; see memory.c. */
#ifndef KCR_RESTART_MEMORY_H
#define KCR_RESTART_MEMORY_H

#include "resource/resource.h"
#include "restart/restart.h"

struct user_faults;			/* user_faults.h */

/*
 * Moves every MEMORY section that follows, and of an increment's chain what is needed,
 * into its process, and verifies checksums and trailer.  0 or -errno with a message.
 */
int memory_fill(struct rebuild *r, const struct user_faults *faults,
		struct context_reader *reader, const struct restart_options *options,
		struct restart_result *result);

#endif /* KCR_RESTART_MEMORY_H */
