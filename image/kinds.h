/* SPDX-License-Identifier: GPL-2.0 */
/* The kinds of sections (enum context_section): names, order and lengths. */
#ifndef KCR_IMAGE_KINDS_H
#define KCR_IMAGE_KINDS_H

#include "section.h"

/* Of a kind that has a rank. */
const char *kind_name(uint32_t type);
/* Sections of one rank may alternate; 0: a file with these features (CONTEXT_HAS_*) has none of this kind. */
unsigned int kind_rank(uint32_t type, uint64_t features);
/* Can a section of such a kind have these lengths? */
bool kind_fits(const struct section_head *h);

#endif /* KCR_IMAGE_KINDS_H */
