// SPDX-License-Identifier: GPL-2.0
/*
 * reborn READY GO PID: a child with that PID, which ends at once, again and again.
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	pid_t wanted = argc > 3 ? atoi(argv[3]) : 0, child;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&wanted,
		.set_tid_size = 1,
	};

	check_begin(argc, argv);
	check_ready();
	for (;;) {
		child = syscall(SYS_clone3, &args, sizeof(args));
		NEED(child >= 0);
		if (!child)
			_exit(0);
		NEED(waitpid(child, NULL, 0) == child);
	}
}
