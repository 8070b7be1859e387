// SPDX-License-Identifier: GPL-2.0
/*
 * Clocks that count from boot, by the vdso and by system calls, go on at their old values;
 * timers set to a moment of theirs come at it, and not before: PROGRAM READY GO HOW.
 * HOW is `ahead` (in a time namespace whose clocks are days ahead) or `family` (a
 * child is, the program is not).  If the file GO says `jumps`, the clocks are the machine's
 * by then.
 */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "check.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif
#define SECOND		1000000000ll
#define LEFT		(6 * SECOND)
#define PATIENCE	(40 * SECOND)	/* nothing takes so long, on the program's clock */
#define DAYS		(10 * 86400)

static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME };

static long long ns_of(const struct timespec *t)
{
	return t->tv_sec * SECOND + t->tv_nsec;
}

static struct timespec spec_of(long long ns)
{
	return (struct timespec){ ns / SECOND, ns % SECOND };
}

/* The two ways to ask agree. */
static long long now(clockid_t clock)
{
	struct timespec first, call, last;

	CHECK(!clock_gettime(clock, &first));
	CHECK(!syscall(SYS_clock_gettime, clock, &call));
	CHECK(!clock_gettime(clock, &last));
	CHECK(ns_of(&first) <= ns_of(&call) && ns_of(&call) <= ns_of(&last));
	return ns_of(&last);
}

static void enter_other(void)
{
	char text[64];
	int fd, length = snprintf(text, sizeof(text), "monotonic %d 0\nboottime %d 5\n", DAYS,
				  2 * DAYS);

	if (now(CLOCK_MONOTONIC) >= DAYS * SECOND)
		return;			/* the caller has done so */
	if (unshare(CLONE_NEWTIME))
		check_skip("no time namespaces here");
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	NEED(fd >= 0 && write(fd, text, length) == length);
	close(fd);
	fd = open("/proc/self/ns/time_for_children", O_RDONLY);
	NEED(fd >= 0 && !setns(fd, CLONE_NEWTIME));
	close(fd);
	NEED(now(CLOCK_MONOTONIC) >= DAYS * SECOND && now(CLOCK_BOOTTIME) >= DAYS * SECOND);
}

struct alarm {
	clockid_t clock;
	long long moment;
	int fd;			/* a timerfd, or -1 */
	timer_t timer;
};

static struct alarm set_timerfd(clockid_t clock)
{
	struct alarm a = { .clock = clock, .moment = now(clock) + LEFT };
	struct itimerspec spec = { .it_value = spec_of(a.moment) };

	a.fd = timerfd_create(clock, 0);
	NEED(a.fd >= 0 && !timerfd_settime(a.fd, TFD_TIMER_ABSTIME, &spec, NULL));
	return a;
}

static struct alarm set_timer(clockid_t clock, int signal)
{
	struct alarm a = { .clock = clock, .moment = now(clock) + LEFT, .fd = -1 };
	struct itimerspec spec = { .it_value = spec_of(a.moment) };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal };

	NEED(!timer_create(clock, &event, &a.timer));
	NEED(!timer_settime(a.timer, TIMER_ABSTIME, &spec, NULL));
	return a;
}

static void await(const struct alarm *a, int signal)
{
	sigset_t set;
	uint64_t count;

	sigemptyset(&set);
	sigaddset(&set, signal);
	if (a->fd >= 0)
		CHECK(read(a->fd, &count, sizeof(count)) == sizeof(count) && count == 1);
	else
		CHECK(sigwaitinfo(&set, NULL) == signal);
	CHECK(now(a->clock) >= a->moment && now(a->clock) < a->moment + PATIENCE);
}

/* Sets, waits, and sees that all is as it was. */
static void watch(void)
{
	long long last[2], again;
	struct alarm alarm[4];
	struct timespec until;
	char text[8];
	sigset_t set;
	bool jumps;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 2; i++) {
		alarm[2 * i] = set_timerfd(clocks[i]);
		alarm[2 * i + 1] = set_timer(clocks[i], i ? SIGUSR2 : SIGUSR1);
	}
	while (!check_gone()) {
		for (int i = 0; i < 2; i++)
			last[i] = now(clocks[i]);
		usleep(2000);
	}
	jumps = !strncmp(check_slurp(check_go_file, text, sizeof(text)), "jumps", 5);
	for (int i = 0; i < 2; i++) {
		again = now(clocks[i]);
		CHECK(jumps ? again < DAYS * SECOND : again >= last[i] && again < last[i] + PATIENCE);
		until = spec_of(again + SECOND / 10);
		CHECK(!clock_nanosleep(clocks[i], TIMER_ABSTIME, &until, NULL));
		CHECK(now(clocks[i]) >= ns_of(&until));
	}
	for (int i = 0; !jumps && i < 4; i++)
		await(&alarm[i], i == 1 ? SIGUSR1 : SIGUSR2);
}

static int family(void)
{
	int to_parent[2], status;
	char byte;
	pid_t child;

	NEED(!pipe(to_parent));
	child = fork();
	NEED(child >= 0);
	if (!child) {
		enter_other();
		NEED(write(to_parent[1], "", 1) == 1);
		watch();
		_exit(check_failures ? 1 : 0);
	}
	close(to_parent[1]);
	if (read(to_parent[0], &byte, 1) != 1)
		check_skip("no time namespaces here");
	check_ready();
	watch();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return check_end();
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(argc == 4);
	if (!strcmp(argv[3], "family"))
		return family();
	enter_other();
	check_ready();
	watch();
	return check_end();
}
