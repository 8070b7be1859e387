/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may have written an image: a privileged cr_restart could do anything that
 * an image asks for, so that is checked first.
 */
#ifndef KCR_RESTART_TRUST_H
#define KCR_RESTART_TRUST_H

#include <stdbool.h>

#include "image/chain.h"
#include "image/context.h"
#include "resource/identity.h"

/*
 * Before anything is read, which could block for ever: a privileged caller takes no
 * image from a pipe or socket without `trust`.  -EPERM, reported.
 */
int trust_source(int fd, bool trust);
/*
 * Chooses the rule for the image that was read from `fd`; `trust`: --trust was given.
 * -EPERM, reported: it claims rights that its owner does not have.
 */
int trust_decide(int fd, const struct context *c, bool trust, enum identity_rule *rule);

/*
 * May the pages of an image come from these older files?  A privileged caller takes them
 * only from files of the owner of the image, open at `fd`.  -EPERM, reported.
 */
int trust_chain(int fd, const struct chain *chain, bool trust);

#endif /* KCR_RESTART_TRUST_H */
