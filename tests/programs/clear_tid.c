// SPDX-License-Identifier: GPL-2.0
/*
 * The address that set_tid_address(2) gave: when the thread ends, the kernel
 * clears it and wakes who waits for it.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "check.h"

static volatile int word;

static void *work(void *argument)
{
	word = syscall(SYS_set_tid_address, &word);
	check_wait();
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int now;

	check_begin(argc, argv);
	NEED(!pthread_create(&thread, NULL, work, NULL));
	while (!word)
		check_sleep_ms(1);
	check_ready();
	while ((now = word))
		CHECK(!syscall(SYS_futex, &word, FUTEX_WAIT, now, NULL, NULL, 0) || errno == EAGAIN);
	return check_end();
}
