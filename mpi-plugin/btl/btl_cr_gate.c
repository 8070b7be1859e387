// SPDX-License-Identifier: GPL-2.0
/*
 * The gate of btl/cr: see btl_cr_gate.h.
 *
 * `turnstile` is held as long as the gate is closed; threads that find it closing
 * wait there.  `inner` is held by the thread inside if the application has several,
 * and by the checkpoint thread.  Order: turnstile, inner.
 */
#include "btl_cr_gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct cr_gate cr_gate;

static pthread_mutex_t turnstile = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static const void *volatile owner;	/* of inner: an address unique to the thread */
static __thread char self;
static const void *closer;		/* the thread that holds the gate closed */

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

int cr_gate_register(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? -errno : 0;
}

void cr_gate_init(bool threads)
{
	cr_gate.threaded = cr_gate_register() || threads;
}

/* Steps out, sleeps while the gate is closed, and steps in again. */
void cr_gate_wait(void)
{
	do {
		__atomic_store_n(&cr_gate.inside, 0, __ATOMIC_SEQ_CST);
		pthread_mutex_lock(&turnstile);
		pthread_mutex_unlock(&turnstile);
		__atomic_store_n(&cr_gate.inside, 1, __ATOMIC_SEQ_CST);
	} while (cr_gate.closing);
}

void cr_gate_enter_threaded(void)
{
	if (owner == &self) {
		cr_gate.depth++;
		return;
	}
	if (cr_gate.closing) {
		pthread_mutex_lock(&turnstile);
		pthread_mutex_unlock(&turnstile);
	}
	pthread_mutex_lock(&inner);
	owner = &self;
	cr_gate.depth = 1;
}

bool cr_gate_try_threaded(void)
{
	if (owner == &self || cr_gate.closing) {
		cr_gate_enter_threaded();
		return true;
	}
	if (pthread_mutex_trylock(&inner))
		return false;
	owner = &self;
	cr_gate.depth = 1;
	return true;
}

/* Not while it is being closed: whoever waits may hold locks that a thread inside needs to leave. */
bool cr_gate_is_opened(void)
{
	if (!__atomic_load_n(&closer, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&turnstile);
	pthread_mutex_unlock(&turnstile);
	return true;
}

bool cr_gate_grab_threaded(void)
{
	if (owner == &self) {
		cr_gate.depth++;
		return true;
	}
	if (cr_gate.closing || pthread_mutex_trylock(&inner))
		return false;
	owner = &self;
	cr_gate.depth = 1;
	return true;
}

void cr_gate_leave_threaded(void)
{
	if (--cr_gate.depth)
		return;
	owner = NULL;
	pthread_mutex_unlock(&inner);
}

static struct timespec deadline(int timeout_ms)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += timeout_ms / 1000;
	at.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (at.tv_nsec >= 1000000000L) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000L;
	}
	return at;
}

static int wait_outside(int timeout_ms)
{
	const struct timespec nap = { 0, 20000 };
	struct timespec start, now;

	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (__atomic_load_n(&cr_gate.inside, __ATOMIC_SEQ_CST)) {
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 +
		    (now.tv_nsec - start.tv_nsec) / 1000000 >= timeout_ms)
			return -ETIMEDOUT;
	}
	return 0;
}

int cr_gate_close(int timeout_ms)
{
	struct timespec until = deadline(timeout_ms);
	int rc;

	if (closer == &self)
		return -EALREADY;
	if (pthread_mutex_timedlock(&turnstile, &until))
		return -ETIMEDOUT;
	__atomic_store_n(&cr_gate.closing, 1, __ATOMIC_SEQ_CST);
	if (cr_gate.threaded)
		rc = -pthread_mutex_timedlock(&inner, &until);
	else
		rc = wait_outside(timeout_ms);
	if (rc) {
		__atomic_store_n(&cr_gate.closing, 0, __ATOMIC_SEQ_CST);
		pthread_mutex_unlock(&turnstile);
		return rc;
	}
	__atomic_store_n(&closer, &self, __ATOMIC_RELAXED);
	return 0;
}

int cr_gate_open(void)
{
	if (closer != &self)
		return -EPERM;
	__atomic_store_n(&closer, NULL, __ATOMIC_RELAXED);
	if (cr_gate.threaded)
		pthread_mutex_unlock(&inner);
	__atomic_store_n(&cr_gate.closing, 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&turnstile);
	return 0;
}

bool cr_gate_mine(void)
{
	return closer == &self;
}
