/* SPDX-License-Identifier: GPL-2.0 */
/* Protection keys of memory (pkeys(7)). */
#ifndef KCR_RESTART_KEYS_H
#define KCR_RESTART_KEYS_H

#include "image/context.h"
#include "rebuild/script.h"

/* Has this machine what the image needs?  0 or -errno, reported. */
int keys_check(const Kcr__Process *p, const Kcr__Mm *mm);
/* Before the first mapping is made: takes all keys but that of execute-only memory. */
void keys_script_first(const Kcr__Mm *mm, struct script *s);
/* After a mapping was made: its key. */
void keys_script_mapping(const Kcr__Mm *mm, const Kcr__Vma *vma, struct script *s);
/* After all: frees those that the program had not. */
void keys_script_last(const Kcr__Mm *mm, struct script *s);

#endif /* KCR_RESTART_KEYS_H */
