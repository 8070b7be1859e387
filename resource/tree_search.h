/* SPDX-License-Identifier: GPL-2.0 */
/* A file whose inode number is known, searched for by name in a tree of folders. */
#ifndef KCR_RESOURCE_TREE_SEARCH_H
#define KCR_RESOURCE_TREE_SEARCH_H

#include <stdbool.h>

/*
 * Looks at the folder `top`, an absolute path, and all that is below it on the same mount,
 * level by level, for what has this inode number and is_it() accepts, for no longer than
 * about `ms` milliseconds and 200,000 folders.  Its path, malloc()ed; NULL: none, or no time,
 * memory or permission.  No time of access is changed where the caller may prevent it, and no
 * link is followed.
 */
char *tree_search(const char *top, unsigned long long ino, unsigned int ms,
		  bool (*is_it)(const char *path, const void *arg), const void *arg);

#endif /* KCR_RESOURCE_TREE_SEARCH_H */
