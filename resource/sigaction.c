// SPDX-License-Identifier: GPL-2.0
/*
 * Signal actions of a process.  The module reads them (checkpoint/describe.c
 * stores them); the leader sets them once its memory is in place, in the
 * kernel's layout, not the C library's.
 */
#include "resource/attribute.h"

#include <signal.h>
#include <sys/syscall.h>

#include "rebuild/script.h"
#include "report/report.h"

struct kernel_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

static int sigaction_script(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	(void)r;
	for (size_t i = 0; i < p->n_action; i++) {
		const Kcr__SigAction *a = p->action[i];
		struct kernel_sigaction action = {
			a->handler, a->flags, a->restorer, a->mask,
		};
		int signal = i + 1;

		if (signal == SIGKILL || signal == SIGSTOP)
			continue;
		script_call(s, "rt_sigaction", SYS_rt_sigaction, signal,
			    script_data(s, &action, sizeof(action)), 0, sizeof(action.mask), 0, 0);
	}
	return 0;
}

const struct attribute attribute_sigaction = {
	.name = "signal actions",
	.script = sigaction_script,
};
