/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Saving one rank with cr_checkpoint(1), as a child of the daemon.  Its outcome
 * is read from the JSON it prints, since the daemon itself collects its
 * children.
 */
#ifndef JOB_DUMP_H
#define JOB_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dump {
	pid_t pid;		/* of cr_checkpoint */
	int fd;			/* its output; readable until its end.  -1: not running */
	char *path;		/* the rank's context file */
	char *text;		/* what it printed */
	size_t length;
};

/*
 * Saves process `top` with all its descendants to `path`.  `arguments`: further
 * ones for cr_checkpoint, NULL-terminated.  0 or -errno.
 */
int dump_start(struct dump *d, pid_t top, const char *path, char *const *arguments);

/* Reads its output: 0 there will be more, 1 it has ended. */
int dump_read(struct dump *d);

/*
 * After its end: 0, or -errno with *message (malloc()ed).  Frees everything;
 * the caller determines the file's size and checksum.
 */
int dump_finish(struct dump *d, char **message);

/* Cancels it; it still ends as above. */
void dump_cancel(struct dump *d);

#endif /* JOB_DUMP_H */
