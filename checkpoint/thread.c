// SPDX-License-Identifier: GPL-2.0
/* The threads of a stopped process: registers, xstate, and what each has of its own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "arch/registers.h"
#include "arch/xstate.h"
#include "checkpoint/internal.h"
#include "device/device.h"
#include "report/report.h"

/* What prctl(2) has set for it. */
static void thread_settings(const struct kcr_thread *from, Kcr__Thread *t)
{
	t->has_tsc = from->flags & KCR_THREAD_NO_TSC;
	t->tsc = PR_TSC_SIGSEGV;
	t->has_mce_kill = from->flags & (KCR_THREAD_MCE_EARLY | KCR_THREAD_MCE_LATE);
	t->mce_kill = from->flags & KCR_THREAD_MCE_EARLY ? PR_MCE_KILL_EARLY : PR_MCE_KILL_LATE;
	t->has_io_flusher = t->io_flusher = from->flags & KCR_THREAD_IO_FLUSHER;
}

static int thread_state(const struct kcr_thread *from, Kcr__Thread *t)
{
	t->tid = from->tid;
	t->sigmask = from->sigmask;
	t->has_held = t->held = from->flags & KCR_THREAD_HELD;
	thread_settings(from, t);
	t->has_altstack_sp = t->has_altstack_size = t->has_altstack_flags = true;
	t->altstack_sp = from->altstack_sp;
	t->altstack_size = from->altstack_size;
	t->altstack_flags = from->altstack_flags;
	t->has_robust_list = t->has_clear_child_tid = true;
	t->robust_list = from->robust_list;
	t->clear_child_tid = from->clear_child_tid;
	t->has_rseq = t->has_rseq_len = t->has_rseq_sig = from->rseq != 0;
	t->rseq = from->rseq;
	t->rseq_len = from->rseq_len;
	t->rseq_sig = from->rseq_sig;
	t->has_pdeath_signal = t->has_securebits = true;
	t->pdeath_signal = from->pdeath_signal;
	t->securebits = from->securebits;
	t->reg = malloc(KCR_NR_REGS * sizeof(*t->reg));
	t->xstate.data = malloc(from->xstate_size);
	if (!t->reg || !t->xstate.data)
		return -ENOMEM;
	t->n_reg = KCR_NR_REGS;
	for (int i = 0; i < KCR_NR_REGS; i++)
		t->reg[i] = from->regs[i];
	t->xstate.len = from->xstate_size;
	memcpy(t->xstate.data, from + 1, from->xstate_size);
	return 0;
}

static int thread_restart(const struct kcr_restart_block *from, Kcr__Thread *t)
{
	const size_t n = sizeof(from->data) / sizeof(*from->data);

	t->has_interrupt = from->interrupt != KCR_INTERRUPT_NEVER;
	t->interrupt = from->interrupt;
	if (from->kind == KCR_RESTART_NONE)
		return 0;
	t->restart = malloc(sizeof(*t->restart));
	if (!t->restart)
		return -ENOMEM;
	kcr__restart_block__init(t->restart);
	t->restart->kind = from->kind;
	t->restart->data = malloc(n * sizeof(*t->restart->data));
	if (!t->restart->data)
		return -ENOMEM;
	t->restart->n_data = n;
	for (size_t i = 0; i < n; i++)
		t->restart->data[i] = from->data[i];
	return 0;
}

/* What no system call of a restart can bring back. */
static int refuse_thread(const struct kcr_thread *from, const Kcr__Thread *t, bool skip)
{
	if (arch_xstate_locks_memory(t->xstate.data, t->xstate.len))
		return report_fail(-EOPNOTSUPP, "thread %d may not use memory without a protection "
				   "key (pkey_set of key 0), which a restart needs", t->tid);
	if (from->flags & KCR_THREAD_IO_PORTS)
		return report_fail(-EOPNOTSUPP, "thread %d may use I/O ports (ioperm, iopl), which "
				   "cannot be saved", t->tid);
	if (from->flags & KCR_THREAD_SEGMENTS)
		return report_fail(-EOPNOTSUPP, "thread %d has segments of its own (modify_ldt, "
				   "set_thread_area), which cannot be saved", t->tid);
	if (arch_is_32bit(t->reg))
		return report_fail(-EOPNOTSUPP, "thread %d runs 32-bit code, which cannot be "
				   "checkpointed", t->tid);
	if (!(from->flags & KCR_THREAD_LANDLOCK))
		return 0;
	if (!skip)
		return report_fail(-EOPNOTSUPP, "thread %d is restricted by Landlock, whose rules the "
				   "kernel does not tell (--skip-unsupported saves it without them)",
				   t->tid);
	report_warn("thread %d is restricted by Landlock: after a restart it will not be", t->tid);
	return 0;
}

