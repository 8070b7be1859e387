// SPDX-License-Identifier: GPL-2.0
/*
 * Where the ranks are after a restart.  Once all have connected, each node's daemon asks for
 * the addresses that its ranks need; later for others, of peers that they meet for the first
 * time.  A node with a rank or a daemon that does not ask gets those of all ranks, megabytes
 * in a large job.  So only a few nodes get something at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/root_internal.h"

#define NODES_AT_ONCE	16

struct question {
	struct question *next;
	uint32_t count;
	uint32_t rank[];
};

static size_t nr_waiting;		/* questions, and nodes that want all addresses */
static uint8_t *all;			/* these; NULL: nobody wants them */
static size_t all_length;

/* ---- messages ------------------------------------------------------------------------ */

static uint8_t *add(uint8_t *at, const struct root *root, uint32_t rank)
{
	const struct root_rank *r = &root->rank[rank];
	struct wire_address head = { rank, r->address_length };

	memcpy(at, &head, sizeof(head));
	if (r->address_length)
		memcpy(at + sizeof(head), r->address, r->address_length);
	return at + sizeof(head) + r->address_length;
}

/* The addresses of these ranks, malloc()ed; NULL: no memory.  `some` NULL: the first `count`. */
static uint8_t *list(const struct root *root, const uint32_t *some, uint32_t count, size_t *length)
{
	uint8_t *data, *at;

	*length = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t rank = some ? some[i] : i;

		if (rank < root->nr_ranks)
			*length += sizeof(struct wire_address) + root->rank[rank].address_length;
	}
	at = data = malloc(*length + 1);
	for (uint32_t i = 0; data && i < count; i++) {
		uint32_t rank = some ? some[i] : i;

		if (rank < root->nr_ranks)
			at = add(at, root, rank);
	}
	return data;
}

/* ---- what nodes wait for ----------------------------------------------------------------- */

static void want_all(struct root_node *n)
{
	nr_waiting += !n->wants_all;
	n->wants_all = true;
}

static void drop_first(struct root_node *n)
{
	struct question *first = n->question;

	n->question = first->next;
	if (!n->question)
		n->last = NULL;
	free(first);
	nr_waiting--;
}

static void forget_all(void)
{
	free(all);
	all = NULL;
}

void addresses_lost(struct root_node *n)
{
	while (n->question)
		drop_first(n);
	nr_waiting -= n->wants_all;
	n->wants_all = n->apart = false;
	if (!nr_waiting)
		forget_all();
}

bool addresses_wanted(const struct root *root)
{
	for (size_t i = 0; i < root->nr_nodes; i++)
		if (root->node[i]->apart)
			return true;
	return false;
}

static void tell_node(struct root *root, struct root_node *n)
{
	if (!n->apart || n->wire.fd < 0)
		return;
	if (n->takes_all)
		want_all(n);
	else
		wire_queue(&n->wire, WIRE_BACK, WIRE_ALL, root->id, NULL, 0);
}

void addresses_came(struct root *root, struct root_node *n, const struct root_rank *r)
{
	n->apart = true;
	n->takes_all |= !(r->version.can & WIRE_CAN_FIND);
	root->back = root->nr_restarted == root->nr_ranks;
	if (!root->back)
		return;
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		root->rank[i].restarted = false;
	root->nr_restarted = 0;
	root->loads = true;
	for (size_t i = 0; i < root->nr_nodes; i++)
		tell_node(root, root->node[i]);
}

void addresses_asked(struct root *root, struct root_node *n, const struct wire_header *h,
		     const uint8_t *data)
{
	uint32_t count = h->length / sizeof(uint32_t);
	struct question *q;

	if (h->rank != WIRE_ALL) {	/* its daemon does not ask */
		n->takes_all = true;
		if (root->back && n->apart)
			want_all(n);
		return;
	}
	if (!root->back)
		return;
	q = malloc(sizeof(*q) + count * sizeof(*q->rank));
	if (!q) {
		wire_queue(&n->wire, WIRE_FOUND, WIRE_ALL, root->id, NULL, 0);
		return;
	}
	q->next = NULL;
	q->count = count;
	if (count)
		memcpy(q->rank, data, count * sizeof(*q->rank));
	*(n->last ?: &n->question) = q;
	n->last = &q->next;
	nr_waiting++;
}

/* ---- sending ------------------------------------------------------------------------------- */

static void tell_all(struct root *root, struct root_node *n)
{
	nr_waiting--;
	n->wants_all = n->apart = false;
	if (!all)
		all = list(root, NULL, root->nr_ranks, &all_length);
	if (all)
		wire_send(&n->wire, WIRE_ADDRESSES, WIRE_ALL, root->id, all, all_length);
}

static void answer(struct root *root, struct root_node *n)
{
	size_t length;
	uint8_t *data = list(root, n->question->rank, n->question->count, &length);

	drop_first(n);
	n->apart = false;
	wire_send(&n->wire, WIRE_FOUND, WIRE_ALL, root->id, data, data ? length : 0);
	free(data);
}

void addresses_send(struct root *root)
{
	size_t busy = 0;

	if (!nr_waiting)
		return;
	for (size_t i = 0; i < root->nr_nodes; i++)
		busy += wire_pending(&root->node[i]->wire);
	for (size_t i = 0; i < root->nr_nodes && nr_waiting; i++) {
		struct root_node *n = root->node[i];

		if (busy >= NODES_AT_ONCE)
			break;
		if (!n->wants_all && !n->question)
			continue;
		busy -= wire_pending(&n->wire);
		if (n->wants_all)
			tell_all(root, n);
		while (n->question)
			answer(root, n);
		busy += wire_pending(&n->wire);
	}
	if (nr_waiting)
		return;
	forget_all();
	if (!addresses_wanted(root))
		programs_serve(root);
}
