/* SPDX-License-Identifier: GPL-2.0 */
/*
 * NUMA memory policies: of threads (an attribute, as set_mempolicy(2)) and of mappings
 * (mbind(2)).  Nodes that cannot be had here are left out, with a warning: a program runs on
 * without them.  A rank of an MPI job that was bound anew is not kept to its old nodes.
 */
#ifndef KCR_RESOURCE_MEMPOLICY_H
#define KCR_RESOURCE_MEMPOLICY_H

#include "resource/resource.h"

/* Those of the mappings, once they are there and before they are filled, for the script. */
void mempolicy_script(const struct rebuild *r, const Kcr__Process *p, const Kcr__Mm *mm,
		      struct script *s);
/* At most so many bytes of the script. */
uint64_t mempolicy_script_size(const Kcr__Mm *mm);

/*
 * What the calling thread, of cr_restart, allocates from now on is for the process with this
 * saved PID: where a mapping has no policy, that of its first thread holds.  0: for cr_restart.
 * Threads that it creates begin with the same.
 */
void mempolicy_adopt(const struct rebuild *r, pid_t pid);

#endif /* KCR_RESOURCE_MEMPOLICY_H */
