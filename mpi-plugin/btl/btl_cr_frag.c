// SPDX-License-Identifier: GPL-2.0
/* See btl_cr_frag.h. */
#include "btl_cr_frag.h"

#include <string.h>

static opal_free_list_t list_small, list_middle, list_large, list_bare;

typedef struct cr_frag cr_frag_small, cr_frag_middle, cr_frag_large, cr_frag_without;

#define FRAG_CLASS(name, its_list, size)				\
	static void construct_##name(struct cr_frag *frag)		\
	{								\
		frag->room = size;					\
		frag->list = &its_list;					\
		frag->kept = false;					\
		frag->copy = NULL;					\
	}								\
	static OBJ_CLASS_INSTANCE(cr_frag_##name, mca_btl_base_descriptor_t, \
				  (opal_construct_t)construct_##name, NULL)

FRAG_CLASS(small, list_small, CR_EAGER_NEAR);
FRAG_CLASS(middle, list_middle, CR_EAGER_FAR);
FRAG_CLASS(large, list_large, CR_MAX_FAR);
FRAG_CLASS(without, list_bare, 0);

static int make_list(opal_free_list_t *list, opal_class_t *class, size_t room, int count)
{
	OBJ_CONSTRUCT(list, opal_free_list_t);
	return opal_free_list_init(list, sizeof(struct cr_frag) + room, opal_cache_line_size,
				   class, 0, opal_cache_line_size, 0, -1, count,
				   NULL, 0, NULL, NULL, NULL);
}

int cr_frag_init(void)
{
	return make_list(&list_small, OBJ_CLASS(cr_frag_small), CR_EAGER_NEAR, 32) ||
	       make_list(&list_middle, OBJ_CLASS(cr_frag_middle), CR_EAGER_FAR, 8) ||
	       make_list(&list_large, OBJ_CLASS(cr_frag_large), CR_MAX_FAR, 8) ||
	       make_list(&list_bare, OBJ_CLASS(cr_frag_without), 0, 32) ? -ENOMEM : 0;
}

struct cr_frag *cr_frag_get(size_t size)
{
	if (size <= CR_EAGER_NEAR)
		return (struct cr_frag *)opal_free_list_get(&list_small);
	return (struct cr_frag *)opal_free_list_get(size <= CR_EAGER_FAR ? &list_middle : &list_large);
}

struct cr_frag *cr_frag_bare(void)
{
	return (struct cr_frag *)opal_free_list_get(&list_bare);
}

mca_btl_base_descriptor_t *cr_frag_describe(struct cr_frag *frag, size_t length, uint32_t flags)
{
	frag->segments[0].seg_addr.pval = frag + 1;
	frag->segments[0].seg_len = length;
	frag->base.des_segments = frag->segments;
	frag->base.des_segment_count = 1;
	frag->base.des_flags = flags;
	frag->base.order = MCA_BTL_NO_ORDER;
	return &frag->base;
}

struct cr_frag *cr_frag_copy(const struct iovec iov[3], size_t total, size_t skip)
{
	size_t size = total - skip;
	struct cr_frag *frag = cr_frag_get(size);
	unsigned char *at;

	if (!frag)
		return NULL;
	at = (unsigned char *)(frag + 1);
	for (int i = 0; i < 3; i++) {
		size_t part = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		if (iov[i].iov_len > part)
			memcpy(at, (char *)iov[i].iov_base + part, iov[i].iov_len - part);
		at += iov[i].iov_len - part;
		skip -= part;
	}
	cr_frag_describe(frag, size, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
	frag->base.des_cbfunc = NULL;
	return frag;
}

void cr_frag_head(struct cr_frag *frag, uint8_t type, uint8_t tag, size_t extra)
{
	frag->head.frame = (struct cr_frame){ .type = type, .tag = tag, .length = extra };
	frag->iov[0].iov_base = &frag->head;
	frag->iov[0].iov_len = sizeof(frag->head.frame) + extra;
	frag->iov_count = 1;
	frag->iov_next = 0;
	frag->begun = false;
	frag->sealed = 0;
}

void cr_frag_add(struct cr_frag *frag, void *data, size_t length)
{
	frag->iov[frag->iov_count].iov_base = data;
	frag->iov[frag->iov_count].iov_len = length;
	frag->iov_count++;
	frag->head.frame.length += length;
}
