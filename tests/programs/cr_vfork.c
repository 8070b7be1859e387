// SPDX-License-Identifier: GPL-2.0
/*
 * A client with a callback that is in vfork(2) most of the time: its child has
 * its memory and is no client, then runs another program.
 */
#include <libcr.h>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/check.h"

static volatile int called, restarted;

static int callback(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);

	(void)arg;
	CHECK(ret >= 0);
	called++;
	restarted += ret > 0;
	return 0;
}

int main(int argc, char **argv)
{
	int status;

	check_begin(argc, argv);
	NEED(cr_init() >= 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	check_ready();
	do {
		pid_t child = vfork();

		if (!child) {
			usleep(20000);
			execl("/bin/sleep", "sleep", "0.03", (char *)NULL);
			_exit(99);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	} while (!check_gone());
	CHECK(called == 6 && restarted == 1);
	return check_end();
}
