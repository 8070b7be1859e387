/* SPDX-License-Identifier: GPL-2.0 */
/* The context file that cr_restart was told to read. */
#ifndef KCR_UTIL_RESTART_FILE_H
#define KCR_UTIL_RESTART_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The file called `name`, or (NULL) what is open at `fd`: a descriptor, or -errno with a message.
 * Waits for nobody, and for root believes no file of others, unless `trust`.
 */
int restart_file_open(const char *name, int fd, bool trust);
/* The absolute path of an open file; "": it has none. */
void restart_file_path(int fd, char *path, size_t size);

#endif /* KCR_UTIL_RESTART_FILE_H */
