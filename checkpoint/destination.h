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

struct destination {
	const struct destination_ops *ops;
	int fd;			/* the image is written there, from front to back */
	off_t start;		/* where writing began; -1: not seekable */
	bool sync;		/* has to survive a crash of the machine */
};

struct destination_ops {
	/* Everything written so far is to be written again; -ESPIPE (silently): impossible. */
	int (*rewind)(struct destination *d);
	/* All is written: makes it last. */
	int (*sync)(struct destination *d);
	/* Makes it appear under its name. */
	int (*commit)(struct destination *d);
	/* Removes what was not committed, closes and frees the destination. */
	void (*close)(struct destination *d);
	/* The absolute path that it will have, as programs are told; "": none. */
	void (*path)(const struct destination *d, char *path, size_t size);
	/* The folder, for messages. */
	const char *(*folder)(const struct destination *d);
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

/* NULL is none. */
static inline void destination_close(struct destination *d)
{
	if (d)
		d->ops->close(d);
}

static inline void destination_path(const struct destination *d, char *path, size_t size)
{
	d->ops->path(d, path, size);
}

/* Says why a write failed with `err`, if there is more to say than its name; returns err. */
int destination_explain(const struct destination *d, int err);

/* ---- for the kinds --------------------------------------------------------------- */

struct place;

/* A place that options->path names: a new file, which replaces one if `exists`. */
int file_destination_open(struct destination **out, struct place *p,
			  const struct checkpoint_options *options, bool exists);
/* An open descriptor, taken over; append: whatever its offset, data go to the end. */
int stream_destination_open(struct destination **out, int fd, bool append, bool sync);

int destination_rewind_fd(struct destination *d);
int destination_sync_fd(struct destination *d);
/* The path of an open file, "": unknown; "PATH/." of a folder. */
void destination_fd_path(int fd, char *path, size_t size);

#endif /* KCR_CHECKPOINT_DESTINATION_H */
