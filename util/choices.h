/* SPDX-License-Identifier: GPL-2.0 */
/* Values of options that several tools have. */
#ifndef KCR_UTIL_CHOICES_H
#define KCR_UTIL_CHOICES_H

#include "checkpoint/checkpoint.h"

/* A number not less than `least`, or -1. */
long choice_number(const char *text, long least);
/* --compress, --changes and the rounds of pre-copy: 0 or -EINVAL with a message. */
int choice_compression(const char *value, struct checkpoint_options *o);
int choice_changes(const char *value, struct checkpoint_options *o);
int choice_rounds(const char *option, const char *value, struct checkpoint_options *o);

#endif /* KCR_UTIL_CHOICES_H */
