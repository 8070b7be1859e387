// SPDX-License-Identifier: GPL-2.0
/*
 * Signals: what they do, which are blocked, which wait.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

#include "check.h"

/* ---- actions ---- */

struct raw { uint64_t handler, flags, restorer, mask; };

static volatile int called;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	called = signal * 1000 + (info->si_pid == getpid());
}

/*
 * What every signal does: handler, flags and mask, as the kernel tells it; and a
 * handler that is called.
 */
static void sig_actions(void)
{
	struct raw before[65] = { 0 }, after;

	for (int signal = 1; signal < 65; signal++) {
		struct sigaction action = {
			.sa_flags = SA_SIGINFO | (signal % 2 ? SA_RESTART : 0),
		};

		sigemptyset(&action.sa_mask);
		sigaddset(&action.sa_mask, signal / 2 + 1);
		if (signal % 3 == 0)
			action.sa_sigaction = on_signal;
		else
			action.sa_handler = signal % 3 == 1 ? SIG_IGN : SIG_DFL;
		sigaction(signal, &action, NULL);
		NEED(!syscall(SYS_rt_sigaction, signal, NULL, &before[signal], 8));
	}
	checkpoint_here();
	for (int signal = 1; signal < 65; signal++) {
		CHECK(!syscall(SYS_rt_sigaction, signal, NULL, &after, 8));
		CHECK(!memcmp(&before[signal], &after, sizeof(after)));
	}
	raise(SIGUSR2);
	CHECK(called == SIGUSR2 * 1000 + 1);
	raise(SIGUSR1);		/* 10: ignored */
}

/* ---- altstack ---- */

static char stack[2][65536];
static char *volatile frame;

static void on_stack(int signal)
{
	char local = 42;

	(void)signal;
	frame = &local;
	if (check_ready_file) {
		check_ready();
		check_ready_file = NULL;
		check_wait();
	}
	CHECK(local == 42);
}

static void *with_stack(void *argument)
{
	stack_t set = { .ss_sp = stack[1], .ss_size = sizeof(stack[1]) }, now;

	NEED(!sigaltstack(&set, NULL));
	check_wait();
	CHECK(!sigaltstack(NULL, &now) && now.ss_sp == stack[1] && !now.ss_flags &&
	      now.ss_size == sizeof(stack[1]));
	return argument;
}

/*
 * A thread that is in a handler on its alternate stack, and one that has only set
 * one up; both keep it.
 */
static void sig_altstack(void)
{
	struct sigaction action = { .sa_handler = on_stack, .sa_flags = SA_ONSTACK };
	stack_t set = { .ss_sp = stack[0], .ss_size = sizeof(stack[0]) }, now;
	pthread_t thread;

	NEED(!sigaltstack(&set, NULL) && !sigaction(SIGUSR1, &action, NULL));
	NEED(!pthread_create(&thread, NULL, with_stack, NULL));
	check_sleep_ms(100);
	raise(SIGUSR1);
	CHECK(frame > stack[0] && frame < stack[0] + sizeof(stack[0]));
	CHECK(!sigaltstack(NULL, &now) && now.ss_sp == stack[0] && !now.ss_flags);
	frame = NULL;
	raise(SIGUSR1);
	CHECK(frame > stack[0] && frame < stack[0] + sizeof(stack[0]));
	CHECK(!pthread_join(thread, NULL));
}

/* ---- handler ---- */

static sigjmp_buf back;
static volatile int depth;

static void inner(int signal)
{
	(void)signal;
	depth++;
	checkpoint_here();
	CHECK(depth == 2);
	siglongjmp(back, 7);
}

static void outer(int signal)
{
	(void)signal;
	depth++;
	raise(SIGUSR2);
}

/*
 * A checkpoint while a handler runs that has interrupted another one, and a long
 * jump out of both afterwards.
 */
static void sig_handler(void)
{
	struct sigaction action = { .sa_handler = outer };
	sigset_t now;

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
}

