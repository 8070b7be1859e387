/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must hold while callbacks run: those of thread context first, each group in
 * reverse order of registration and nested, all with one result, none after a refusal,
 * every one that is registered.
 *
 * A round begins with the first callback of thread context; libcr's thread runs these,
 * so one round is over when the next one begins.
 */
#include <sys/syscall.h>

#include "tests/libcr/random.h"

struct round round_now;
bool aborts;

static pid_t service;			/* libcr's thread */
static bool is_open;			/* not all callbacks of group 0 have returned */
static bool has_hook[CR_NUM_HOOKS];	/* changes in critical sections */
static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;

/* At the beginning of the round: who must have a part in it, if he does not change. */
static struct expected {
	unsigned int changes;
	unsigned int life;
	bool is_called;
} expected[NR_GROUPS];
static bool had_hook[CR_NUM_HOOKS];

/* ---- the round ------------------------------------------------------------------------- */

static bool has_changed(unsigned int group)
{
	return expected[group].life == CHANGES ||
	       expected[group].changes != LOAD(groups[group].changes);
}

static bool is_as_expected(unsigned int group)
{
	return expected[group].life == LIVES && !has_changed(group);
}

static void check_number(unsigned int event, unsigned int least, unsigned int more)
{
	unsigned int now = LOAD(round_now.hooks[event]);

	if (!had_hook[event])
		least = more = 0;
	if (now < least || now > least + more)
		fprintf(stderr, "# hook %u: %u times, not %u to %u\n", event, now, least,
			least + more);
	CHECK(now >= least && now <= least + more);
}

/*
 * None if there was no checkpoint.  SIGNAL_CONTEXT: in all threads that have called cr_init();
 * more only in those that have changed meanwhile.
 */
static void check_hooks(int result)
{
	unsigned int first = result > 0 ? CR_HOOK_RSTRT_SIGNAL_CONTEXT : CR_HOOK_CONT_SIGNAL_CONTEXT;
	unsigned int least = 1, more = 0;	/* the first thread */

	for (unsigned int i = 1; i <= nr_workers; i++) {
		least += is_as_expected(i);
		more += has_changed(i);
	}
	for (unsigned int i = 0; i < CR_NUM_HOOKS; i++)
		if (result >= 0 && i == first + CR_HOOK_CONT_SIGNAL_CONTEXT)
			check_number(i, least, more);
		else
			check_number(i, result >= 0 && i == first + CR_HOOK_CONT_THREAD_CONTEXT, 0);
}

void round_audit(void)
{

	if (!LOAD(round_now.number))
		return;
	CHECK(!LOAD(round_now.running) && !is_open && LOAD(round_now.over));
	CHECK(kcr_restarted(NULL, NULL, 0) == (int)LOAD(round_now.restarted));
	check_hooks(LOAD(round_now.result));
	if (groups[0].failed)
		return;		/* nobody else was asked */
	for (unsigned int i = 1; i <= nr_workers; i++)
		if (is_as_expected(i) && expected[i].is_called)
			CHECK(groups[i].round == LOAD(round_now.number) && !groups[i].depth);
}

static void expect(unsigned int group)
{
	struct expected *e = &expected[group];

	e->changes = LOAD(groups[group].changes);
	e->life = LOAD(groups[group].life);
	e->is_called = false;
	for (unsigned int i = 0; i < MAX_SLOTS; i++)
		e->is_called |= slot_is_on(group, i);
}

static void begin(uint64_t *random)
{
	round_audit();
	for (unsigned int i = 1; i <= nr_workers; i++)
		expect(i);
	for (unsigned int i = 0; i < CR_NUM_HOOKS; i++) {
		STORE(round_now.hooks[i], 0u);
		had_hook[i] = has_hook[i];
	}
	/* A child that is left out would be missing in its restarted parent. */
	STORE(round_now.plan, is_child || any(random, 4) ? (unsigned int)READY :
		1 + any(random, NR_ANSWERS - (child_pid ? 2 : 1)));
	STORE(round_now.victim, any(random, 2) ? 0 : 1 + any(random, nr_workers));
	STORE(round_now.refused, 0u);
	STORE(round_now.over, 0);
	STORE(round_now.result, NO_RESULT);
	service = syscall(SYS_gettid);
	ADD(round_now.number, 1);
	is_open = true;
}

/* ---- a group ---------------------------------------------------------------------------- */

/* Those that are on and are between two slots, both exclusive, were left out. */
static bool none_left_out(unsigned int group, unsigned int low, unsigned int high)
{
	for (unsigned int i = low + 1; i < high; i++)
		if (slot_is_on(group, i))
			return false;
	return true;
}

