/* SPDX-License-Identifier: GPL-2.0 */
/* Folders of files, such as snapshots: paths, removing, syncing. */
#ifndef JOB_FOLDER_H
#define JOB_FOLDER_H

#include <stdbool.h>

/* A formatted path, malloc()ed; NULL: no memory. */
char *folder_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `path` as seen from "/", without slashes at its end; malloc()ed or NULL. */
char *folder_absolute(const char *path);

/* A folder, not a link to one, of the user that this process runs as? */
bool folder_is_own(const char *path);

/* Removes it with the files and links in it, but no folders; only if folder_is_own(). */
void folder_remove(const char *path);

/* fsync(2); 0 where the file system has none.  0 or -errno. */
int folder_sync(const char *path);

/* Likewise for the folder that `path` is in. */
int folder_sync_parent(const char *path);

/*
 * To be called before using a `path` that another node may have renamed: NFS caches names
 * for up to a minute, so that it may still be the folder that had this name before.
 * Opening the parent folder gets its attributes from the server; if it has changed,
 * the names in it are looked up again.
 */
void folder_look_again(const char *path);

#endif /* JOB_FOLDER_H */
