// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks whose memory is still being loaded (cr_restart --lazy): a checkpoint waits for that, and
 * better before the ranks stop than afterwards.
 */
#include "job/coordinator/node_internal.h"

#include "proc/status.h"
#include "restart/loading.h"

#define LOOK_MS		50

/* The parent of what was restored for the rank loads it. */
static bool is_loading(const struct member *m)
{
	return loading_is(stat_parent(m->top));
}

void loading_await(struct node *node, const struct wire_header *h)
{
	node->loading_id = h->id;
	for (size_t i = 0; i < node->nr_members; i++)
		node->member[i]->loads = node->member[i]->rank != WIRE_ALL;
	loading_look(node);
}

void loading_look(struct node *node)
{
	bool answered = false;

	for (size_t i = 0; i < node->nr_members; i++) {
		struct member *m = node->member[i];

		if (!m->loads || is_loading(m))
			continue;
		m->loads = false;
		wire_queue(&node->root, WIRE_LOADED, m->rank, node->loading_id, NULL, 0);
		answered = true;
	}
	if (answered)
		wire_flush(&node->root);
}

void loading_forget(struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		node->member[i]->loads = false;
}

int loading_patience(const struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		if (node->member[i]->loads)
			return LOOK_MS;
	return -1;
}
