/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose word an image is.  A privileged cr_restart could do anything that an image
 * asks for, so it asks first who may have written it.
 */
#ifndef KCR_RESTART_TRUST_H
#define KCR_RESTART_TRUST_H

#include <stdbool.h>

#include "image/context.h"
#include "resource/identity.h"

/*
 * Before anything is read, which could take for ever: a privileged caller takes no
 * image from a pipe or socket without `trust`.  -EPERM, reported.
 */
int trust_source(int fd, bool trust);
/*
 * What holds for the image that was read from `fd`; `trust`: --trust was given.
 * -EPERM, reported: it claims what its owner could not give.
 */
int trust_decide(int fd, const struct context *c, bool trust, enum identity_rule *rule);

#endif /* KCR_RESTART_TRUST_H */
