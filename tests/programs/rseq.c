// SPDX-License-Identifier: GPL-2.0
/*
 * Restartable sequences: the area that the C library registered for each thread
 * still gets the number of the processor, and can be unregistered.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

#include "check.h"

static void *look(void *argument)
{
	struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	check_wait();
	area->cpu_id_start = area->cpu_id = 12345;
	for (int i = 0; i < 100 && *(volatile uint32_t *)&area->cpu_id == 12345; i++)
		check_sleep_ms(5);
	CHECK(area->cpu_id < 12345);
	CHECK(syscall(SYS_rseq, area, 32, 1, RSEQ_SIG) == 0);
	CHECK(syscall(SYS_rseq, area, 32, 0, RSEQ_SIG) == 0);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	if (!__rseq_size)
		check_skip("the C library has not registered a restartable sequence");
	NEED(!pthread_create(&thread, NULL, look, NULL));
	check_ready();
	look(NULL);
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
