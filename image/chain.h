/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The older files of an increment: a full image and increments, each the parent of the
 * next.  They are found by the ids that the last file gives, so they may have been
 * renamed, and moved together with it.
 */
#ifndef KCR_IMAGE_CHAIN_H
#define KCR_IMAGE_CHAIN_H

#include <sys/stat.h>

#include "image/page_map.h"
#include "image/pages.h"

struct chain_member {
	char *path;			/* for messages */
	int fd;				/* at the start of the file */
	struct stat st;
};

struct chain {
	char *name;			/* of the last file, for messages */
	size_t count;			/* of what follows: not the last file */
	struct chain_member member[CONTEXT_MAX_ANCESTORS];	/* the oldest first */
};

/*
 * Opens all ancestors that `last` names and checks that each is the file that is meant,
 * and complete.  They are looked for in the folder of the last file, which is open at
 * `fd` and called `name`, if it is in one, and in `other_folder` (or NULL).  -ENOENT,
 * -EINVAL (another file, or damaged) … with a message.  Follows no links.
 */
int chain_open(struct chain **out, const Kcr__Preamble *last, const char *name, int fd,
	       const char *other_folder);
void chain_free(struct chain *c);
/* Reads all older files and checks every checksum.  0 or -errno with a message. */
int chain_verify(const struct chain *c);

/*
 * Moves the pages of an image, whose context was loaded and whose contents were read from
 * `last`: of an increment first those of the last file, then those that its tables place
 * in others (`chain`; NULL: it is no increment).  `flow` has neither source nor sieve.
 * 0 means that no page was missing; else -errno with a message.
 */
int chain_move(const struct pages_flow *flow, struct context_reader *last,
	       const struct chain *chain);

#endif /* KCR_IMAGE_CHAIN_H */
