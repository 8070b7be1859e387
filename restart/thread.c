// SPDX-License-Identifier: GPL-2.0
/*
 * Signal stack, robust futexes, thread-local storage, restartable sequences,
 * and the entry into the module.  The XSAVE area is loaded in user mode, by
 * XRSTOR: it faults on anything the processor does not know, so that is
 * refused here.  See thread.h.
 */
#include "restart/thread.h"

#include <cpuid.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <asm/prctl.h>

#include "rebuild/blob.h"
#include "report/report.h"

#define FS_BASE		21		/* in struct user_regs_struct */
#define GS_BASE		22
#define RSEQ_OLD_LENGTH	32		/* the only one before Linux 6.3 */
#define ROBUST_LENGTH	24		/* of a struct robust_list_head */

/* The XSAVE area (Intel SDM volume 1, 13.4). */
#define XSAVE_MXCSR		24
#define XSAVE_MXCSR_MASK	28
#define XSAVE_LEGACY		512
#define XSAVE_HEADER		64
#define XSAVE_BV		512
#define XSAVE_ALIGN		64
#define MXCSR_DEFAULT_MASK	0xffbfu

static uint64_t enabled_features(void)
{
	uint32_t low, high, a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* Bytes that XRSTOR may read here. */
static uint32_t area_size(void)
{
	uint32_t a, b = 0, c, d;

	__get_cpuid_count(0xd, 0, &a, &b, &c, &d);
	return b;
}

static uint64_t used_features(const Kcr__Thread *t)
{
	uint64_t used;

	memcpy(&used, t->xstate.data + XSAVE_BV, sizeof(used));
	return used;
}

int thread_check(const Kcr__Thread *t)
{
	uint64_t missing;

	if (t->xstate.len < XSAVE_LEGACY + XSAVE_HEADER || t->n_reg != KCR_NR_REGS)
		return report_fail(-EINVAL, "thread %d: the context file lacks its registers",
				   t->tid);
	missing = used_features(t) & ~enabled_features();
	if (missing)
		return report_fail(-EOPNOTSUPP, "thread %d uses processor features (XSAVE "
				   "components %" PRIx64 ") that this machine does not have",
				   t->tid, missing);
	if (t->xstate.len > XSAVE_LEGACY + XSAVE_HEADER && t->xstate.len > area_size() &&
	    used_features(t) > 3)
		return report_fail(-EOPNOTSUPP, "thread %d: its floating-point state (%zu bytes) "
				   "has another layout than this processor's (%u bytes)", t->tid,
				   t->xstate.len, area_size());
	return 0;
}

/* Clears what XRSTOR would fault on and the kernel never sets. */
static void sanitize(uint8_t *area, uint32_t mxcsr_mask)
{
	uint32_t mxcsr;

	memcpy(&mxcsr, area + XSAVE_MXCSR, sizeof(mxcsr));
	mxcsr &= mxcsr_mask;
	memcpy(area + XSAVE_MXCSR, &mxcsr, sizeof(mxcsr));
	memset(area + XSAVE_BV + 8, 0, XSAVE_HEADER - 8);
}

static uint32_t own_mxcsr_mask(void)
{
	uint8_t area[XSAVE_LEGACY] __attribute__((aligned(16))) = { 0 };
	uint32_t mask;

	__asm__ volatile("fxsave (%0)" : : "r"(area) : "memory");
	memcpy(&mask, area + XSAVE_MXCSR_MASK, sizeof(mask));
	return mask ? mask : MXCSR_DEFAULT_MASK;
}

static uint64_t put_xstate(const Kcr__Thread *t, struct blob *blob)
{
	uint32_t size = area_size();
	size_t length = t->xstate.len < size ? t->xstate.len : size;
	uint64_t at = blob_reserve(blob, size, XSAVE_ALIGN);

	if (!at)
		return 0;
	memcpy((void *)(uintptr_t)at, t->xstate.data, length);
	sanitize((uint8_t *)(uintptr_t)at, own_mxcsr_mask());
	return at;
}

static void script_own(const Kcr__Thread *t, struct script *s)
{
	stack_t altstack = {
		.ss_sp = (void *)(uintptr_t)t->altstack_sp,
		.ss_size = t->altstack_size,
		.ss_flags = t->altstack_size ? (int)t->altstack_flags : SS_DISABLE,
	};

	script_call(s, "sigaltstack", SYS_sigaltstack, script_data(s, &altstack, sizeof(altstack)),
		    0, 0, 0, 0, 0);
	script_call(s, "set_robust_list", SYS_set_robust_list, t->robust_list, ROBUST_LENGTH,
		    0, 0, 0, 0);
	script_call(s, "set_tid_address", SYS_set_tid_address, t->clear_child_tid, 0, 0, 0, 0, 0);
	script_call(s, "arch_prctl(ARCH_SET_FS)", SYS_arch_prctl, ARCH_SET_FS, t->reg[FS_BASE],
		    0, 0, 0, 0);
	script_call(s, "arch_prctl(ARCH_SET_GS)", SYS_arch_prctl, ARCH_SET_GS, t->reg[GS_BASE],
		    0, 0, 0, 0);
	if (!t->rseq)
		return;
	/* A newer C library may have registered more than this kernel knows. */
	if (t->rseq_len != RSEQ_OLD_LENGTH)
		script_call_try(s, "rseq", SYS_rseq, t->rseq, t->rseq_len, 0, t->rseq_sig, 0, 0);
	script_call_try(s, "rseq", SYS_rseq, t->rseq, RSEQ_OLD_LENGTH, 0, t->rseq_sig, 0, 0);
}

static void fill_request(struct kcr_enter *enter, const Kcr__Thread *t,
			 const struct thread_exit *how, const struct blob *blob)
{
	memset(enter, 0, sizeof(*enter));
	enter->size = sizeof(*enter);
	enter->flags = how->stopped ? KCR_ENTER_STOPPED : 0;
	if (t->has_held && t->held && !how->stopped)
		enter->flags |= KCR_ENTER_HELD;
	if (how->leaderless)
		enter->flags |= KCR_ENTER_LEADERLESS;
	enter->stop_signal = how->stopped ? how->stop_signal : 0;
	enter->exe_fd = how->leader ? how->exe_fd : -1;
	enter->job_fd = how->leader && how->close_job ? how->job : -1;
	enter->nr_threads = how->nr_threads;
	enter->dumpable = how->dumpable;
	if (how->leader && how->unmap) {
		enter->unmap_start = blob->base;
		enter->unmap_len = blob->length;
	}
	for (size_t i = 0; i < KCR_NR_REGS; i++)
		enter->regs[i] = t->reg[i];
	enter->sigmask = t->sigmask;
	if (!t->restart)
		return;
	enter->restart.kind = t->restart->kind;
	for (size_t i = 0; i < 4 && i < t->restart->n_data; i++)
		enter->restart.data[i] = t->restart->data[i];
}

int thread_script(const Kcr__Thread *t, const struct thread_exit *how, struct blob *blob,
		  struct script *s)
{
	uint64_t xstate = put_xstate(t, blob);
	struct kcr_enter enter;

	script_own(t, s);
	fill_request(&enter, t, how, blob);
	script_enter(s, "entering the saved state", how->job,
		     script_data(s, &enter, sizeof(enter)), xstate);
	return blob->error;
}

/* Its end touches no memory: what it would wake or mark there was so long ago. */
void thread_script_end(uint32_t exit_code, struct script *s)
{
	script_call(s, "set_robust_list", SYS_set_robust_list, 0, ROBUST_LENGTH, 0, 0, 0, 0);
	script_call(s, "set_tid_address", SYS_set_tid_address, 0, 0, 0, 0, 0, 0);
	script_call(s, "exit", SYS_exit, exit_code >> 8, 0, 0, 0, 0, 0);
}

uint64_t thread_script_size(const Kcr__Thread *t)
{
	uint64_t size = area_size() + XSAVE_ALIGN + sizeof(struct kcr_enter);

	for (size_t i = 0; i < t->n_pending; i++)
		size += t->pending[i].len + sizeof(struct restorer_op) + 64;
	/* Operations of this file and of the attributes, with data and labels. */
	return size + 64 * (sizeof(struct restorer_op) + 64);
}
