// SPDX-License-Identifier: GPL-2.0
/*
 * What every signal does: handler, flags and mask, as the kernel tells it; and a
 * handler that is called.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "check.h"

struct raw { uint64_t handler, flags, restorer, mask; };

static volatile int called;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	called = signal * 1000 + (info->si_pid == getpid());
}

int main(int argc, char **argv)
{
	struct raw before[65] = { 0 }, after;

	check_begin(argc, argv);
	for (int signal = 1; signal < 65; signal++) {
		struct sigaction action = { .sa_flags = SA_SIGINFO | (signal % 2 ? SA_RESTART : 0) };

		sigemptyset(&action.sa_mask);
		sigaddset(&action.sa_mask, signal / 2 + 1);
		if (signal % 3 == 0)
			action.sa_sigaction = on_signal;
		else
			action.sa_handler = signal % 3 == 1 ? SIG_IGN : SIG_DFL;
		sigaction(signal, &action, NULL);
		NEED(!syscall(SYS_rt_sigaction, signal, NULL, &before[signal], 8));
	}
	check_ready();
	check_wait();
	for (int signal = 1; signal < 65; signal++) {
		CHECK(!syscall(SYS_rt_sigaction, signal, NULL, &after, 8));
		CHECK(!memcmp(&before[signal], &after, sizeof(after)));
	}
	raise(SIGUSR2);
	CHECK(called == SIGUSR2 * 1000 + 1);
	raise(SIGUSR1);		/* 10: ignored */
	return check_end();
}