/* ---- masks ---- */

static volatile int suspended, noted;

static void note_signal(int signal)
{
	noted = signal;
}

static void *suspend(void *argument)
{
	sigset_t mask, none, now;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGRTMAX);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigemptyset(&none);
	suspended = 1;
	CHECK(sigsuspend(&none) < 0 && errno == EINTR);
	CHECK(noted == SIGUSR1);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(!memcmp(&now, &mask, 8));
	return argument;
}

/* Blocked signals, different in each of two threads, and one of them in sigsuspend. */
static void sig_masks(void)
{
	struct sigaction action = { .sa_handler = note_signal };
	sigset_t mask, now;
	pthread_t thread;

	NEED(!sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, 40);
	NEED(!pthread_sigmask(SIG_SETMASK, &mask, NULL));
	NEED(!pthread_create(&thread, NULL, suspend, NULL));
	while (!suspended)
		check_sleep_ms(10);
	checkpoint_here();
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(!memcmp(&now, &mask, 8) && !noted);
	CHECK(!pthread_kill(thread, SIGUSR1) && !pthread_join(thread, NULL));
}

/* ---- pending ---- */

static volatile pid_t tid;

static int take(int signal, siginfo_t *info)
{
	const struct timespec now = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	memset(info, 0, sizeof(*info));
	/* the C library's own changes si_code */
	return syscall(SYS_rt_sigtimedwait, &set, info, &now, 8);
}

static void *take_own(void *argument)
{
	siginfo_t info;

	tid = syscall(SYS_gettid);
	check_wait();
	CHECK(take(SIGRTMIN + 1, &info) == SIGRTMIN + 1);
	CHECK(info.si_code == SI_QUEUE && info.si_value.sival_int == 50);
	CHECK(take(SIGUSR2, &info) == SIGUSR2);
	CHECK(info.si_code == SI_TKILL && info.si_pid == getpid());
	CHECK(take(SIGUSR2, &info) < 0 && errno == EAGAIN);
	return argument;
}

/*
 * Blocked signals that wait: of the process and of a thread, ordinary ones and a
 * queue of real-time ones with values, in order, with what their siginfo says.
 */
static void sig_pending(void)
{
	union sigval value;
	siginfo_t info;
	pthread_t thread;
	sigset_t all;

	sigfillset(&all);
	NEED(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	NEED(!pthread_create(&thread, NULL, take_own, NULL));
	while (!tid)
		check_sleep_ms(10);
	for (int i = 0; i < 5; i++) {
		value.sival_ptr = (void *)(0x100000000ul + i);
		NEED(!sigqueue(getpid(), SIGRTMIN + 5, value));
	}
	NEED(!kill(getpid(), SIGTERM) && !kill(getpid(), SIGTERM));
	value.sival_int = 50;
	NEED(!pthread_sigqueue(thread, SIGRTMIN + 1, value) && !pthread_kill(thread, SIGUSR2));
	checkpoint_here();
	for (int i = 0; i < 5; i++) {
		CHECK(take(SIGRTMIN + 5, &info) == SIGRTMIN + 5 && info.si_code == SI_QUEUE);
		CHECK(info.si_value.sival_ptr == (void *)(0x100000000ul + i));
		CHECK(info.si_pid == getpid() && info.si_uid == getuid());
	}
	CHECK(take(SIGRTMIN + 5, &info) < 0);
	CHECK(take(SIGTERM, &info) == SIGTERM && info.si_code == SI_USER);
	CHECK(info.si_pid == getpid());
	CHECK(take(SIGTERM, &info) < 0);
	CHECK(!pthread_join(thread, NULL));
}

static const struct check checks[] = {
	{ "actions", sig_actions },
	{ "altstack", sig_altstack },
	{ "handler", sig_handler },
	{ "masks", sig_masks },
	{ "pending", sig_pending },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
