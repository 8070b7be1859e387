/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is registered, and what a checkpoint may find of it.  In a critical section
 * no checkpoint begins, so what is changed there holds for the next one; what is
 * changed outside may be too late for it.
 */
#include "tests/libcr/random.h"

struct group groups[NR_GROUPS];

/* Of thread context: several threads register them. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static int context_of(unsigned int group)
{
	return group ? CR_SIGNAL_CONTEXT : CR_THREAD_CONTEXT;
}

/* A third of the versions is none: func is NULL.  The first callback of all always is one. */
static bool version_is_on(unsigned int group, unsigned int slot, unsigned int version)
{
	if (!version)
		return false;
	return (!group && !slot) || mix(seed + group * 1000003 + slot * 1009 + version) % 3;
}

bool slot_is_on(unsigned int group, unsigned int slot)
{
	struct slot *s = &groups[group].slot[slot];
	unsigned int last = LOAD(s->version);

	for (unsigned int v = LOAD(s->oldest); v <= last; v++)
		if (!version_is_on(group, slot, v))
			return false;
	return true;
}

static cr_callback_t function_of(unsigned int group, unsigned int slot, unsigned int version)
{
	return version_is_on(group, slot, version) ? callback_function(version) : NULL;
}

/* Inside: from the next checkpoint on; else a checkpoint may find what there was. */
static void enter(unsigned int group, bool inside)
{
	if (inside)
		CHECK(cr_enter_cs(cr_init()) == 0);
	else
		ADD(groups[group].changes, 1);
}

static void leave(bool inside)
{
	if (inside)
		CHECK(cr_leave_cs(cr_init()) == 0);
}

void slot_add(unsigned int group, uint64_t *random)
{
	struct group *g = &groups[group];
	/* Others register there, too: nobody may stop with the lock. */
	bool inside = !group || any(random, 2);
	unsigned int slot;

	enter(group, inside);
	if (!group)
		pthread_mutex_lock(&registering);
	slot = g->count;
	if (slot < MAX_SLOTS) {
		STORE(g->slot[slot].version, 1u);
		CHECK(cr_register_callback(function_of(group, slot, 1),
					   callback_argument(group, slot, 1),
					   context_of(group)) == (int)(slot | context_of(group)));
		if (inside)
			STORE(g->slot[slot].oldest, 1u);
		STORE(g->count, slot + 1);
	}
	if (!group)
		pthread_mutex_unlock(&registering);
	leave(inside);
}

static bool claim(struct slot *s)
{
	unsigned int nobody = 0;

	return __atomic_compare_exchange_n(&s->changing, &nobody, 1, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

void slot_replace(unsigned int group, unsigned int slot, uint64_t *random)
{
	struct slot *s = &groups[group].slot[slot];
	bool inside = any(random, 2);
	unsigned int next;

	enter(group, inside);
	/* Known to libcr, and nobody replaces it just now. */
	if (slot < LOAD(groups[group].count) && claim(s)) {
		next = ADD(s->version, 1);
		CHECK(cr_replace_callback(slot | context_of(group), function_of(group, slot, next),
					  callback_argument(group, slot, next),
					  context_of(group)) == 0);
		if (inside)
			STORE(s->oldest, next);
		STORE(s->changing, 0u);
	}
	leave(inside);
}

void slot_forget(unsigned int group)
{
	struct group *g = &groups[group];

	for (unsigned int i = 0; i < MAX_SLOTS; i++)
		g->slot[i].version = g->slot[i].oldest = g->slot[i].changing = 0;
	STORE(g->count, 0u);
}

void slot_replace_self(unsigned int group, unsigned int slot)
{
	struct slot *s = &groups[group].slot[slot];
	unsigned int next;

	CHECK(cr_replace_self(NULL, NULL, context_of(!group)) == -1 && errno == EINVAL);
	if (!claim(s))
		return;
	next = ADD(s->version, 1);
	CHECK(cr_replace_self(function_of(group, slot, next), callback_argument(group, slot, next),
			      context_of(group)) == 0);
	STORE(s->oldest, next);
	STORE(s->changing, 0u);
}
