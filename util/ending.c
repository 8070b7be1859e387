// SPDX-License-Identifier: GPL-2.0
/* See ending.h.  The module frees everything else when this process ends. */
#include "util/ending.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "util/status.h"

/* Static, for the handlers. */
static struct ending chosen;

static void on_signal(int signal_number)
{
	chosen.abandon();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		return;			/* nobody reads it */
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	chosen.abandon();
	if (chosen.json)
		say(STDOUT_FILENO, "{\"event\":\"error\",\"code\":110,"
		    "\"message\":\"not done in the time given by --time\"}\n");
	if (!chosen.quiet)
		say(STDERR_FILENO, chosen.late);
	status_done(ETIMEDOUT, 0);
	_exit(ETIMEDOUT);
}

void ending_prepare(const struct ending *ending)
{
	static const int early[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction action = { .sa_handler = on_signal };

	chosen = *ending;
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(early) / sizeof(*early); i++) {
		struct sigaction old;

		if (!sigaction(early[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(early[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (ending->timeout_s) {
		action.sa_handler = on_alarm;
		sigaction(SIGALRM, &action, NULL);
		alarm(ending->timeout_s);
	}
}

void ending_in_time(void)
{
	alarm(0);
	signal(SIGALRM, SIG_IGN);
}
