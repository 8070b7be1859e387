// SPDX-License-Identifier: GPL-2.0
/*
 * A child that leaves no zombie (`reaped`: CLONE_AUTOREAP), or one that is killed as well when
 * the descriptor of it is closed (`killed`: CLONE_PIDFD_AUTOKILL).
 */
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#ifndef CLONE_AUTOREAP		/* Linux 7.1 */
#define CLONE_AUTOREAP		(1ULL << 34)
#endif
#ifndef CLONE_PIDFD_AUTOKILL
#define CLONE_PIDFD_AUTOKILL	(1ULL << 36)
#endif
#ifndef CLONE_NNP
#define CLONE_NNP		(1ULL << 35)
#endif

static pid_t make_child(uint64_t flags, int *pidfd)
{
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD, .pidfd = (uintptr_t)pidfd,
	};
	pid_t child = syscall(SYS_clone3, &args, sizeof(args));

	if (child < 0 && errno == EINVAL)
		check_skip("this kernel has no such clone3");
	NEED(child >= 0);
	while (!child)
		pause();
	return child;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 20000) == 1;
}

static void reaped(void)
{
	int pidfd;
	pid_t child = make_child(CLONE_AUTOREAP, &pidfd);

	checkpoint_here();
	CHECK(!kill(child, SIGKILL) && has_ended(pidfd));
	CHECK(waitpid(child, NULL, __WALL) < 0 && errno == ECHILD);
}

static void killed(void)
{
	int pidfd, other;
	pid_t child = make_child(CLONE_AUTOREAP | CLONE_PIDFD_AUTOKILL | CLONE_NNP, &pidfd);

	other = syscall(SYS_pidfd_open, child, 0);
	NEED(other >= 0);
	checkpoint_here();
	CHECK(!close(pidfd) && has_ended(other));
}

static const struct check checks[] = {
	{ "reaped", reaped },
	{ "killed", killed },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
