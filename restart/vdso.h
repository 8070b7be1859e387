/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's code in user space ([vdso] and its data, [vvar]).  Programs keep
 * pointers into it, so it must stay at its address; and it must be the running
 * kernel's, since the kernel updates its data.
 */
#ifndef KCR_RESTART_VDSO_H
#define KCR_RESTART_VDSO_H

#include "image/context.h"
#include "restart/hole.h"

struct script;

struct vdso {
	struct ranges live;		/* this process's */
	struct ranges saved;		/* the image's */
	uint64_t live_start, live_end;
	uint64_t saved_start, saved_end;
	bool foreign;			/* from another kernel, or with another layout */
	uint64_t hole;			/* free addresses to move the live one to */
};

/*
 * Decides what to do for a process with memory of its own; `self` are the
 * caller's mappings.  -EOPNOTSUPP, reported: a thread in that memory was stopped inside the
 * vdso of another kernel, or this kernel has none.
 */
int vdso_plan(struct vdso *v, const struct ranges *self, const struct context *c,
	      const Kcr__Process *p);

/* Could it be planned?  Makes nothing.  -errno, reported. */
int vdso_check(const struct context *c, const Kcr__Process *p);

/* Bytes that vdso->hole needs, which the caller sets; 0: none. */
uint64_t vdso_length(const struct vdso *v);

/* Runs after everything but `kept`, the blob and the live vdso among it, was unmapped. */
int vdso_script(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept, struct script *s);

/* Its code, or NULL. */
const struct range *vdso_text(const struct ranges *r);

#endif /* KCR_RESTART_VDSO_H */
