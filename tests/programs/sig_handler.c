// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint while a handler runs that has interrupted another one, and a long
 * jump out of both afterwards.
 */
#include <setjmp.h>
#include <signal.h>

#include "check.h"

static sigjmp_buf back;
static volatile int depth;

static void inner(int signal)
{
	(void)signal;
	depth++;
	check_ready();
	check_wait();
	CHECK(depth == 2);
	siglongjmp(back, 7);
}

static void outer(int signal)
{
	(void)signal;
	depth++;
	raise(SIGUSR2);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = outer };
	sigset_t now;

	check_begin(argc, argv);
	NEED(!sigaction(SIGUSR1, &action, NULL));
	action.sa_handler = inner;
	NEED(!sigaction(SIGUSR2, &action, NULL));
	switch (sigsetjmp(back, 1)) {
	case 0:
		raise(SIGUSR1);
		CHECK(!"came back");
		break;
	case 7:
		break;
	default:
		CHECK(!"wrong value");
	}
	sigprocmask(SIG_SETMASK, NULL, &now);
	CHECK(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
	return check_end();
}
