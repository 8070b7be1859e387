/* SPDX-License-Identifier: GPL-2.0 */
/* cr_batch --status: the jobs of a folder. */
#ifndef KCR_BATCH_SHOW_H
#define KCR_BATCH_SHOW_H

#include <stdbool.h>

/*
 * Prints the jobs whose state is in a folder, which may be another user's: as text, or as a
 * JSON array.  0, or -errno with a message.
 */
int show_folder(const char *path, bool json);

#endif /* KCR_BATCH_SHOW_H */
