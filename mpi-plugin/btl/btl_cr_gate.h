/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The gate: every entry of Open MPI into btl/cr passes it; the checkpoint
 * thread closes it and is then alone inside.  Passing costs two stores and a
 * load when only one thread of the application calls MPI at a time: the closing
 * side provides the barrier (membarrier).  Under MPI_THREAD_MULTIPLE, and where MPI
 * began for a session, the gate is a recursive lock as well.
 *
 * Threads that arrive at a closed gate sleep until it opens.  A thread that is
 * inside may enter again.
 */
#ifndef MCA_BTL_CR_GATE_H
#define MCA_BTL_CR_GATE_H

#include <stdbool.h>

struct cr_gate {
	volatile int closing;
	volatile int inside;
	unsigned int depth;
	bool threaded;
};
extern struct cr_gate cr_gate;

void cr_gate_init(bool threads);
int cr_gate_register(void);	/* again in every restored process */
void cr_gate_wait(void);
void cr_gate_enter_threaded(void);
bool cr_gate_try_threaded(void);
bool cr_gate_grab_threaded(void);
bool cr_gate_is_opened(void);	/* if it is closed, once it is open; false: it was not */
void cr_gate_leave_threaded(void);

static inline void cr_gate_enter(void)
{
	if (__builtin_expect(cr_gate.threaded, 0)) {
		cr_gate_enter_threaded();
		return;
	}
	if (cr_gate.depth++)
		return;
	cr_gate.inside = 1;
	__asm__ volatile("" ::: "memory");
	if (__builtin_expect(cr_gate.closing, 0))
		cr_gate_wait();
}

static inline void cr_gate_leave(void)
{
	if (__builtin_expect(cr_gate.threaded, 0)) {
		cr_gate_leave_threaded();
		return;
	}
	__asm__ volatile("" ::: "memory");
	if (!--cr_gate.depth)
		cr_gate.inside = 0;
}

/* As enter, but returns false if another thread is inside. */
static inline bool cr_gate_try(void)
{
	if (__builtin_expect(cr_gate.threaded, 0))
		return cr_gate_try_threaded();
	cr_gate_enter();
	return true;
}

/* As try, but under MPI_THREAD_MULTIPLE never waits: it may also be that the gate is closed. */
static inline bool cr_gate_grab(void)
{
	if (__builtin_expect(cr_gate.threaded, 0))
		return cr_gate_grab_threaded();
	cr_gate_enter();
	return true;
}

/* For the checkpoint thread; see btl_cr_control.h. */
int cr_gate_close(int timeout_ms);
int cr_gate_open(void);
bool cr_gate_mine(void);	/* closed, by this thread */

#endif
