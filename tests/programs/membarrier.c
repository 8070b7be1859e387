// SPDX-License-Identifier: GPL-2.0
/*
 * A program that has registered for membarrier(2) may use it: with one thread, and with
 * a second one that a barrier has to reach.
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "check.h"

static int membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void *idle(void *argument)
{
	check_wait();
	return argument;
}

int main(int argc, char **argv)
{
	static const int commands[][2] = {
		{ MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_GLOBAL_EXPEDITED },
		{ MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED },
		{ MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
		  MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE },
		{ MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ,
		  MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ },
	};
	int known = membarrier(MEMBARRIER_CMD_QUERY);
	pthread_t thread;

	check_begin(argc, argv);
	if (known <= 0)
		check_skip("this kernel has no membarrier(2)");
	for (int i = 0; i < 4; i++)
		NEED(!(known & commands[i][0]) || !membarrier(commands[i][0]));
	NEED(!pthread_create(&thread, NULL, idle, NULL));
	checkpoint_here();
	for (int i = 0; i < 4; i++)
		CHECK(!(known & commands[i][0]) || !membarrier(commands[i][1]));
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
