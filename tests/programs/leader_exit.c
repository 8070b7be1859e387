// SPDX-License-Identifier: GPL-2.0
/*
 * A process whose first thread has ended while others run on.
 */
#include <pthread.h>

#include "check.h"

static void *run_on(void *argument)
{
	pthread_t *leader = argument;
	struct timespec moment = { 0, 200000000 };

	nanosleep(&moment, NULL);
	check_ready();
	check_wait();
	CHECK(pthread_join(*leader, NULL) == 0);
	exit(check_end());
}

int main(int argc, char **argv)
{
	static pthread_t leader;
	pthread_t thread;

	check_begin(argc, argv);
	leader = pthread_self();
	NEED(!pthread_create(&thread, NULL, run_on, &leader));
	pthread_exit(NULL);
}
