/* SPDX-License-Identifier: GPL-2.0 */
/* What the tools say of how the memory of an image was compressed. */
#ifndef KCR_UTIL_COMPRESSED_H
#define KCR_UTIL_COMPRESSED_H

#include <stdio.h>

#include "checkpoint/checkpoint.h"

/*
 * A member of a JSON object: ,"compression":{…} of the counts by kind; `target_rate`, bytes/s:
 * what the destination takes, 0: not measured.
 */
void compressed_json(FILE *out, const struct compression_count *count, double target_rate);
/* With --verbose, if it was to be compressed. */
void compressed_tell(const struct compression *how, const struct checkpoint_result *r);

#endif /* KCR_UTIL_COMPRESSED_H */
