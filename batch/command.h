/* SPDX-License-Identifier: GPL-2.0 */
/* Other programs that cr_batch runs: the scheduler's commands and KCR's own tools. */
#ifndef KCR_BATCH_COMMAND_H
#define KCR_BATCH_COMMAND_H

#include <stddef.h>

/*
 * Runs a command (looked for in PATH) with the caller's original signal mask and no input.
 * What it writes, as a string, goes to `out` (size > 0; what does not fit is dropped).
 * Its exit code, or 128 + the signal that ended it; -ETIMEDOUT: it was killed as it took
 * longer than `limit_s`; other -errno: it could not be run (127: it was not found).
 */
int command_run(const char *const argv[], unsigned int limit_s, char *out, size_t size);

#endif /* KCR_BATCH_COMMAND_H */
