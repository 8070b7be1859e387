// SPDX-License-Identifier: GPL-2.0
/*
 * Where other ranks are after a restart, in the daemon: the root is asked for each address
 * once for all ranks of the node, and not for those of the node's own ranks.  The root
 * answers questions in their order, so an inquiry of a rank has its answer when so many of
 * the daemon's questions as had been asked by then are answered.
 */
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/node_internal.h"

struct known_address {
	uint8_t *bytes;			/* NULL: not known */
	uint32_t length;
	bool asked;
};

struct inquiry {
	struct inquiry *next;
	uint32_t asker;
	uint64_t due;			/* when so many questions are answered */
	uint32_t count;
	uint32_t rank[];
};

/* Its place; NULL: there is no such rank, or no memory. */
static struct known_address *place(struct node_addresses *a, uint32_t rank)
{
	struct known_address *grown;
	uint32_t room;

	if (rank >= WIRE_RANKS_MAX)
		return NULL;
	if (rank >= a->room) {
		room = rank + rank / 2 + 64;
		grown = realloc(a->known, room * sizeof(*grown));
		if (!grown)
			return NULL;
		memset(grown + a->room, 0, (room - a->room) * sizeof(*grown));
		a->known = grown;
		a->room = room;
	}
	return &a->known[rank];
}

static void learn(struct node_addresses *a, uint32_t rank, const uint8_t *bytes, size_t length)
{
	struct known_address *known = place(a, rank);
	uint8_t *copy = known && length ? malloc(length) : NULL;

	if (!copy)
		return;
	memcpy(copy, bytes, length);
	free(known->bytes);
	known->bytes = copy;
	known->length = length;
}

/* ---- answers to ranks -------------------------------------------------------------------- */

static const struct known_address *look_up(const struct node_addresses *a, uint32_t rank)
{
	return rank < a->room && a->known[rank].bytes ? &a->known[rank] : NULL;
}

/* FOUND, malloc()ed, with those that are known; NULL: no memory. */
static uint8_t *compose(const struct node_addresses *a, const struct inquiry *q, size_t *length)
{
	const struct known_address *known;
	uint8_t *data, *at;

	*length = 0;
	for (uint32_t i = 0; i < q->count; i++)
		if ((known = look_up(a, q->rank[i])))
			*length += sizeof(struct wire_address) + known->length;
	at = data = malloc(*length + 1);
	for (uint32_t i = 0; data && i < q->count; i++) {
		struct wire_address head = { .rank = q->rank[i] };

		known = look_up(a, head.rank);
		if (!known)
			continue;
		head.length = known->length;
		memcpy(at, &head, sizeof(head));
		memcpy(at + sizeof(head), known->bytes, known->length);
		at += sizeof(head) + known->length;
	}
	return data;
}

static void answer(struct node *node, const struct inquiry *q)
{
	size_t length;
	uint8_t *data = compose(&node->addresses, q, &length);

	for (size_t i = 0; i < node->nr_members && data; i++) {
		struct member *m = node->member[i];

		if (m->wire.fd < 0 || m->rank != q->asker)
			continue;
		wire_send(&m->wire, WIRE_FOUND, m->rank, 0, data, length);
		m->apart = false;
	}
	free(data);
}

static void drop_first(struct node_addresses *a)
{
	struct inquiry *q = a->first;

	a->first = q->next;
	if (!a->first)
		a->last = NULL;
	free(q);
}

static void answer_due(struct node *node)
{
	struct node_addresses *a = &node->addresses;

	while (a->back && a->first && a->first->due <= a->answered) {
		answer(node, a->first);
		drop_first(a);
	}
}

/* ---- questions to the root ---------------------------------------------------------------- */

/* Adds what has to be asked for an inquiry to a list; returns its new length. */
static uint32_t collect(struct node_addresses *a, const struct inquiry *q, uint32_t *list,
			uint32_t count)
{
	for (uint32_t i = 0; i < q->count; i++) {
		struct known_address *known = place(a, q->rank[i]);

		if (!known || known->bytes || known->asked)
			continue;
		known->asked = true;
		list[count++] = q->rank[i];
	}
	return count;
}

/* For this inquiry and all that follow it; `always`: also if there is nothing to ask. */
static void ask_root(struct node *node, struct inquiry *from, bool always)
{
	struct node_addresses *a = &node->addresses;
	uint32_t *list, count = 0;
	size_t most = 0;

	for (const struct inquiry *q = from; q; q = q->next)
		most += q->count;
	list = malloc(most * sizeof(*list) + 1);
	if (!list)
		return;			/* it is answered with what is known */
	for (const struct inquiry *q = from; q; q = q->next)
		count = collect(a, q, list, count);
	if (count || always) {
		wire_send(&node->root, WIRE_WHERE, WIRE_ALL, 0, list, count * sizeof(*list));
		a->asked++;
	}
	free(list);
	for (; from; from = from->next)
		from->due = a->asked;
}

/* ---- messages ------------------------------------------------------------------------------- */

void node_addresses_came(struct node *node, struct member *m, const uint8_t *address, size_t length)
{
	m->apart = true;
	learn(&node->addresses, m->rank, address, length);
}

void node_addresses_ask(struct node *node, const struct member *m, const struct wire_header *h,
			const uint8_t *data)
{
	struct node_addresses *a = &node->addresses;
	uint32_t count = h->length / sizeof(uint32_t);
	struct inquiry *q = malloc(sizeof(*q) + count * sizeof(*q->rank));

	if (!q)
		return;
	*q = (struct inquiry){ .asker = m->rank, .count = count };
	if (count)
		memcpy(q->rank, data, count * sizeof(*q->rank));
	*(a->last ?: &a->first) = q;
	a->last = &q->next;
	if (a->back)
		ask_root(node, q, false);
	answer_due(node);
}

void node_addresses_back(struct node *node)
{
	node->addresses.back = true;
	ask_root(node, node->addresses.first, true);
}

void node_addresses_found(struct node *node, const struct wire_header *h, const uint8_t *data)
{
	struct wire_address head;

	for (size_t at = 0; at + sizeof(head) <= h->length; at += sizeof(head) + head.length) {
		memcpy(&head, data + at, sizeof(head));
		if (head.length > h->length - at - sizeof(head))
			break;
		learn(&node->addresses, head.rank, data + at + sizeof(head), head.length);
	}
	node->addresses.answered++;
	answer_due(node);
}

void node_addresses_all(struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		node->member[i]->apart = false;
	while (node->addresses.first)
		drop_first(&node->addresses);
}

bool node_addresses_wanted(const struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		if (node->member[i]->wire.fd >= 0 && node->member[i]->apart)
			return true;
	return false;
}

void node_addresses_free(struct node *node)
{
	struct node_addresses *a = &node->addresses;

	while (a->first)
		drop_first(a);
	for (uint32_t i = 0; i < a->room; i++)
		free(a->known[i].bytes);
	free(a->known);
}
