/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's code in user space ([vdso] and its data, [vvar]).  A program
 * keeps addresses in it, so it has to be where it was; and it must be the one
 * of the running kernel, since the kernel updates its data.
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
	bool foreign;			/* of another kernel, or laid out otherwise */
	uint64_t hole;			/* where the live one may be moved */
};

/*
 * Finds out what has to be done for a process with this memory map; `self`
 * are the caller's mappings.  -EOPNOTSUPP, reported: a thread was stopped
 * inside the vdso of another kernel.
 */
int vdso_plan(struct vdso *v, const struct ranges *self, const Kcr__Process *p, const Kcr__Mm *mm);

/* Bytes that a move may need apart: the caller finds vdso->hole. */
uint64_t vdso_length(const struct vdso *v);

/* After everything but the blob and the live vdso is unmapped. */
int vdso_script(const struct vdso *v, const Kcr__Mm *mm, struct script *s);

#endif /* KCR_RESTART_VDSO_H */
