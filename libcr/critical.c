// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Critical sections: one word counts the threads inside, its highest bit keeps
 * further ones out.  Entering and leaving is one atomic operation each; threads
 * that have to wait sleep on the word (futex).
 */
#include "libcr/internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void cri_sleep(unsigned int *word, unsigned int value, const struct timespec *timeout)
{
	int err = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
	errno = err;
}

void cri_wake(unsigned int *word)
{
	int err = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = err;
}

struct timespec cri_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t;
}

struct timespec cri_time_left(const struct timespec *end)
{
	struct timespec t = cri_now();

	t.tv_sec = end->tv_sec - t.tv_sec;
	t.tv_nsec = end->tv_nsec - t.tv_nsec;
	if (t.tv_nsec < 0) {
		t.tv_nsec += 1000000000;
		t.tv_sec--;
	}
	return t.tv_sec < 0 ? (struct timespec){} : t;
}

static void wait_while(unsigned int value)
{
	cri_sleep(&cri.sections, value, NULL);
}

static void wake_all(void)
{
	cri_wake(&cri.sections);
}

/* ---- the service thread's side ------------------------------------------------------ */

void cri_sections_close(void)
{
	unsigned int now = __atomic_or_fetch(&cri.sections, CRI_PENDING, __ATOMIC_SEQ_CST);

	while (now != CRI_PENDING) {
		wait_while(now);
		now = __atomic_load_n(&cri.sections, __ATOMIC_ACQUIRE);
	}
}

void cri_sections_open(void)
{
	__atomic_and_fetch(&cri.sections, ~CRI_PENDING, __ATOMIC_SEQ_CST);
	wake_all();
}

static void wait_until_open(void)
{
	unsigned int now = __atomic_load_n(&cri.sections, __ATOMIC_ACQUIRE);

	while (now & CRI_PENDING) {
		wait_while(now);
		now = __atomic_load_n(&cri.sections, __ATOMIC_ACQUIRE);
	}
}

bool cri_sections_are_closed(void)
{
	return __atomic_load_n(&cri.sections, __ATOMIC_ACQUIRE) & CRI_PENDING;
}

void cri_sections_await_open(int seconds)
{
	struct timespec end = cri_now(), left;
	unsigned int now;

	if (cri_is_busy() || (cri_self.generation == cri.generation && cri_self.depth))
		return;
	end.tv_sec += seconds;
	while ((now = __atomic_load_n(&cri.sections, __ATOMIC_ACQUIRE)) & CRI_PENDING) {
		left = cri_time_left(&end);
		if (!left.tv_sec && !left.tv_nsec)
			return;
		cri_sleep(&cri.sections, now, &left);
	}
}

/* ---- the program's side ------------------------------------------------------------- */

/* Becomes a client: from now on checkpoints wait for critical sections. */
static int need_service(void)
{
	int ret;

	if (__atomic_load_n(&cri.client, __ATOMIC_ACQUIRE) >= 0)
		return 0;
	cri_lock();
	ret = cri_service_start();
	cri_unlock();
	return ret;
}

/*
 * A signal handler may call us at any instruction, and finds `moving` set where the thread's
 * depth does not tell whether it is counted in cri.sections.  Returns the value before.
 */
static bool set_moving(bool moving)
{
	bool before = cri_self.moving;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cri_self.moving = moving;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return before;
}

/*
 * In a handler that has interrupted such a move (`nested`) waiting for the end of a checkpoint
 * that is pending would be waiting for this thread.  While anybody is inside the checkpoint has
 * not begun, and one more does no harm; while nobody is, this thread is not either.
 */
static bool may_enter(unsigned int now, bool nested)
{
	return nested ? now != CRI_PENDING : !(now & CRI_PENDING);
}

/* Enters, or returns 1. */
static int try_to_enter(void)
{
	unsigned int now = __atomic_load_n(&cri.sections, __ATOMIC_RELAXED);
	bool nested = set_moving(true);
	int ret = 1;

	while (ret && may_enter(now, nested))
		if (__atomic_compare_exchange_n(&cri.sections, &now, now + 1, true,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			cri_self.depth = 1;
			ret = 0;
		}
	set_moving(nested);
	return ret;
}

/* Leaves the outermost section. */
static void leave(void)
{
	bool nested = set_moving(true), is_last;

	cri_self.depth = 0;
	is_last = __atomic_sub_fetch(&cri.sections, 1, __ATOMIC_RELEASE) == CRI_PENDING;
	if (is_last)
		wake_all();
	set_moving(nested);
	if (is_last)
		wait_until_open();
}

/* Nothing to do in a callback or a nested section: 0.  -1: an outermost section. */
static int enter_is_free(void)
{
	if (cri_self.run)
		return 0;
	if (cri_self.depth) {
		cri_self.depth++;
		return 0;
	}
	return -1;
}

int cr_tryenter_cs(cr_client_id_t id)
{
	(void)id;
	if (!cri_is_init())
		return -1;
	if (!enter_is_free())
		return 0;
	if (need_service())
		return -1;
	return try_to_enter();
}

int cr_enter_cs(cr_client_id_t id)
{
	(void)id;
	if (!cri_is_init())
		return -1;
	if (!enter_is_free())
		return 0;
	if (need_service())
		return -1;
	while (try_to_enter()) {
		if (cri_self.moving)
			wake_all();	/* who was interrupted may not have done it yet */
		wait_until_open();
	}
	return 0;
}

int cr_leave_cs(cr_client_id_t id)
{
	(void)id;
	if (!cri_is_init())
		return -1;
	if (cri_self.run)
		return 0;
	if (!cri_self.depth) {
		errno = EINVAL;
		return -1;
	}
	if (cri_self.depth > 1)
		cri_self.depth--;
	else
		leave();
	return 0;
}

int cr_status(void)
{
	if (!cri_is_init())
		return -1;
	if (cri_self.run)
		return CR_STATE_ACTIVE;
	return cri_sections_are_closed() ? CR_STATE_PENDING : CR_STATE_IDLE;
}
