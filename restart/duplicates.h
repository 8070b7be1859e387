/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that are stored as others to which they are equal (cr_checkpoint --dedup): once all
 * others are in place, they are copied from there, process to process.
 */
#ifndef KCR_RESTART_DUPLICATES_H
#define KCR_RESTART_DUPLICATES_H

#include "image/pages.h"
#include "resource/resource.h"

struct kcr_info;

/* Before anything is made: does the module do what this image needs?  0 or -errno with a message. */
int duplicates_check(const struct context_reader *reader, const struct kcr_info *info);
/*
 * Takes the DUPLICATES sections, which follow in the file, and its trailer; passes their pages to
 * the sink.  *count: how many.  0 or -errno with a message.
 */
int duplicates_fill(const struct rebuild *r, struct context_reader *reader, struct page_sink *sink,
		    uint64_t *count);

#endif /* KCR_RESTART_DUPLICATES_H */
