/* SPDX-License-Identifier: GPL-2.0 */
/*
 * --redirect [PID:]FD=FILE of cr_restart: a regular file of the saved program is
 * replaced by one that the caller names.  All descriptors that share it follow.
 */
#ifndef KCR_RESOURCE_REDIRECT_H
#define KCR_RESOURCE_REDIRECT_H

#include <stdbool.h>

#include "resource/resource.h"

/*
 * Finds the file of each rule, before anything is created.  -EINVAL (with a message):
 * there is no such descriptor, or it is not a regular file with a name.
 */
int redirect_resolve(struct rebuild *r);

/* Is this file replaced?  After redirect_resolve(). */
bool redirect_has(const struct rebuild *r, uint32_t id);

/*
 * Opens the new files for what the old ones were open for, and creates those that are to
 * be written to: with the caller's own rights, except for an ordinary user's image.
 * -errno, reported.
 */
int redirect_open(struct rebuild *r);

#endif /* KCR_RESOURCE_REDIRECT_H */
