/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the context file goes.  The kinds: a file that appears under its name only
 * when it is complete (file_destination.c), and a stream, which is an open file
 * descriptor or something that is not a regular file, such as /dev/null or a FIFO
 * (stream_destination.c).
 *
 * Functions return 0 or -errno with a message.
 */
#ifndef KCR_CHECKPOINT_DESTINATION_H
#define KCR_CHECKPOINT_DESTINATION_H

#include "checkpoint/checkpoint.h"

struct stat;

struct destination {
	const struct destination_ops *ops;
	int fd;			/* the image is written to it sequentially */
	off_t start;		/* offset where writing began; -1: not seekable */
	bool sync;		/* must survive a crash of the machine */
};

struct destination_ops {
	/* Discards everything written so far; -ESPIPE (silently): impossible. */
	int (*rewind)(struct destination *d);
	/* After the last write: flushes to disk, if wanted. */
	int (*sync)(struct destination *d);
	/* Makes the file appear under its name. */
	int (*commit)(struct destination *d);
	/* See destination_set_aside(); NULL: impossible. */
	int (*set_aside)(struct destination *d, const char *name, const struct stat *st);
	/* Removes what was not committed, closes and frees the destination. */
	void (*close)(struct destination *d);
	/* The absolute path that it will have, for callbacks; "": none. */
	void (*path)(const struct destination *d, char *path, size_t size);
	/* The directory, for messages; NULL: none. */
	const char *(*folder)(const struct destination *d);
	/* The open directory, the destination's own; NULL: it is in none. */
	int (*folder_fd)(const struct destination *d);
};

/* Checks what can be checked before anything is stopped, and opens it. */
int destination_open(struct destination **out, const struct checkpoint_options *options);

static inline int destination_rewind(struct destination *d)
{
	return d->ops->rewind(d);
}

static inline int destination_sync(struct destination *d)
{
	return d->ops->sync(d);
}

static inline int destination_commit(struct destination *d)
{
	return d->ops->commit(d);
}

/*
 * At the commit the file that has the destination's name now, *st, gets another `name`
 * in the same folder, and it has one of them at any moment.  -EBUSY: it has been replaced.
 */
int destination_set_aside(struct destination *d, const char *name, const struct stat *st);

/* NULL is allowed. */
static inline void destination_close(struct destination *d)
{
	if (d)
		d->ops->close(d);
}

static inline void destination_path(const struct destination *d, char *path, size_t size)
{
	d->ops->path(d, path, size);
}

/* Gives an open file another name, in the destination's folder.  0 or -errno with a message. */
int destination_link(const struct destination *d, int fd, const char *name);
/* Takes back what destination_link() has done. */
void destination_unlink(const struct destination *d, const char *name);

/* Explains a write that failed with `err`, where errno alone says too little; returns err. */
int destination_explain(const struct destination *d, int err);

/* ---- for the kinds --------------------------------------------------------------- */

struct place;

/* options->path, resolved to `p`: a new file, which replaces one if `exists`. */
int file_destination_open(struct destination **out, struct place *p,
			  const struct checkpoint_options *options, bool exists);
/* Takes over an open file descriptor; append: writes ignore its offset, so no rewind. */
int stream_destination_open(struct destination **out, int fd, bool append, bool sync);

int destination_rewind_fd(struct destination *d);
int destination_sync_fd(struct destination *d);
/* The path of an open file; "": unknown; "PATH/." for a directory. */
void destination_fd_path(int fd, char *path, size_t size);

#endif /* KCR_CHECKPOINT_DESTINATION_H */
