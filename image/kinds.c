// SPDX-License-Identifier: GPL-2.0
/* See kinds.h. */
#include "image/kinds.h"

const char *kind_name(uint32_t type)
{
	static const char *const names[] = {
		[CONTEXT_PREAMBLE] = "preamble", [CONTEXT_FILE] = "file", [CONTEXT_PROCESS] = "process",
		[CONTEXT_CONTENT] = "content", [CONTEXT_MEMORY] = "memory", [CONTEXT_TABLE] = "table",
		[CONTEXT_SHARED] = "shared", [CONTEXT_ELSEWHERE] = "elsewhere",
		[CONTEXT_DUPLICATES] = "duplicates", [CONTEXT_TRAILER] = "trailer",
	};

	return names[type];
}

unsigned int kind_rank(uint32_t type, uint64_t features)
{
	static const unsigned int ranks[] = {
		[CONTEXT_PREAMBLE] = 1, [CONTEXT_FILE] = 2, [CONTEXT_PROCESS] = 3,
		[CONTEXT_CONTENT] = 4, [CONTEXT_MEMORY] = 4, [CONTEXT_TABLE] = 4,
		[CONTEXT_SHARED] = 4, [CONTEXT_ELSEWHERE] = 4, [CONTEXT_DUPLICATES] = 5,
		[CONTEXT_TRAILER] = 6,
	};

	if ((type == CONTEXT_TABLE && !(features & CONTEXT_HAS_TABLES)) ||
	    (type == CONTEXT_SHARED && !(features & CONTEXT_HAS_SHARED)) ||
	    (type == CONTEXT_ELSEWHERE && !(features & CONTEXT_HAS_ELSEWHERE)) ||
	    (type == CONTEXT_DUPLICATES && !(features & CONTEXT_HAS_DUPLICATES)))
		return 0;
	return type < sizeof(ranks) / sizeof(*ranks) ? ranks[type] : 0;
}

bool kind_fits(const struct section_head *h)
{
	const size_t runs_max = sizeof(struct memory_meta) + CONTEXT_CHUNK_RUNS * sizeof(struct kcr_run);
	const size_t pages_max = CONTEXT_CHUNK_PAGES *
				 (h->type == CONTEXT_TABLE ? TABLE_PAGE_BYTES : sizeof(struct context_original));

	switch (h->type) {
	case CONTEXT_CONTENT:
		return h->meta_length == sizeof(struct content_meta) && h->data_length &&
		       h->data_length <= CONTEXT_CONTENT_MAX;
	case CONTEXT_MEMORY:
		return h->meta_length > sizeof(struct memory_meta) && h->meta_length <= runs_max &&
		       h->data_length && h->data_length <= CONTEXT_CHUNK_PAGES * CONTEXT_PAGE;
	case CONTEXT_SHARED:
	case CONTEXT_ELSEWHERE:
		return h->meta_length > sizeof(struct memory_meta) && h->meta_length <= runs_max &&
		       !h->data_length;
	case CONTEXT_TABLE:
	case CONTEXT_DUPLICATES:
		return h->meta_length > sizeof(struct memory_meta) &&
		       h->meta_length <= runs_max + pages_max && !h->data_length;
	default:
		return !h->data_length && h->meta_length <= CONTEXT_MESSAGE_MAX;
	}
}
