/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The saved memory map as a script: mappings, advice, locks and the mm's own
 * fields.  Contents follow later (memory.h).
 */
#ifndef KCR_RESTART_ADDRESS_SPACE_H
#define KCR_RESTART_ADDRESS_SPACE_H

#include "resource/resource.h"

/*
 * Can this map be rebuilt?  Call before anything is created.  -EOPNOTSUPP, reported.
 */
int memory_check(const Kcr__Process *p, const Kcr__Mm *mm);

/* Creates the mappings, whose addresses must be free. */
int memory_script(struct rebuild *r, const Kcr__Process *p, const Kcr__Mm *mm, struct script *s);

/* Bytes of operations and data that memory_script() will need, at most. */
uint64_t memory_script_size(const struct rebuild *r, const Kcr__Process *p, const Kcr__Mm *mm);

#endif /* KCR_RESTART_ADDRESS_SPACE_H */
