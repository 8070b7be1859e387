/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path of what an inotify(7) or a fanotify(7) watches, which the kernel reports by device,
 * inode number and, for most file systems, file handle.
 */
#ifndef KCR_RESOURCE_WATCHED_H
#define KCR_RESOURCE_WATCHED_H

#include <sys/types.h>

#include "resource/resource.h"

struct watched {
	int wd;				/* of inotify … */
	unsigned int mask;		/* … likewise */
	unsigned long long ino;
	unsigned int dev;		/* the kernel's encoding: major << 20 | minor */
	struct file_handle *handle;	/* malloc()ed; NULL: there is none, or no memory */
};

/* From the line "inotify wd:…" of fdinfo; false: it is none.  The handle is the caller's. */
bool watched_parse(const char *line, struct watched *w);
/* Its file handle alone, which lines of fanotify(7) have likewise. */
void watched_parse_handle(const char *line, struct watched *w);

/*
 * A path, malloc()ed, that a watch can be put on again, as seen by the calling process; NULL:
 * none was found.  It comes from the handle, which takes CAP_DAC_READ_SEARCH; else from the open
 * files and the working folder of `thread`; else, in a dry run only, as it takes up to some
 * seconds, from a search of the file system.  What was found is known in later calls.
 */
char *watched_path(const struct file_table *t, const struct watched *w, pid_t thread);

#endif /* KCR_RESOURCE_WATCHED_H */
