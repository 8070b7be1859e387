// SPDX-License-Identifier: GPL-2.0
/*
 * Runs in a half-made process with nothing but its own code, stack and script
 * mapped: no C library, no constants outside the instructions, no calls that
 * the compiler might add.  Floating-point registers are not touched before
 * they get their saved contents.  See restorer.h.
 */
#include "rebuild/restorer.h"

#include <stddef.h>
#include <linux/kcr.h>
#include <asm/unistd.h>

#define RESTORER __attribute__((section("kcr_restorer")))

#ifndef PR_TIMER_CREATE_RESTORE_IDS
#define PR_TIMER_CREATE_RESTORE_IDS	77	/* Linux 6.15 */
#endif

#define MAX_ERRNO	4095

static inline __attribute__((always_inline)) int64_t
system_call(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
	    uint64_t a5)
{
	register uint64_t r10 __asm__("r10") = a3;
	register uint64_t r8 __asm__("r8") = a4;
	register uint64_t r9 __asm__("r9") = a5;
	int64_t result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

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
		status->pid = (int32_t)system_call(__NR_getpid, 0, 0, 0, 0, 0, 0);
		status->result = result;
		for (; label && label[i] && i < RESTORER_LABEL - 1; i++)
			*(volatile char *)&status->label[i] = label[i];
		*(volatile char *)&status->label[i] = 0;
		__atomic_store_n(&status->written, 1, __ATOMIC_RELEASE);
	}
	for (;;)
		system_call(__NR_exit_group, 1, 0, 0, 0, 0, 0);
}

/*
 * Timer numbers can be asked for since Linux 6.15; before, the kernel hands
 * them out upwards from 0, so that the wanted one comes in its turn.
 */
RESTORER __attribute__((noinline))
static int64_t create_timer(uint64_t clock, uint64_t event, int32_t wanted)
{
	int32_t id = wanted;
	int64_t result, asked;

	asked = system_call(__NR_prctl, PR_TIMER_CREATE_RESTORE_IDS, 1, 0, 0, 0, 0);
	if (!asked) {
		result = system_call(__NR_timer_create, clock, event, (uint64_t)&id, 0, 0, 0);
		system_call(__NR_prctl, PR_TIMER_CREATE_RESTORE_IDS, 0, 0, 0, 0, 0);
		return is_error(result) ? result : id;
	}
	for (;;) {
		result = system_call(__NR_timer_create, clock, event, (uint64_t)&id, 0, 0, 0);
		if (is_error(result))
			return result;
		if (id >= wanted)
			return id;
		system_call(__NR_timer_delete, id, 0, 0, 0, 0, 0);
	}
}

/* The child finds its script on top of its stack. */
RESTORER __attribute__((noinline))
static int64_t clone_thread(int64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	int64_t result;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rdi\n\t"
			 "call restorer_run\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(result)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2)
			 : "rcx", "r11", "memory");
	return result;
}

/* The floating-point registers are loaded last: nothing may come between. */
RESTORER __attribute__((noinline))
static int64_t enter(uint64_t job, uint64_t request, uint64_t xsave)
{
	int64_t result;

	__asm__ volatile("mov $-1, %%eax\n\t"
			 "mov $-1, %%edx\n\t"
			 "xrstor64 (%[xsave])\n\t"
			 "mov %[nr], %%eax\n\t"
			 "mov %[request], %%rdx\n\t"
			 "syscall"
			 : "=&a"(result)
			 : [xsave] "r"(xsave), [nr] "i"(__NR_ioctl), [request] "r"(request),
			   "D"(job), "S"((uint64_t)KCR_IOC_ENTER)
			 : "rcx", "rdx", "r11", "memory");
	return result;
}

RESTORER __attribute__((noinline))
static int64_t execute(const struct restorer_op *op)
{
	const uint64_t *a = op->arg;

	if (op->kind == RESTORER_CALL)
		return system_call(op->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (op->kind == RESTORER_TIMER)
		return create_timer(a[0], a[1], (int32_t)a[2]);
	if (op->kind == RESTORER_CLONE)
		return clone_thread(op->nr, a[0], a[1], a[2]);
	if (op->kind == RESTORER_ENTER)
		return enter(a[0], a[1], a[2]);
	if (op->kind == RESTORER_COPY) {
		uint64_t to = a[0], from = a[1], length = a[2];

		__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
	}
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
	}
	fail(script, op, 0);
}
