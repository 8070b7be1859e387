// SPDX-License-Identifier: GPL-2.0
/*
 * The execution domain flags of personality(2), in three threads; one has its own.
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

static void *own(void *argument)
{
	NEED(personality(UNAME26 | WHOLE_SECONDS) >= 0);
	pthread_barrier_wait(argument);
	check_wait();
	CHECK(personality(0xffffffff) == (UNAME26 | WHOLE_SECONDS));
	return argument;
}

int main(int argc, char **argv)
{
	pthread_barrier_t barrier;
	pthread_t thread, alone;

	check_begin(argc, argv);
	NEED(personality(ADDR_NO_RANDOMIZE | UNAME26) >= 0);
	NEED(!pthread_create(&thread, NULL, other, NULL));
	NEED(!pthread_barrier_init(&barrier, NULL, 2));
	NEED(!pthread_create(&alone, NULL, own, &barrier));
	pthread_barrier_wait(&barrier);
	check_ready();
	check_wait();
	CHECK(personality(0xffffffff) == (ADDR_NO_RANDOMIZE | UNAME26));
	CHECK(!pthread_join(thread, NULL) && !pthread_join(alone, NULL));
	return check_end();
}
