/* SPDX-License-Identifier: GPL-2.0 */
/* Leads from the functions of a saved vdso to those of the live one. */
#ifndef KCR_RESTART_VDSO_PATCH_H
#define KCR_RESTART_VDSO_PATCH_H

#include <stdint.h>

#include "restart/vdso.h"

/*
 * Patches `text`, a copy of the saved one, for the live one's at address `live`, and has the script
 * map what it needs elsewhere: not where there is memory of the program or one of `kept`.  0 or
 * -errno, reported.
 */
int vdso_patch(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept, uint8_t *text,
	       uint64_t live, struct script *s);

#endif /* KCR_RESTART_VDSO_PATCH_H */
