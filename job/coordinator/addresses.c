// SPDX-License-Identifier: GPL-2.0
/*
 * After a restart: once all ranks have connected, each gets the addresses of the others.
 * The list of a large job is megabytes for every node, so only a few nodes get it
 * at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/root_internal.h"

#define NODES_AT_ONCE	16

static uint8_t *list;			/* NULL: no node waits for it */
static size_t list_length;

bool addresses_wanted(void)
{
	return list != NULL;
}

void addresses_collect(struct root *root)
{
	uint8_t *at;

	if (root->nr_restarted < root->nr_ranks)
		return;
	list_length = 0;
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		list_length += sizeof(struct wire_address) + root->rank[i].address_length;
	free(list);
	at = list = malloc(list_length);
	if (!list)
		return;
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		struct root_rank *r = &root->rank[i];
		struct wire_address head = { i, r->address_length };

		memcpy(at, &head, sizeof(head));
		if (r->address_length)
			memcpy(at + sizeof(head), r->address, r->address_length);
		at += sizeof(head) + r->address_length;
		r->restarted = false;
	}
	root->nr_restarted = 0;
	for (size_t i = 0; i < root->nr_nodes; i++)
		root->node[i]->wants_addresses = root->node[i]->name && root->node[i]->wire.fd >= 0;
}

void addresses_send(struct root *root)
{
	size_t busy = 0, waiting = 0;

	if (!list)
		return;
	for (size_t i = 0; i < root->nr_nodes; i++)
		busy += wire_pending(&root->node[i]->wire);
	for (size_t i = 0; i < root->nr_nodes; i++) {
		struct root_node *n = root->node[i];

		if (n->wants_addresses && busy < NODES_AT_ONCE) {
			n->wants_addresses = false;
			wire_send(&n->wire, WIRE_ADDRESSES, WIRE_ALL, root->id, list, list_length);
			busy += wire_pending(&n->wire);
		}
		waiting += n->wants_addresses;
	}
	if (waiting)
		return;
	free(list);
	list = NULL;
	programs_serve(root);
}
