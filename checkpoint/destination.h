/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the context file goes: an open descriptor, something that is not a
 * regular file (/dev/null, a FIFO), or a file that appears under its name only
 * when it is complete.
 */
#ifndef KCR_CHECKPOINT_DESTINATION_H
#define KCR_CHECKPOINT_DESTINATION_H

#include "checkpoint/checkpoint.h"

struct destination {
	int fd;
	int dir_fd;		/* -1: nothing to rename */
	char *directory;
	char *name;		/* in the directory */
	char *temporary;	/* in the directory */
	enum checkpoint_replace replace;
	const char *backup;
	bool sync;
	off_t start;		/* where writing began; -1: not seekable */
};

/* Checks what can be checked before anything is stopped, and opens it. */
int destination_open(struct destination *d, const struct checkpoint_options *options);
/* Everything written so far is to be written again.  -ESPIPE: not possible. */
int destination_rewind(struct destination *d);
/* All is written: makes it last. */
int destination_sync(struct destination *d);
/* Makes it appear under its name. */
int destination_commit(struct destination *d);
/* Takes away what was not committed; frees everything. */
void destination_close(struct destination *d);
/* Says why a write failed with `err`, if there is more to say than its name. */
int destination_explain(const struct destination *d, int err);

#endif /* KCR_CHECKPOINT_DESTINATION_H */
