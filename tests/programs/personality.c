// SPDX-License-Identifier: GPL-2.0
/*
 * The execution domain flags of personality(2), in two threads.
 */
#include <pthread.h>
#include <sys/personality.h>

#include "check.h"

static void *other(void *argument)
{
	check_wait();
	CHECK(personality(0xffffffff) == (ADDR_NO_RANDOMIZE | UNAME26));
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED(personality(ADDR_NO_RANDOMIZE | UNAME26) >= 0);
	NEED(!pthread_create(&thread, NULL, other, NULL));
	check_ready();
	check_wait();
	CHECK(personality(0xffffffff) == (ADDR_NO_RANDOMIZE | UNAME26));
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
