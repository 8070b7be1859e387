// SPDX-License-Identifier: GPL-2.0
/*
 * A program that makes and joins threads all the time.
 */
#include <pthread.h>

#include "check.h"

static void *twice(void *argument)
{
	return (void *)((uintptr_t)argument * 2);
}

int main(int argc, char **argv)
{
	pthread_t thread[4];
	void *result;

	check_begin(argc, argv);
	check_ready();
	do {
		for (uintptr_t i = 0; i < 4; i++)
			NEED(!pthread_create(&thread[i], NULL, twice, (void *)i));
		for (uintptr_t i = 0; i < 4; i++)
			CHECK(!pthread_join(thread[i], &result) && (uintptr_t)result == 2 * i);
	} while (!check_gone());
	return check_end();
}
