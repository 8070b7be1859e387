/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A callback that ends the program's child, so that the child's PID is free while the
 * checkpoint (third argument `continue`) or the restart (`restart`) waits for the callback.
 * It makes the file `free` and goes on when there is a file `taken`; then it fails with
 * 82 if the fourth argument is `fail`.
 */
#include <libcr.h>

#include <signal.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

static const char *when;
static bool fails;
static pid_t child;

static int callback(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY), fd;

	(void)arg;
	if ((ret > 0) != !strcmp(when, "restart"))
		return 0;
	NEED(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	NEED((fd = open("free", O_WRONLY | O_CREAT, 0666)) >= 0);
	while (access("taken", F_OK))
		usleep(10000);
	return fails ? 82 : 0;
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	when = argc > 3 ? argv[3] : "restart";
	fails = argc > 4 && !strcmp(argv[4], "fail");
	child = fork();
	NEED(child >= 0);
	if (!child)
		for (;;)
			pause();
	NEED(cr_init() == 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	check_ready();
	check_wait();
	return check_end();
}
