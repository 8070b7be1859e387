// SPDX-License-Identifier: GPL-2.0
/*
 * An alarm that is due some seconds later comes once.
 */
#include <signal.h>

#include "check.h"

static volatile int alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_alarm };

	check_begin(argc, argv);
	NEED(!sigaction(SIGALRM, &action, NULL));
	alarm(4);
	check_ready();
	while (!alarms)		/* pause() would miss one that comes just before */
		usleep(10000);
	while (!check_gone())
		usleep(10000);
	CHECK(alarms == 1 && alarm(0) == 0);
	return check_end();
}
