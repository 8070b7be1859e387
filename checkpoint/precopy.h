/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pre-copy: images are made while the processes run, with snapshots, each an increment to
 * the one before; when that brings no more, they are stopped for the last one, which has
 * little left to hold.  Each image is a checkpoint of its own (checkpoint_run()), so
 * nothing is kept from round to round but what the images and the kernel's tracking know.
 */
#ifndef KCR_CHECKPOINT_PRECOPY_H
#define KCR_CHECKPOINT_PRECOPY_H

#include <stdbool.h>

#include "checkpoint/checkpoint.h"

#define PRECOPY_ROUNDS		5u	/* if the user does not say */
#define PRECOPY_MAX_ROUNDS	64u

/* Where the images go. */
struct precopy_store {
	/*
	 * Sets the destination of image `number` (from 0), from the second on also the parent;
	 * `last`: the processes will be stopped.  0 or -errno with a message.
	 */
	int (*place)(struct precopy_store *s, unsigned int number, bool last,
		     struct checkpoint_options *o);
	/* The image is complete, and not the last.  0 or -errno with a message; may be NULL. */
	int (*placed)(struct precopy_store *s, unsigned int number);
};

/*
 * Makes at most options->precopy images, and the last one as the options say.  0 or -errno
 * with a message; what becomes of the images before is the store's affair.
 */
int precopy_run(const struct checkpoint_options *options, struct precopy_store *store,
		struct checkpoint_result *result);

/*
 * The images become a chain in the folder of options->path: those of the rounds have names
 * of PATH.1, PATH.2 … that are free, and the last one is PATH, which stays what it was until
 * then.  On an error nothing is left of them.
 */
int precopy_to_file(const struct checkpoint_options *options, struct checkpoint_result *result);

/* As checkpoint_abandon(), which it calls. */
void precopy_abandon(void);

#endif /* KCR_CHECKPOINT_PRECOPY_H */