static int describe_thread(struct checkpoint *c, const struct process_probe *probe,
			   struct kcr_thread *from, Kcr__Process *p)
{
	Kcr__Thread *t = malloc(sizeof(*t));
	int err = 0;

	if (!t)
		return report_errno(-ENOMEM, "process %d", p->pid);
	kcr__thread__init(t);
	p->thread[p->n_thread++] = t;
	absolute_sleep_settle(&c->attempt.description, p, from);
	if (thread_state(from, t) || thread_restart(&from->restart, t))
		return report_errno(-ENOMEM, "process %d", p->pid);
	err = refuse_thread(from, t, c->options->skip_unsupported);
	if (err)
		return err;
	c->attempt.description.preamble.xfeatures |=
		arch_xstate_features(t->xstate.data, t->xstate.len);
	for (size_t i = 0; !err && attributes[i]; i++)
		if (attributes[i]->save_thread)
			err = attributes[i]->save_thread(probe, t);
	return err;
}

Kcr__Thread *describe_find_thread(const Kcr__Process *p, pid_t tid, size_t likely)
{
	if (likely < p->n_thread && p->thread[likely]->tid == tid)
		return p->thread[likely];
	for (size_t i = 0; i < p->n_thread; i++)
		if (p->thread[i]->tid == tid)
			return p->thread[i];
	return NULL;
}

int describe_threads(struct checkpoint *c, const struct process_probe *probe, Kcr__Process *p)
{
	void *records;
	size_t stride;
	int count = device_threads(c->attempt.job, p->pid, &c->attempt.info, &records, &stride);
	int err = 0;

	if (count < 0)
		return count;
	p->thread = calloc(count + 1, sizeof(*p->thread));
	if (!p->thread)
		err = report_errno(-ENOMEM, "process %d", p->pid);
	for (int i = 0; !err && i < count; i++)
		err = describe_thread(c, probe, (void *)((char *)records + i * stride), p);
	c->result->nr_threads += p->n_thread;
	free(records);
	return err;
}

/* A restart under another kernel can replace the functions of the vdso only while none is running. */
void describe_within_vdso(const Kcr__Process *p)
{
	for (size_t i = 0; p->mm && i < p->mm->n_vma; i++) {
		const Kcr__Vma *v = p->mm->vma[i];

		for (size_t k = 0; v->flags & KCR_VMA_VDSO && k < p->n_thread; k++)
			if (p->thread[k]->reg[ARCH_IP] - v->start < v->end - v->start)
				report_verbose("thread %d is within the vdso (clock_gettime and the like): "
					       "this image can be restarted under the same kernel only",
					       p->thread[k]->tid);
	}
}

int describe_xstate(Kcr__Preamble *preamble)
{
	Kcr__XstatePart *part = calloc(ARCH_XSTATE_BITS, sizeof(*part));
	struct arch_xstate_layout layout;

	preamble->xstate_part = calloc(ARCH_XSTATE_BITS, sizeof(*preamble->xstate_part));
	if (!part || !preamble->xstate_part) {
		free(part);
		return report_errno(-ENOMEM, "context file");
	}
	arch_xstate_layout(&layout);
	preamble->xstate_part[0] = part;
	for (uint32_t bit = 0; bit < ARCH_XSTATE_BITS; bit++) {
		if (!layout.part[bit].length)
			continue;
		kcr__xstate_part__init(part);
		part->bit = bit;
		part->offset = layout.part[bit].offset;
		part->length = layout.part[bit].length;
		preamble->xstate_part[preamble->n_xstate_part++] = part++;
	}
	if (!preamble->n_xstate_part)
		free(part);
	return 0;
}
