// SPDX-License-Identifier: GPL-2.0
/*
 * Where a stopped thread sleeps.  A group stop is always in get_signal().  A debugger can also
 * stop a thread inside a system call, at its beginning, where it forks, or as it exits, and can
 * change all of its registers and whether it stops at calls: only its kernel stack tells the
 * truth.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat/task.h"
#include "lookup.h"
#include "stop.h"

#define MAX_FRAMES	24

/* The compiler may have split it: "get_signal.part.0". */
static bool is_in(unsigned long return_address, const char *function)
{
	size_t length = strlen(function);
	char name[64];

	snprintf(name, sizeof(name), "%ps", (void *)(return_address - 1));
	return !strncmp(name, function, length) && (!name[length] || name[length] == '.');
}

/* A thread that a signal kills exits from get_signal(). */
static bool sleeps_in_get_signal(struct task_struct *task)
{
	unsigned long frames[MAX_FRAMES];
	unsigned int i, count;

	if (IS_ENABLED(CONFIG_UNWINDER_GUESS))	/* it finds what earlier calls have left behind */
		return false;
	count = kcr_stack_trace(task, frames, MAX_FRAMES);
	for (i = 0; i < count && !is_in(frames[i], "do_exit"); i++)
		if (is_in(frames[i], "get_signal"))
			return true;
	return false;
}

static unsigned long switches(const struct task_struct *task)
{
	return READ_ONCE(task->nvcsw) + READ_ONCE(task->nivcsw);
}

bool kcr_task_stopped_at_signals(struct task_struct *task)
{
	unsigned long before = switches(task);

	if (!kcr_task_is_stopped(task) || kcr_task_on_cpu(task))
		return false;
	if (task_is_stopped(task))
		return true;
	/* In another stop it would have been switched out once more. */
	smp_rmb();	/* the stop before its stack */
	if (!sleeps_in_get_signal(task))
		return false;
	smp_rmb();	/* its stack before the stop */
	return kcr_task_is_stopped(task) && !kcr_task_on_cpu(task) && switches(task) == before;
}
