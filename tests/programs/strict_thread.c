// SPDX-License-Identifier: GPL-2.0
/* A thread, not the first one, that may only read, write and exit (seccomp(2)). */
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

static int there[2], back[2];

static void *restrained(void *argument)
{
	char byte = 's';

	(void)argument;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		byte = 'f';
	while (write(back[1], &byte, 1) == 1 && read(there[0], &byte, 1) == 1)
		;
	syscall(SYS_exit, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte;

	check_begin(argc, argv);
	NEED(!pipe(there) && !pipe(back) && !pthread_create(&thread, NULL, restrained, NULL));
	NEED(read(back[0], &byte, 1) == 1 && byte == 's');
	check_ready();
	check_wait();
	CHECK(write(there[1], "x", 1) == 1 && read(back[0], &byte, 1) == 1 && byte == 'x');
	close(there[1]);
	pthread_join(thread, NULL);
	return check_end();
}
