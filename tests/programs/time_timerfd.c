// SPDX-License-Identifier: GPL-2.0
/*
 * timerfd: armed, interval, expirations not yet read, an absolute one, a disarmed one.
 */
#include <poll.h>
#include <sys/timerfd.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct itimerspec set = { { 7, 500 }, { 5000, 0 } }, now;
	int far, due, absolute, idle;
	struct pollfd poller;
	uint64_t count;

	check_begin(argc, argv);
	far = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	due = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	absolute = timerfd_create(CLOCK_REALTIME, 0);
	idle = timerfd_create(CLOCK_BOOTTIME, 0);
	NEED(far >= 0 && due >= 0 && absolute >= 0 && idle >= 0);
	NEED(!timerfd_settime(far, 0, &set, NULL));
	set.it_value.tv_sec = 0;
	set.it_value.tv_nsec = set.it_interval.tv_nsec = 20000000;
	set.it_interval.tv_sec = 0;
	NEED(!timerfd_settime(due, 0, &set, NULL));
	set.it_value.tv_sec = time(NULL) + 6000;
	set.it_value.tv_nsec = 0;
	NEED(!timerfd_settime(absolute, TFD_TIMER_ABSTIME, &set, NULL));
	check_sleep_ms(200);
	check_ready();
	check_wait();
	CHECK(!timerfd_gettime(far, &now) && now.it_interval.tv_sec == 7 &&
	      now.it_interval.tv_nsec == 500);
	CHECK(now.it_value.tv_sec < 5000 && now.it_value.tv_sec > 4800);
	CHECK(fcntl(far, F_GETFD) == FD_CLOEXEC && fcntl(due, F_GETFL) & O_NONBLOCK);
	CHECK(read(due, &count, 8) == 8 && count >= 9);
	poller = (struct pollfd){ due, POLLIN, 0 };
	CHECK(poll(&poller, 1, 5000) == 1 && read(due, &count, 8) == 8 && count >= 1);
	CHECK(!timerfd_gettime(absolute, &now) && now.it_value.tv_sec > 5800 &&
	      now.it_value.tv_sec <= 6000);
	CHECK(!timerfd_gettime(idle, &now) && !now.it_value.tv_sec && !now.it_value.tv_nsec);
	return check_end();
}
