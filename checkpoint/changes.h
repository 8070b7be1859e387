/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which pages of an increment need not even be read: the module knows that nobody has
 * written to them since the parent was made.
 *
 * Tracking begins with an image, and bears its id.  It is used by an increment whose parent
 * has this very id; so an image that was not completed, another chain of the same
 * process, or a parent that is not the latest, make no difference but that all pages are
 * read and compared.  The bits are cleared while the processes are stopped, after the
 * last of them was looked at: no page can be written in between.
 */
#ifndef KCR_CHECKPOINT_CHANGES_H
#define KCR_CHECKPOINT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/origins.h"

struct checkpoint;
struct address_space;
struct region;

/* Of one address space. */
struct changes {
	bool trackable;			/* from now on */
	bool tracked;			/* since the parent */
	struct origins origins;		/* of the parent's pages; if `tracked` */
};

/* Is tracking wanted, and does the module know how? */
bool changes_wanted(const struct checkpoint *c);
/*
 * Finds out what is known of each address space of the stopped (and copied) processes.
 * 0 or -ENOMEM with a message.
 */
int changes_find(struct checkpoint *c);
/*
 * Once all that is read from the processes themselves was read, while they are stopped:
 * begins tracking for this image.  -EAGAIN with a message: somebody has disturbed it
 * meanwhile, and the attempt is worthless.
 */
int changes_track(struct checkpoint *c);
void changes_free(struct changes *changes);

/*
 * Is a page at `start` in the region the parent's if nobody has written to it?  *end: to
 * there the answer is the same.
 */
bool changes_known(const struct address_space *space, const struct region *region,
		   uint64_t start, uint64_t *end);

#endif /* KCR_CHECKPOINT_CHANGES_H */
