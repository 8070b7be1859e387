/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libcr_random READY GO SEED [aborts] [child]: a program that uses libcr at random, from
 * many threads, and knows at each event what must have come before it.  A checkpoint of it,
 * its requests of itself and its restarts make the events; tests/cases/libcr/random drives
 * it.  `aborts`: checkpoints may be cancelled from outside at any moment.  `child`: it has a
 * child that does the same, and that its callbacks add.
 *
 * slot.c is the model of what is registered, round.c that of a checkpoint, callback.c
 * and worker.c do what the seed says, main.c sets up.  Valid as C and as C++: both are
 * built.
 *
 * No callback takes a lock: one of signal context may have interrupted whoever holds it.
 * What callbacks and threads share is atomic, or changes in critical sections alone.
 */
#ifndef KCR_TESTS_LIBCR_RANDOM_H
#define KCR_TESTS_LIBCR_RANDOM_H

#include <kcr.h>
#include <libcr.h>

#include <pthread.h>

#include "tests/programs/check.h"

#define MAX_SLOTS	6	/* callbacks of one group */
#define MAX_WORKERS	96
#define NR_GROUPS	(MAX_WORKERS + 1)

/* ---- slot.c: callbacks, as they are registered -------------------------------------- */

/*
 * A callback: each registration or replacement is a version, and its number is in the
 * callback's argument.  What is changed outside of critical sections may come too late
 * for a checkpoint, which then finds any version from `oldest` on.
 */
struct slot {
	unsigned int version;		/* 0: not registered yet */
	unsigned int oldest;
	unsigned int changing;		/* by one at a time: the thread, or itself */
};

enum life { NONE, CHANGES, LIVES };	/* CHANGES: it begins or ends */

/* The callbacks of thread context (0), or those of a worker. */
struct group {
	struct slot slot[MAX_SLOTS];
	unsigned int count;		/* registered */
	unsigned int changes;		/* outside of critical sections; begin and end */
	unsigned int life;		/* enum life, of the worker */
	pid_t tid;
	/* While its callbacks run, in one thread at a time: */
	uint64_t random;
	unsigned int round;		/* the last one it had a part in */
	unsigned int last;		/* the slot that began last */
	unsigned int stack[MAX_SLOTS];	/* those within cr_checkpoint() */
	unsigned int depth;
	bool failed;			/* one of them has refused */
};

extern struct group groups[NR_GROUPS];

/* Registers one more in the group of thread context (0) or of the calling worker. */
void slot_add(unsigned int group, uint64_t *random);
/* Replaces one of these. */
void slot_replace(unsigned int group, unsigned int slot, uint64_t *random);
/* In the callback: it replaces itself. */
void slot_replace_self(unsigned int group, unsigned int slot);
/* A worker begins again, with no callbacks. */
void slot_forget(unsigned int group);
/* Must a checkpoint that begins now call it? */
bool slot_is_on(unsigned int group, unsigned int slot);

/* ---- round.c: one checkpoint ------------------------------------------------------------ */

enum answer { READY, TEMPORARY, TEMPORARY_CODE, RETURNED, OMITTED, NR_ANSWERS };
#define CODE_OF_CALL	77	/* TEMPORARY_CODE */
#define CODE_OF_RETURN	79	/* RETURNED: from a callback, before the checkpoint */
#define CODE_AFTER	80	/* from one that returns after it */

struct round {
	unsigned int number;
	unsigned int saved;		/* rounds that were not cancelled */
	unsigned int restarted;
	unsigned int running;		/* callbacks that have begun and not returned */
	unsigned int plan;		/* enum answer: what somebody is to say … */
	unsigned int victim;		/* … in this group */
	unsigned int refused;		/* bits: answers that were given */
	int over;			/* the checkpoint is over … */
	int result;			/* … with this; NO_RESULT: nobody knows yet */
	unsigned int hooks[CR_NUM_HOOKS];
};
#define NO_RESULT	(-1000000)

extern struct round round_now;
extern bool aborts;

/* A callback begins; returns what it is to answer. */
enum answer round_begin(unsigned int group, unsigned int slot, unsigned int version);
/* Before and after cr_checkpoint(), with its result. */
void round_enter(unsigned int group, unsigned int slot, enum answer answer);
void round_leave(unsigned int group, unsigned int slot, int result);
/* It returns; refuses: and has ended the checkpoint so. */
void round_end(unsigned int group, bool refuses);
/* In a critical section: the last one is complete. */
void round_audit(void);
/* Registers a hook, or none in its place. */
void round_change_hook(cr_hook_event_t event, bool on);

/* ---- callback.c -------------------------------------------------------------------------- */

/* The function of a version, and its argument. */
cr_callback_t callback_function(unsigned int version);
void *callback_argument(unsigned int group, unsigned int slot, unsigned int version);

/* ---- worker.c ------------------------------------------------------------------------------ */

/* A thread that uses all of it until `stop`, or for a while; the argument: its group. */
void *worker_run(void *group);
/* Numbers that differ only within critical sections. */
bool workers_are_consistent(void);
extern bool stop;

/* ---- main.c --------------------------------------------------------------------------------- */

/* Of all processes: how many rounds each has seen saved. */
extern struct shared {
	unsigned int saved[2];		/* parent, child */
	unsigned int child_is_ready;
} *shared;
extern unsigned int nr_workers;
extern pid_t child_pid;			/* 0: in the child, or there is none */
extern bool is_child;
extern uint64_t seed;

/* ---- random numbers --------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

/* One of 0 … below - 1. */
static inline unsigned int any(uint64_t *random, unsigned int below)
{
	*random += 0x9e3779b97f4a7c15ull;
	return mix(*random) % below;
}

/* True once in n times. */
static inline bool once_in(uint64_t *random, unsigned int n)
{
	return !any(random, n);
}

/* ---- shared numbers ---------------------------------------------------------------------------- */

#define LOAD(variable)		__atomic_load_n(&(variable), __ATOMIC_SEQ_CST)
#define STORE(variable, value)	__atomic_store_n(&(variable), (value), __ATOMIC_SEQ_CST)
#define ADD(variable, value)	__atomic_add_fetch(&(variable), (value), __ATOMIC_SEQ_CST)

#endif /* KCR_TESTS_LIBCR_RANDOM_H */
