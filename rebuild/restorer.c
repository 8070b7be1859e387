// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in a half-restored process with nothing but its own code, stack and script
 * mapped: no C library, no constants outside the instructions, no calls that
 * the compiler might add.  Floating-point registers are not touched before
 * they get their saved contents.  See restorer.h.
 */
#include "rebuild/restorer.h"

#include <stddef.h>
#include <linux/kcr.h>
#include <asm/unistd.h>

#include "arch/restorer.h"

#define RESTORER __attribute__((section("kcr_restorer")))

#ifndef PR_TIMER_CREATE_RESTORE_IDS
#define PR_TIMER_CREATE_RESTORE_IDS	77	/* Linux 6.15 */
#endif

#define MAX_ERRNO	4095

static inline __attribute__((always_inline)) int is_error(int64_t result)
{
	return result < 0 && result >= -MAX_ERRNO;
}

RESTORER __attribute__((noreturn, noinline))
static void fail(const struct restorer_script *script, const struct restorer_op *op, int64_t result)
{
	struct restorer_status *status = (struct restorer_status *)script->status;
	const char *label = (const char *)op->label;
	size_t i = 0;

	if (!__atomic_exchange_n(&status->taken, 1, __ATOMIC_ACQ_REL)) {
		status->pid = (int32_t)arch_system_call(__NR_getpid, 0, 0, 0, 0, 0, 0);
		status->tid = op->kind == RESTORER_CLONE ? (int32_t)op->expected : 0;
		status->result = result;
		for (; label && label[i] && i < RESTORER_LABEL - 1; i++)
			*(volatile char *)&status->label[i] = label[i];
		*(volatile char *)&status->label[i] = 0;
		__atomic_store_n(&status->written, 1, __ATOMIC_RELEASE);
	}
	for (;;)
		arch_system_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
}

RESTORER __attribute__((noinline))
static void note(const struct restorer_script *script, const struct restorer_op *op)
{
	struct restorer_status *status = (struct restorer_status *)script->status;
	uint32_t at = __atomic_fetch_add(&status->nr_noted, 1, __ATOMIC_RELAXED);

	if (at < RESTORER_NOTES)
		__atomic_store_n(&status->noted[at], (int32_t)op->expected, __ATOMIC_RELEASE);
}

/*
 * Timer IDs can be requested since Linux 6.15; before, the kernel assigns them
 * upwards from 0, so that the wanted one is reached by creating others.
 */
RESTORER __attribute__((noinline))
static int64_t create_timer(uint64_t clock, uint64_t event, int32_t wanted)
{
	int32_t id = wanted;
	int64_t result, asked;

	asked = arch_system_call(__NR_prctl, PR_TIMER_CREATE_RESTORE_IDS, 1, 0, 0, 0, 0);
	if (!asked) {
		result = arch_system_call(__NR_timer_create, clock, event, (uint64_t)&id, 0, 0, 0);
		arch_system_call(__NR_prctl, PR_TIMER_CREATE_RESTORE_IDS, 0, 0, 0, 0, 0);
		return is_error(result) ? result : id;
	}
	for (;;) {
		result = arch_system_call(__NR_timer_create, clock, event, (uint64_t)&id, 0, 0, 0);
		if (is_error(result))
			return result;
		if (id >= wanted)
			return id;
		arch_system_call(__NR_timer_delete, id, 0, 0, 0, 0, 0);
	}
}

/* The child finds its script on top of its stack. */
RESTORER __attribute__((noinline))
static int64_t clone_thread(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return arch_clone(nr, a0, a1, a2);
}

/* The floating-point registers are loaded last: nothing may come between. */
RESTORER __attribute__((noinline))
static int64_t enter(uint64_t job, uint64_t request, uint64_t xsave)
{
	return arch_enter(__NR_ioctl, job, KCR_IOC_ENTER, request, xsave);
}

RESTORER __attribute__((noinline))
static int64_t execute(const struct restorer_op *op)
{
	const uint64_t *a = op->arg;

	if (op->kind == RESTORER_CALL)
		return arch_system_call(op->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (op->kind == RESTORER_TIMER)
		return create_timer(a[0], a[1], (int32_t)a[2]);
	if (op->kind == RESTORER_CLONE)
		return clone_thread(op->nr, a[0], a[1], a[2]);
	if (op->kind == RESTORER_ENTER)
		return enter(a[0], a[1], a[2]);
	if (op->kind == RESTORER_COPY)
		arch_copy(a[0], a[1], a[2]);
	return 0;
}

RESTORER __attribute__((noreturn, used, externally_visible))
void restorer_run(const struct restorer_script *script)
{
	const struct restorer_op *op = (const struct restorer_op *)script->op;
	uint64_t i;

	for (i = 0; i < script->count; i++) {
		int64_t result = execute(&op[i]);

		if (op[i].check == RESTORER_SUCCEEDS && is_error(result))
			fail(script, &op[i], result);
		if (op[i].check == RESTORER_EQUALS && result != op[i].expected)
			fail(script, &op[i], result);
		if (op[i].check == RESTORER_OR_NOTED && is_error(result))
			note(script, &op[i]);
		else if (op[i].check >= RESTORER_OR_NEXT && !is_error(result))
			i++;
	}
	fail(script, op, 0);
}
