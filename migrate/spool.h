/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A private folder for the images of a migration, at the target, and for their shadows at
 * the source.  Image N is "image.N"; each is the parent of the next.  A process has one.
 */
#ifndef KCR_MIGRATE_SPOOL_H
#define KCR_MIGRATE_SPOOL_H

#include <stddef.h>

#define SPOOL_SOCKET	"pages"		/* of join.h, in the folder */

/* Makes it in the folder `in` (NULL: TMPDIR, or /tmp).  0 or -errno with a message. */
int spool_make(const char *in);
/* Its path; "": there is none. */
const char *spool_path(void);
/* Its descriptor. */
int spool_fd(void);
/* A descriptor of the new file for an image (mode 0400), or -errno with a message. */
int spool_create(unsigned int number);
/* The path of an image, valid until the next call. */
const char *spool_image(unsigned int number);
/* Removes all that was made, unless it is to be kept.  Async-signal-safe. */
void spool_remove(void);
/* From now on, and no longer, spool_remove() does nothing. */
void spool_keep(int keep);

#endif /* KCR_MIGRATE_SPOOL_H */
