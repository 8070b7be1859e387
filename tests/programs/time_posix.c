// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX timers: numbers with gaps, clocks, values in signals, a timer for one thread,
 * a disarmed one and one without a signal.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "check.h"

#define FAR	5000

static volatile int value, who;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code == SI_TIMER) {
		value = info->si_value.sival_int;
		who = syscall(SYS_gettid);
	}
}

static int make(clockid_t clock, int notify, int number, pid_t tid)
{
	struct sigevent event = { .sigev_notify = notify, .sigev_signo = SIGRTMIN + 2 };
	int id;

	event.sigev_value.sival_int = number;
	event._sigev_un._tid = tid;
	NEED(!syscall(SYS_timer_create, clock, &event, &id));
	return id;
}

static void arm(int id, time_t first, long interval_ns)
{
	struct itimerspec set = { { 0, interval_ns }, { first, first ? 0 : 1000000 } };

	NEED(!syscall(SYS_timer_settime, id, 0, &set, NULL));
}

static void expect(int id, time_t first, long interval_ns)
{
	struct itimerspec now;

	CHECK(!syscall(SYS_timer_gettime, id, &now));
	CHECK(now.it_interval.tv_nsec == interval_ns);
	CHECK(now.it_value.tv_sec <= first && now.it_value.tv_sec > first - 200);
}

static volatile pid_t other_tid;
static volatile bool other_waits;

static void *other(void *argument)
{
	other_tid = syscall(SYS_gettid);
	check_wait();
	other_waits = true;
	while (!argument || value != 77)
		usleep(1000);
	return argument;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int monotonic, gap, real, idle, thread_timer, silent, cpu;
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!sigaction(SIGRTMIN + 2, &action, NULL));
	NEED(!pthread_create(&thread, NULL, other, &action));
	while (!other_tid)
		usleep(1000);
	monotonic = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, 11, 0);
	gap = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, 12, 0);
	real = make(CLOCK_REALTIME, SIGEV_SIGNAL, 13, 0);
	idle = make(CLOCK_BOOTTIME, SIGEV_SIGNAL, 14, 0);
	silent = make(CLOCK_MONOTONIC, SIGEV_NONE, 15, 0);
	thread_timer = make(CLOCK_MONOTONIC, SIGEV_THREAD_ID, 77, other_tid);
	cpu = make(CLOCK_PROCESS_CPUTIME_ID, SIGEV_SIGNAL, 16, 0);
	NEED(!syscall(SYS_timer_delete, gap));
	arm(monotonic, FAR, 1000);
	arm(real, FAR + 1, 0);
	arm(silent, FAR + 2, 3000);
	arm(thread_timer, FAR + 3, 0);
	arm(cpu, FAR + 4, 0);
	check_ready();
	check_wait();
	expect(monotonic, FAR, 1000);
	expect(real, FAR + 1, 0);
	expect(silent, FAR + 2, 3000);
	expect(thread_timer, FAR + 3, 0);
	expect(cpu, FAR + 4, 0);
	expect(idle, 0, 0);
	CHECK(syscall(SYS_timer_getoverrun, gap) < 0 && errno == EINVAL);
	/* From here on signals come: none may end the other one's check_wait(). */
	while (!other_waits)
		usleep(1000);
	arm(idle, 0, 0);
	while (value != 14)
		usleep(1000);
	arm(thread_timer, 0, 0);
	CHECK(!pthread_join(thread, NULL) && who == other_tid);
	return check_end();
}
