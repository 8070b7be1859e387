// SPDX-License-Identifier: GPL-2.0
/*
 * The three interval timers: what was left, their intervals, and that they fire.
 */
#include <signal.h>
#include <sys/time.h>

#include "check.h"

static volatile int fired[3];

static void on_signal(int signal)
{
	fired[signal == SIGALRM ? 0 : signal == SIGVTALRM ? 1 : 2]++;
}

int main(int argc, char **argv)
{
	struct itimerval real = { { 1000, 5000 }, { 5000, 0 } };
	struct itimerval cpu = { { 500, 0 }, { 300, 0 } }, now;
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	check_begin(argc, argv);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGVTALRM, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	NEED(!setitimer(ITIMER_REAL, &real, NULL));
	NEED(!setitimer(ITIMER_VIRTUAL, &cpu, NULL) && !setitimer(ITIMER_PROF, &cpu, NULL));
	check_ready();
	check_wait();
	CHECK(!getitimer(ITIMER_REAL, &now));
	CHECK(now.it_interval.tv_sec == 1000 && now.it_interval.tv_usec == 5000);
	CHECK(now.it_value.tv_sec > 4800 && now.it_value.tv_sec < 5000);
	for (int which = ITIMER_VIRTUAL; which <= ITIMER_PROF; which++) {
		CHECK(!getitimer(which, &now));
		CHECK(now.it_interval.tv_sec == 500 && now.it_value.tv_sec > 200 &&
		      now.it_value.tv_sec <= 300);
	}
	CHECK(!fired[0] && !fired[1] && !fired[2]);
	real.it_value.tv_sec = real.it_interval.tv_sec = 0;
	real.it_value.tv_usec = real.it_interval.tv_usec = 20000;
	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
		CHECK(!setitimer(which, &real, NULL));
	for (volatile long i = 0; (!fired[0] || !fired[1] || !fired[2]) && i < 3000000000l; i++)
		;
	CHECK(fired[0] && fired[1] && fired[2]);
	return check_end();
}
