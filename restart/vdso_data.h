/* SPDX-License-Identifier: GPL-2.0 */
/* What a thread finds in the place of the data of an old vdso, in whose code it goes on. */
#ifndef KCR_RESTART_VDSO_DATA_H
#define KCR_RESTART_VDSO_DATA_H

#include <stdbool.h>

#include "restart/vdso.h"

/* Has the script map it, for another kernel's vdso. */
void vdso_data_script(const struct vdso *v, const Kcr__Mm *mm, struct script *s);

/*
 * Where getrandom() in the vdso of this `text` (`length` bytes, for `address`), with data from `low` to
 * `high`, has the number by which it notices new keys.  0: it has no such function; UINT64_MAX: nobody knows.
 * *everywhere: in a time namespace it is at the same place of another page.
 */
uint64_t vdso_data_generation(const uint8_t *text, size_t length, uint64_t address, uint64_t low,
			      uint64_t high, bool *everywhere);

#endif /* KCR_RESTART_VDSO_DATA_H */
