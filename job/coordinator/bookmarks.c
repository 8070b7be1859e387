// SPDX-License-Identifier: GPL-2.0
/*
 * The bookmarks of a checkpoint: each rank says how much it has sent to each other, and
 * is told how much the others have sent to it, which it then waits for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/root_internal.h"

int bookmarks_take(struct root_rank *r, const struct wire_header *h, const uint8_t *data)
{
	r->nr_bookmarks = h->length / sizeof(*r->bookmark);
	r->bookmark = calloc(r->nr_bookmarks + 1, sizeof(*r->bookmark));
	if (!r->bookmark) {
		r->nr_bookmarks = 0;
		return -ENOMEM;
	}
	memcpy(r->bookmark, data, r->nr_bookmarks * sizeof(*r->bookmark));
	return 0;
}

static bool counts(const struct root *root, const struct wire_bookmark *b)
{
	return b->sent && b->rank < root->nr_ranks;
}

/*
 * Transposes the ranks' lists of what they have sent: first[i] to
 * first[i + 1] - 1 of *list is what others have sent to rank i.
 */
static int turn_bookmarks(struct root *root, size_t *first, struct wire_bookmark **list)
{
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		for (size_t k = 0; k < root->rank[i].nr_bookmarks; k++)
			if (counts(root, &root->rank[i].bookmark[k]))
				first[root->rank[i].bookmark[k].rank + 2]++;
	for (uint32_t i = 2; i <= root->nr_ranks; i++)
		first[i] += first[i - 1];
	*list = calloc(first[root->nr_ranks] + first[root->nr_ranks + 1] + 1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	/* first[i + 1] is the index of the next entry for rank i. */
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		for (size_t k = 0; k < root->rank[i].nr_bookmarks; k++) {
			const struct wire_bookmark *b = &root->rank[i].bookmark[k];

			if (counts(root, b))
				(*list)[first[b->rank + 1]++] =
					(struct wire_bookmark){ .rank = i, .sent = b->sent };
		}
	return 0;
}

int bookmarks_send(struct root *root)
{
	size_t *first = calloc(root->nr_ranks + 2, sizeof(*first));
	struct wire_bookmark *list = NULL;
	int err = first ? turn_bookmarks(root, first, &list) : -ENOMEM;

	for (uint32_t i = 0; !err && i < root->nr_ranks; i++)
		wire_queue(&root->rank[i].node->wire, WIRE_DRAIN, i, root->id, list + first[i],
			   (first[i + 1] - first[i]) * sizeof(*list));
	free(list);
	free(first);
	return err;
}

void bookmarks_drop(struct root *root)
{
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		free(root->rank[i].bookmark);
		root->rank[i].bookmark = NULL;
		root->rank[i].nr_bookmarks = 0;
	}
}
