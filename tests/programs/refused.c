// SPDX-License-Identifier: GPL-2.0
/*
 * Has what no checkpoint can take along: the argument is `seccomp` (a filter), or
 * `files` (a thread with descriptors of its own).
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static void *part(void *unused)
{
	NEED(!unshare(CLONE_FILES));
	check_ready();
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &all };

	check_begin(argc, argv);
	NEED(argc > 3);
	if (!strcmp(argv[3], "seccomp")) {
		NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		NEED(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
	} else {
		pthread_t thread;

		NEED(!pthread_create(&thread, NULL, part, NULL));
		check_wait();
		return check_end();
	}
	check_ready();
	check_wait();
	return check_end();
}
