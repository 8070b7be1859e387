// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spinlocks for callbacks and signal handlers.  The holder may be preempted:
 * after a while the waiter yields instead of spinning.
 */
#include <libcr.h>

#include <sched.h>

#define SPINS	100

void cr_spinlock_init(cr_spinlock_t *lock)
{
	__atomic_store_n(lock, CR_SPINLOCK_INITIALIZER, __ATOMIC_RELEASE);
}

int cr_spinlock_trylock(cr_spinlock_t *lock)
{
	return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

void cr_spinlock_lock(cr_spinlock_t *lock)
{
	for (int spins = 0; !cr_spinlock_trylock(lock); spins++) {
		if (spins < SPINS)
			__builtin_ia32_pause();
		else
			sched_yield();
	}
}

void cr_spinlock_unlock(cr_spinlock_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
