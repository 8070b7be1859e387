/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that several processes of the image have in common (cr_checkpoint --dedup): they are
 * read before any process is made, so that all inherit them by fork(2), and share them with
 * each other as long as none writes to them.  Each moves them to where its own mappings were,
 * and drops those that it did not have.
 */
#ifndef KCR_RESTART_INHERITED_H
#define KCR_RESTART_INHERITED_H

#include "restart/hole.h"
#include "restart/restart.h"

struct inherited;
struct rebuild;
struct script;

/*
 * Reads the MEMORY sections of shared pages, which follow in the file if there are any.
 * *out: NULL, if there are none.  result and options as for memory_fill().  0 or -errno,
 * reported.
 */
int inherited_read(struct inherited **out, const struct context *context,
		   struct context_reader *reader, const struct restart_options *options,
		   struct restart_result *result);
/* In the caller; processes that were forked keep their own.  NULL is allowed. */
void inherited_drop(struct inherited *in);

/* Adds the memory of these that this process takes over, at which nothing may be unmapped. */
int inherited_ranges(const struct inherited *in, const Kcr__Process *p, struct ranges *ranges);
/* Bytes of operations that inherited_script() will need for all mappings of this process. */
uint64_t inherited_script_size(const struct inherited *in, const Kcr__Process *p);
/*
 * For each mapping of a process, in order: takes it over, if there are pages for it or for
 * one that it was a part of: true; or false, and the mapping is still to be made.  Protection
 * and advice are those of a new mapping.
 */
bool inherited_script(const struct inherited *in, const Kcr__Process *p, const Kcr__Vma *vma,
		      int protection, struct script *s);

#endif /* KCR_RESTART_INHERITED_H */
