/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors of btl/cr, struct cr_frag: what is to be sent, from the caller's memory or from room of
 * their own.  They are in free lists of Open MPI, by their room, which any thread may use.
 */
#ifndef MCA_BTL_CR_FRAG_H
#define MCA_BTL_CR_FRAG_H

#include "btl_cr.h"

#define CR_EAGER_NEAR	4096
#define CR_MAX_NEAR	(32 * 1024)
#define CR_EAGER_FAR	(64 * 1024)
#define CR_MAX_FAR	(128 * 1024)

int cr_frag_init(void);
/* With room for size bytes, at most CR_MAX_FAR; NULL: no memory. */
struct cr_frag *cr_frag_get(size_t size);
struct cr_frag *cr_frag_bare(void);		/* without room */
/* With a copy of what iov has after `skip` bytes.  It returns by itself, and nobody hears of its end. */
struct cr_frag *cr_frag_copy(const struct iovec iov[3], size_t total, size_t skip);

static inline void cr_frag_return(struct cr_frag *frag)
{
	opal_free_list_return(frag->list, (opal_free_list_item_t *)frag);
}

/* As Open MPI sees it, with so many bytes in its own room. */
mca_btl_base_descriptor_t *cr_frag_describe(struct cr_frag *frag, size_t length, uint32_t flags);

/* Sets the head of frag: extra bytes of it follow the frame header. */
void cr_frag_head(struct cr_frag *frag, uint8_t type, uint8_t tag, size_t extra);
void cr_frag_add(struct cr_frag *frag, void *data, size_t length);

#endif
