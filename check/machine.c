// SPDX-License-Identifier: GPL-2.0
/* The module and the kernel; see check.h.  Reasons and advice are those of device/. */
#include "check/check.h"

#include <errno.h>
#include <linux/kcr.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arch/xstate.h"
#include "device/device.h"
#include "device/refused.h"
#include "proc/proc.h"

/* Opens a job for a moment.  0 or -errno with a message. */
static int ask_module(struct kcr_info *info)
{
	int job = device_open(info);

	if (job < 0)
		return job;
	close(job);
	return 0;
}

void check_module(struct check_answer *answer)
{
	struct kcr_info info;
	int err = ask_module(&info);

	if (err)
		check_failed(answer, err);
	else
		check_answer(answer, CHECK_OK, "", "the module kcr is loaded, its interface is version "
			     "%u as that of the tools, and you may use it", info.abi);
}

void check_features(struct check_answer *answer)
{
	struct kcr_info info;
	int err = ask_module(&info);

	if (err) {
		check_failed(answer, err);
		return;
	}
	if (!(info.features & KCR_FEATURE_CLONE))
		check_answer(answer, CHECK_FAILED, "use cr_restart --no-restore-pid",
			     "no process can get its old PID back on this kernel");
	else if (refused_all_ids() && geteuid())
		check_answer(answer, CHECK_NOTE, "use cr_restart --no-restore-pid (cr_batch does it by "
			     "itself), or ask the administrator for restore_ids=1", "processes get new "
			     "IDs at a restart: the module's parameter restore_ids forbids the old ones");
	else if (!(info.features & KCR_FEATURE_SNAPSHOT))
		check_answer(answer, CHECK_NOTE, "", "no --snapshot on this kernel: a program stands "
			     "still until all is written");
	else
		check_answer(answer, CHECK_OK, "", "old process IDs and --snapshot work; %u bytes of "
			     "processor state for each thread", info.xstate_size);
}

void check_processor(struct check_answer *answer)
{
	char names[256];

	check_answer(answer, CHECK_OK, "", "programs may use %s here (%u bytes of state): a machine "
		     "that restarts one must have those that it has used",
		     arch_xstate_names(arch_xstate_enabled(), names, sizeof(names)),
		     arch_xstate_size());
}

void check_tracing(struct check_answer *answer)
{
	char scope[8];
	int level = proc_read(PROC_ROOT, "sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) > 0 ?
		    atoi(scope) : 0;

	if (level >= 2 && geteuid())
		check_answer(answer, CHECK_FAILED, "ask the administrator for kernel.yama.ptrace_scope=1 "
			     "or 0", "kernel.yama.ptrace_scope is %d: only root may save programs",
			     level);
	else if (level == 1 && geteuid())
		check_answer(answer, CHECK_NOTE, "start programs that are to be saved under cr_batch or "
			     "cr_mpirun", "kernel.yama.ptrace_scope is 1: a program can only be saved by "
			     "its ancestors");
	else
		check_answer(answer, CHECK_OK, "", "any program of your own can be saved "
			     "(kernel.yama.ptrace_scope is %d)", level);
}
