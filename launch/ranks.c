// SPDX-License-Identifier: GPL-2.0
/* The job's ranks.  See ranks.h. */
#include "launch/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "launch/rank_message.h"

#define RANKS_MAX	(1u << 22)

static bool make_room(struct ranks *r, uint32_t number)
{
	uint32_t count = number >= r->count * 2 ? number + 1 : r->count * 2;
	struct rank *grown;

	if (number < r->count)
		return true;
	grown = number < RANKS_MAX ? realloc(r->rank, count * sizeof(*grown)) : NULL;
	if (!grown)
		return false;
	memset(grown + r->count, 0, (count - r->count) * sizeof(*grown));
	r->rank = grown;
	r->count = count;
	return true;
}

struct rank *ranks_start(struct ranks *r, uint32_t number, uint32_t node, uint32_t size,
			 bool takes_input)
{
	struct rank *one;

	if (!make_room(r, number))
		return NULL;
	one = &r->rank[number];
	if (one->started)
		return NULL;
	*one = (struct rank){ .node = node, .started = true, .takes_input = takes_input };
	r->started++;
	r->takers += takes_input;
	r->size = size;
	return one;
}

struct rank *ranks_find(const struct ranks *r, uint32_t number)
{
	return number < r->count && r->rank[number].started ? &r->rank[number] : NULL;
}

void ranks_end(struct ranks *r, struct rank *one, int status)
{
	if (one->ended)
		return;
	one->ended = true;
	r->ended++;
	r->takers -= one->takes_input;
	ranks_took_input(r, one, one->owed);
	ranks_set_asking(r, one, false);
	if (!r->status)
		r->status = status;
}

bool ranks_lose_node(struct ranks *r, uint32_t node)
{
	bool loses = !ranks_all_started(r);

	for (uint32_t i = 0; i < r->count; i++) {
		struct rank *one = ranks_find(r, i);

		if (!one || one->ended || one->node != node)
			continue;
		ranks_end(r, one, SIGKILL);
		loses = true;
	}
	return loses;
}

static void set_owed(struct ranks *r, struct rank *one, uint32_t bytes)
{
	r->owing += (bytes > 0) - (one->owed > 0);
	r->behind += (bytes >= RANK_BEHIND) - (one->owed >= RANK_BEHIND);
	one->owed = bytes;
}

void ranks_fed(struct ranks *r, uint32_t bytes)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct rank *one = &r->rank[i];

		if (one->takes_input && !one->ended)
			set_owed(r, one, one->owed + bytes);
	}
}

void ranks_took_input(struct ranks *r, struct rank *one, uint32_t bytes)
{
	set_owed(r, one, bytes < one->owed ? one->owed - bytes : 0);
}

bool ranks_take_input(const struct ranks *r)
{
	return r->owing < r->takers && !r->behind;
}

int64_t ranks_behind(const struct ranks *r)
{
	bool any = r->behind && r->owing < r->takers;

	for (uint32_t i = 0; any && i < r->count; i++)
		if (r->rank[i].owed >= RANK_BEHIND)
			return i;
	return -1;
}

void ranks_set_asking(struct ranks *r, struct rank *one, bool asks)
{
	r->asking += asks - one->asks;
	one->asks = asks;
}

void ranks_describe_end(char *text, size_t size, const struct rank *one, uint32_t number, int status)
{
	const char *who = one->unloaded ? ": its cr_restart --lazy" : "";
	const char *when = one->unloaded ? " before all of its memory was loaded" : "";

	if (WIFSIGNALED(status))
		snprintf(text, size, "rank %u%s was ended by signal %d (%s)%s", number, who,
			 WTERMSIG(status), strsignal(WTERMSIG(status)), when);
	else
		snprintf(text, size, "rank %u%s ended with status %d%s", number, who,
			 WEXITSTATUS(status), when);
}

void ranks_free(struct ranks *r)
{
	free(r->rank);
	memset(r, 0, sizeof(*r));
}
