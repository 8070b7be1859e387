/* SPDX-License-Identifier: GPL-2.0 */
/* Values of options that several tools have. */
#ifndef KCR_UTIL_CHOICES_H
#define KCR_UTIL_CHOICES_H

#include "checkpoint/checkpoint.h"

/* A number not less than `least`, or -1. */
long choice_number(const char *text, long least);
/* --changes and the rounds of pre-copy: 0 or -EINVAL with a message. */
int choice_changes(const char *value, struct checkpoint_options *o);
int choice_rounds(const char *option, const char *value, struct checkpoint_options *o);

/* --bandwidth: likewise. */
int choice_bandwidth(const char *value, uint64_t *rate);

/* --compress: likewise; and back, the option as a whole: to be freed, NULL: no memory. */
int choice_compression(const char *value, struct compression *how);
char *choice_compression_option(const struct compression *how);

#endif /* KCR_UTIL_CHOICES_H */
