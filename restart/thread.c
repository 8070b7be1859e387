// SPDX-License-Identifier: GPL-2.0
/*
 * Signal stack, robust futexes, thread-local storage, restartable sequences,
 * and the entry into the module.  The xstate is loaded in user mode, which faults
 * on anything that the processor does not support: that is refused here.  See
 * thread.h.
 */
#include "restart/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "arch/thread.h"
#include "arch/xstate.h"
#include "rebuild/blob.h"
#include "report/report.h"

#define RSEQ_OLD_LENGTH	32		/* the only one before Linux 6.3 */
#define ROBUST_LENGTH	24		/* of a struct robust_list_head */
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#define PR_SYS_DISPATCH_OFF	0
#endif

/* OFF, as here for cr_restart itself, changes nothing. */
static int check_dispatch(const Kcr__Thread *t)
{
	if (!t->dispatch || !prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0))
		return 0;
	return report_fail(-EOPNOTSUPP, "thread %d uses PR_SET_SYSCALL_USER_DISPATCH, which this kernel "
			   "lacks: restart it under Linux 5.11 or later", t->tid);
}

/* How the states of the image are laid out, or NULL: an older one does not say. */
static const struct arch_xstate_layout *saved_layout(const Kcr__Preamble *preamble,
						     struct arch_xstate_layout *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < preamble->n_xstate_part; i++) {
		const Kcr__XstatePart *part = preamble->xstate_part[i];

		out->part[part->bit] = (struct arch_xstate_part){ part->offset, part->length };
	}
	return preamble->n_xstate_part ? out : NULL;
}

int thread_check(const Kcr__Thread *t, const Kcr__Preamble *preamble)
{
	struct arch_xstate_layout layout;
	uint64_t missing;

	if (!arch_xstate_has_length(t->xstate.len) || t->n_reg != KCR_NR_REGS)
		return report_fail(-EINVAL, "thread %d: the context file lacks its registers",
				   t->tid);
	missing = arch_xstate_features(t->xstate.data, t->xstate.len) & ~arch_xstate_enabled();
	if (missing)
		return report_fail(-EOPNOTSUPP, "thread %d uses processor features (XSAVE "
				   "components %" PRIx64 ") that this machine does not have",
				   t->tid, missing);
	if (!arch_xstate_has_layout(t->xstate.data, t->xstate.len, saved_layout(preamble, &layout)))
		return report_fail(-EOPNOTSUPP, "thread %d: its floating-point state (%zu bytes) "
				   "may have another layout than this processor's (%u bytes): restart "
				   "it on a machine with the same kind of processor", t->tid,
				   t->xstate.len, arch_xstate_size());
	/* The C library would take the processor's number from it for ever. */
	if (t->rseq && syscall(SYS_rseq, NULL, 0, 0, 0) && errno == ENOSYS)
		return report_fail(-EOPNOTSUPP, "thread %d uses restartable sequences, which this "
				   "kernel does not have (CONFIG_RSEQ)", t->tid);
	return check_dispatch(t);
}

static uint64_t put_xstate(const Kcr__Thread *t, const Kcr__Preamble *preamble, struct blob *blob)
{
	struct arch_xstate_layout layout;
	uint64_t at = blob_reserve(blob, arch_xstate_size(), ARCH_XSTATE_ALIGN);

	if (at)
		arch_xstate_put((void *)(uintptr_t)at, t->xstate.data, t->xstate.len,
				saved_layout(preamble, &layout));
	return at;
}

static void script_own(const Kcr__Thread *t, struct script *s)
{
	stack_t altstack = {
		.ss_sp = (void *)(uintptr_t)t->altstack_sp,
		.ss_size = t->altstack_size,
		.ss_flags = t->altstack_size ? (int)t->altstack_flags : SS_DISABLE,
	};
	struct arch_tls_call tls[ARCH_NR_TLS_CALLS];

	script_call(s, "sigaltstack", SYS_sigaltstack, script_data(s, &altstack, sizeof(altstack)),
		    0, 0, 0, 0, 0);
	script_call(s, "set_robust_list", SYS_set_robust_list, t->robust_list, ROBUST_LENGTH,
		    0, 0, 0, 0);
	script_call(s, "set_tid_address", SYS_set_tid_address, t->clear_child_tid, 0, 0, 0, 0, 0);
	arch_tls_calls(t->reg, tls);
	for (size_t i = 0; i < ARCH_NR_TLS_CALLS; i++)
		script_call(s, tls[i].label, tls[i].nr, tls[i].argument[0], tls[i].argument[1],
			    0, 0, 0, 0);
	if (!t->rseq)
		return;
	/* A newer C library may have registered more than this kernel supports. */
	if (t->rseq_len != RSEQ_OLD_LENGTH)
		script_call_or_next(s, "rseq", SYS_rseq, t->rseq, t->rseq_len, 0, t->rseq_sig, 0, 0);
	script_call(s, "rseq", SYS_rseq, t->rseq, RSEQ_OLD_LENGTH, 0, t->rseq_sig, 0, 0);
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
	if (t->dispatch) {
		enter->dispatch.on = 1;
		enter->dispatch.selector = t->dispatch->selector;
		enter->dispatch.offset = t->dispatch->offset;
		enter->dispatch.length = t->dispatch->length;
	}
	enter->restart.interrupt = t->interrupt;
	if (!t->restart)
		return;
	enter->restart.kind = t->restart->kind;
	for (size_t i = 0; i < 4 && i < t->restart->n_data; i++)
		enter->restart.data[i] = t->restart->data[i];
}

int thread_script(const Kcr__Thread *t, const struct thread_exit *how, struct blob *blob,
		  struct script *s)
{
	uint64_t xstate = put_xstate(t, how->preamble, blob);
	struct kcr_enter enter;

	script_own(t, s);
	fill_request(&enter, t, how, blob);
	script_enter(s, "entering the saved state", how->job,
		     script_data(s, &enter, sizeof(enter)), xstate);
	return blob->error;
}

/* Its exit must not touch memory: robust list and TID word were handled when it exited. */
void thread_script_end(uint32_t exit_code, struct script *s)
{
	script_call(s, "set_robust_list", SYS_set_robust_list, 0, ROBUST_LENGTH, 0, 0, 0, 0);
	script_call(s, "set_tid_address", SYS_set_tid_address, 0, 0, 0, 0, 0, 0);
	script_call(s, "exit", SYS_exit, exit_code >> 8, 0, 0, 0, 0, 0);
}

uint64_t thread_script_size(const Kcr__Thread *t)
{
	uint64_t size = arch_xstate_size() + ARCH_XSTATE_ALIGN + sizeof(struct kcr_enter);

	for (size_t i = 0; i < t->n_pending; i++)
		size += t->pending[i].len + sizeof(struct restorer_op) + 64;
	if (t->credentials)
		size += t->credentials->n_group * sizeof(*t->credentials->group);
	/* Operations of this file and the attributes, with data and labels. */
	return size + 64 * (sizeof(struct restorer_op) + 64);
}
