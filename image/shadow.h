/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shadow of an image that goes elsewhere: a file with the same bytes at the same
 * places, and holes for pages, and for contents but the first, which a reader verifies.  So it takes hardly any space, and it is
 * enough as the parent of an increment, which needs description, tables and trailer only.
 * Whoever wants the pages finds a damaged file: their checksums do not fit.
 */
#ifndef KCR_IMAGE_SHADOW_H
#define KCR_IMAGE_SHADOW_H

#include <stdbool.h>
#include <stddef.h>

struct context_shadow;

/* Into the empty regular file `fd`, which stays the caller's.  NULL: no memory. */
struct context_shadow *context_shadow_new(int fd);
/*
 * The next bytes of the image, in pieces of any length.  0 or -errno without a message;
 * -EINVAL: this is not an image, or something follows it.
 */
int context_shadow_add(struct context_shadow *s, const void *data, size_t length);
/* Has the image ended, with its trailer? */
bool context_shadow_is_complete(const struct context_shadow *s);
void context_shadow_free(struct context_shadow *s);

#endif /* KCR_IMAGE_SHADOW_H */
