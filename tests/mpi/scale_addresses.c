// SPDX-License-Identifier: GPL-2.0
/* Where the simulated ranks are after a restart: see scale.h. */
#include "scale.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EACH (sizeof(struct wire_address) + SCALE_ADDRESS)

bool scale_old;

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The peers of a node's ranks on other nodes, in order (malloc()ed), and how many. */
static uint32_t *needed(const struct scale_questions *all, uint32_t node, uint32_t *count)
{
	uint32_t first = node * all->per_node, end = scale_end(node, all->ranks, all->per_node);
	uint32_t *list = malloc((end - first) * SCALE_PEERS_MAX * sizeof(*list)), most = 0;
	struct wire_bookmark mark[SCALE_PEERS_MAX];

	if (!list)
		scale_fail("memory");
	for (uint32_t rank = first; rank < end; rank++)
		for (uint32_t i = scale_bookmarks(rank, all->ranks, mark); i--;)
			if (mark[i].rank < first || mark[i].rank >= end)
				list[most++] = mark[i].rank;
	qsort(list, most, sizeof(*list), compare);
	*count = 0;
	for (uint32_t i = 0; i < most; i++)
		if (!i || list[i] != list[i - 1])
			list[(*count)++] = list[i];
	return list;
}

void scale_ask(struct wire *w, uint32_t rank, uint32_t ranks)
{
	struct wire_bookmark mark[SCALE_PEERS_MAX];
	uint32_t list[SCALE_PEERS_MAX], count = scale_bookmarks(rank, ranks, mark);

	for (uint32_t i = 0; i < count; i++)
		list[i] = mark[i].rank;
	wire_queue(w, WIRE_WHERE, rank, 0, list, count * sizeof(*list));
}

/* Each address begins with the number of its rank; `list` NULL: all ranks. */
static void check(const uint8_t *data, size_t length, const uint32_t *list, uint32_t count)
{
	errno = EBADMSG;
	if (length != count * EACH)
		scale_fail("a node does not get its addresses");
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t *rank = list ? &list[i] : &i;

		if (memcmp(data + i * EACH, rank, sizeof(*rank)) ||
		    memcmp(data + i * EACH + sizeof(struct wire_address), rank, sizeof(*rank)))
			scale_fail("a node gets a wrong address");
	}
}

bool scale_take_addresses(struct scale_questions *all, struct wire *w, uint32_t node,
			  const struct wire_header *h, const uint8_t *data)
{
	uint32_t count, *list = NULL;

	switch (h->type) {
	case WIRE_BACK:
		list = needed(all, node, &count);
		wire_send(w, WIRE_WHERE, WIRE_ALL, 0, list, count * sizeof(*list));
		all->bytes += count * sizeof(*list);
		break;
	case WIRE_FOUND:
		list = needed(all, node, &count);
		check(data, h->length, list, count);
		break;
	case WIRE_ADDRESSES:
		check(data, h->length, NULL, all->ranks);
		break;
	default:
		return false;
	}
	free(list);
	all->bytes += h->length;
	all->given += h->type != WIRE_BACK;
	return true;
}

static void answer(struct wire *w, uint32_t type, const uint32_t *list, uint32_t count)
{
	uint8_t *data = calloc(count + 1, EACH);

	if (!data)
		scale_fail("memory");
	for (uint32_t i = 0; i < count; i++) {
		struct wire_address head = { list ? list[i] : i, SCALE_ADDRESS };

		memcpy(data + i * EACH, &head, sizeof(head));
		memcpy(data + i * EACH + sizeof(head), &head.rank, sizeof(head.rank));
	}
	wire_send(w, type, WIRE_ALL, 0, data, count * EACH);
	free(data);
}

void scale_answer(struct wire *w, const uint32_t *asked, uint32_t count)
{
	answer(w, WIRE_FOUND, asked, count);
}

void scale_tell_all(struct wire *w, uint32_t ranks)
{
	answer(w, WIRE_ADDRESSES, NULL, ranks);
}