static void join(struct group *g)
{
	if (g == groups) {
		if (!is_open)
			begin(&g->random);
	} else {
		/* All of thread context have reached cr_checkpoint(). */
		CHECK(is_open && !groups[0].last && !groups[0].failed);
	}
	if (g->round == LOAD(round_now.number))
		return;
	g->round = LOAD(round_now.number);
	g->last = MAX_SLOTS;
	g->depth = 0;
	g->failed = false;
}

enum answer round_begin(unsigned int group, unsigned int slot, unsigned int version)
{
	struct group *g = &groups[group];
	pid_t tid = syscall(SYS_gettid);

	join(g);
	ADD(round_now.running, 1);
	CHECK(tid == service || (group && tid == LOAD(g->tid)));
	CHECK(!LOAD(round_now.over));
	CHECK(!g->failed);
	CHECK(slot < g->last);
	CHECK(none_left_out(group, slot, g->last));
	CHECK(version >= LOAD(g->slot[slot].oldest) && version <= LOAD(g->slot[slot].version));
	g->last = slot;
	return group == LOAD(round_now.victim) && any(&g->random, 2) ?
	       (enum answer)LOAD(round_now.plan) : READY;
}

static void note_answer(struct group *g, enum answer answer)
{
	if (answer == READY)
		return;
	g->failed = true;
	__atomic_or_fetch(&round_now.refused, 1u << answer, __ATOMIC_SEQ_CST);
}

void round_enter(unsigned int group, unsigned int slot, enum answer answer)
{
	struct group *g = &groups[group];

	g->stack[g->depth++] = slot;
	note_answer(g, answer);
}

/* The worst of what was answered here; the other processes are ready, or cancelled. */
static bool is_right(int result)
{
	unsigned int refused = LOAD(round_now.refused);

	if (aborts && result < 0)
		return true;
	if (refused & 1 << TEMPORARY && result == -CR_ETEMPFAIL)
		return true;
	if (refused & 1 << TEMPORARY_CODE && result == -CODE_OF_CALL)
		return true;
	if (refused & 1 << RETURNED && result == -CODE_OF_RETURN)
		return true;
	if (refused == 1 << OMITTED)
		return result == -CR_EOMITTED;
	/* Another process of this request: the parent's answers are the child's results. */
	if (is_child && result < 0)
		return true;
	return !refused && result >= 0;
}

/* The first one to come out, of whichever group, tells what the others must say. */
static void note_result(int result)
{
	int none = NO_RESULT;

	STORE(round_now.over, 1);
	if (!__atomic_compare_exchange_n(&round_now.result, &none, result, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	if (result < 0)
		return;
	ADD(round_now.saved, 1);
	if (result > 0)
		ADD(round_now.restarted, 1);
	ADD(shared->saved[is_child], 1);
}

void round_leave(unsigned int group, unsigned int slot, int result)
{
	struct group *g = &groups[group];

	note_result(result);
	CHECK(g->depth && g->stack[g->depth - 1] == slot);
	g->depth--;
	CHECK(result == LOAD(round_now.result));
	if (!is_right(result))
		fprintf(stderr, "# result %d, answers %#x\n", result, LOAD(round_now.refused));
	CHECK(is_right(result));
	CHECK(g->failed || !g->last || none_left_out(group, (unsigned int)-1, g->last));
}

void round_end(unsigned int group, bool refuses)
{
	struct group *g = &groups[group];

	if (refuses)
		note_answer(g, RETURNED);
	/* The first one that was registered is always on and the last one to be called. */
	if (!group && !g->depth && (!g->last || g->failed)) {
		if (!LOAD(round_now.over))
			note_result(-CODE_OF_RETURN);	/* nobody was told */
		is_open = false;
	}
	ADD(round_now.running, -1);
}

/* ---- hooks -------------------------------------------------------------------------------- */

static void hook(cr_hook_event_t event)
{
	if (event == CR_HOOK_CONT_THREAD_CONTEXT || event == CR_HOOK_RSTRT_THREAD_CONTEXT)
		CHECK(syscall(SYS_gettid) == service && !is_open);
	ADD(round_now.hooks[event], 1);
}

void round_change_hook(cr_hook_event_t event, bool on)
{
	CHECK(cr_enter_cs(cr_init()) == 0);
	pthread_mutex_lock(&hooks_lock);
	CHECK(cr_register_hook(event, on ? hook : NULL) == (has_hook[event] ? hook : NULL));
	has_hook[event] = on;
	pthread_mutex_unlock(&hooks_lock);
	CHECK(cr_leave_cs(cr_init()) == 0);
}
