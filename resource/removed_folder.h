/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folders that had been removed at the checkpoint, while a program was in them or had them
 * or something in them open.
 */
#ifndef KCR_RESOURCE_REMOVED_FOLDER_H
#define KCR_RESOURCE_REMOVED_FOLDER_H

#include <stddef.h>

#include "resource/resource.h"

/*
 * Makes the folders of a path that are missing, all that a slash ends: the place of the
 * first one's slash, for removed_folder_forget(); 0: none was missing, or could be made.
 */
size_t removed_folder_make(const char *path);
/* Removes those that were made. */
void removed_folder_forget(const char *path, size_t first);

/*
 * A folder that is removed already, open for reading, close-on-exec: under its old path
 * (that --relocate may move) if that is free, else below /tmp.  With the caller's current
 * rights, so its owner is who has these.  A file descriptor, or -errno without a message.
 */
int removed_folder_open(const struct rebuild *r, const char *path);

#endif /* KCR_RESOURCE_REMOVED_FOLDER_H */
