// SPDX-License-Identifier: GPL-2.0
/*
 * A client whose first thread, which made it one, has ended: callbacks of
 * another thread run all the same, in a thread of libcr and in that thread.
 */
#include <libcr.h>

#include <pthread.h>
#include <sys/syscall.h>

#include "tests/programs/check.h"

static pid_t owner;
static volatile int called, called_by_signal, in_owner, log_fd;

static int callback(void *arg)
{
	int ret;

	CHECK(arg == &owner);
	called++;
	ret = cr_checkpoint(CR_CHECKPOINT_READY);
	CHECK(ret >= 0);
	CHECK(write(log_fd, ret > 0 ? "restarted\n" : "continued\n", 10) == 10);
	return 0;
}

static int signal_callback(void *arg)
{
	CHECK(arg == &owner);
	in_owner += syscall(SYS_gettid) == owner;	/* not after a second */
	called_by_signal++;
	return 0;
}

static void *run_on(void *arg)
{
	const int expected = atoi(arg);

	owner = syscall(SYS_gettid);
	NEED(cr_init() >= 0);
	NEED(cr_register_callback(callback, &owner, CR_THREAD_CONTEXT) >= 0);
	NEED(cr_register_callback(signal_callback, &owner, CR_SIGNAL_CONTEXT) >= 0);
	check_sleep_ms(100);		/* the first thread ends meanwhile */
	check_ready();
	while (!check_gone())
		usleep(20000);		/* which the signal of a callback ends */
	CHECK(called == expected && called_by_signal == expected && in_owner > 0);
	exit(check_end());
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED(argc > 3);
	NEED((log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666)) >= 0);
	NEED(cr_init() >= 0);
	NEED(!pthread_create(&thread, NULL, run_on, argv[3]));
	pthread_exit(NULL);
}
