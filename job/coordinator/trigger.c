// SPDX-License-Identifier: GPL-2.0
/*
 * Checkpoints requested by a signal to mpirun.  The handler writes into a pipe
 * that the coordinator's thread polls; the outcome is printed on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/coordinator/root.h"
#include "job/coordinator/root_internal.h"

static int ends[2] = { -1, -1 };
static bool served;

static void handler(int number)
{
	int saved = errno;
	char byte = number;

	if (write(ends[1], &byte, 1) < 0)	/* full: a request is pending already */
		errno = saved;
}

int trigger_start(int number)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigset_t own;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) || sigaction(number, &action, NULL))
		return -errno;
	sigemptyset(&own);
	sigaddset(&own, number);
	sigprocmask(SIG_UNBLOCK, &own, NULL);	/* a recovery has held it back until now */
	return 0;
}

int trigger_fd(void)
{
	return ends[0];
}

void trigger_serve(struct root *root)
{
	const char *why = NULL;
	char bytes[64];
	int err;

	while (read(ends[0], bytes, sizeof(bytes)) == sizeof(bytes))
		;
	err = phases_begin_own(root, root->settings.path, root->settings.keep, &why);
	if (!err) {
		served = true;
		return;
	}
	if (!why && err == -EBUSY)
		why = "a checkpoint of the job is under way";
	say_line("not saved: %s", why ? why : strerror(-err));
}

void trigger_answer(const struct job_answer *answer)
{
	if (!served)
		return;
	served = false;
	if (answer->code)
		say_line("not saved: %s", answer->message ? answer->message : strerror(answer->code));
	else
		say_line("saved to %s", answer->path);
	for (size_t i = 0; i < JOB_MAX_WARNINGS && answer->warning[i]; i++)
		say_line("warning: %s", answer->warning[i]);
}
