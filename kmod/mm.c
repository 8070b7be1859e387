// SPDX-License-Identifier: GPL-2.0
/*
 * The layout of a process's address space: the addresses of code, data, heap,
 * stack, arguments and vdso, its auxiliary vector and protection keys (KCR_IOC_MM).
 * The process is stopped; mmap_lock and arg_lock guard the fields against
 * changes by others through /proc.
 * See vma.c for the mappings, scan.c and pages.c for their contents.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/string.h>

#include "arch/x86/keys.h"
#include "compat/mm.h"
#include "ioctl.h"
#include "job.h"

static void describe(struct mm_struct *mm, struct kcr_mm *out)
{
	BUILD_BUG_ON(sizeof(mm->saved_auxv) > sizeof(out->auxv));

	out->nr_vmas = mm->map_count;
	spin_lock(&mm->arg_lock);
	out->start_code = mm->start_code;
	out->end_code = mm->end_code;
	out->start_data = mm->start_data;
	out->end_data = mm->end_data;
	out->start_brk = mm->start_brk;
	out->brk = mm->brk;
	out->start_stack = mm->start_stack;
	out->arg_start = mm->arg_start;
	out->arg_end = mm->arg_end;
	out->env_start = mm->env_start;
	out->env_end = mm->env_end;
	spin_unlock(&mm->arg_lock);
	out->vdso = (unsigned long)mm->context.vdso;
	kcr_mm_keys(mm, &out->keys, &out->execute_key);
	memset(out->auxv, 0, sizeof(out->auxv));
	memcpy(out->auxv, mm->saved_auxv, sizeof(mm->saved_auxv));
}

long kcr_ioc_mm(struct kcr_job *job, void *request)
{
	struct kcr_mm *out = request;
	struct mm_struct *mm = kcr_job_mm(job, out->pid, false);
	int err;

	if (IS_ERR(mm))
		return PTR_ERR(mm);
	err = mmap_read_lock_killable(mm);
	if (!err) {
		describe(mm, out);
		mmap_read_unlock(mm);
	}
	mmput(mm);
	return err;
}
