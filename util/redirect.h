/* SPDX-License-Identifier: GPL-2.0 */
/* --redirect [PID:]FD=FILE of cr_restart. */
#ifndef KCR_UTIL_REDIRECT_H
#define KCR_UTIL_REDIRECT_H

#include <stddef.h>

#include "resource/resource.h"

#define REDIRECT_MAX	16

/*
 * Adds a rule from its text, which must stay.  -EINVAL (with a message): not of that
 * form, or more than REDIRECT_MAX rules.
 */
int redirect_add(const char *rule);

/* All rules, *count of them. */
struct redirect *redirect_rules(size_t *count);

#endif /* KCR_UTIL_REDIRECT_H */
