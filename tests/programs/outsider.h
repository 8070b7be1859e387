/* SPDX-License-Identifier: GPL-2.0 */
/* A process that is not saved with the program. */
#ifndef KCR_TESTS_OUTSIDER_H
#define KCR_TESTS_OUTSIDER_H

#include <sys/wait.h>

#include "check.h"

/*
 * A grandchild without a parent in the tree does something, before this returns, and ends when
 * the program goes on.
 */
static inline void outsider(void (*act)(const char *argument), const char *argument)
{
	int told[2];
	pid_t child;
	char byte;

	NEED(!pipe(told));
	child = fork();
	if (!child && !fork()) {
		act(argument);
		NEED(write(told[1], "x", 1) == 1);
		close(told[0]);
		close(told[1]);
		check_wait();
		_exit(0);
	}
	if (!child)
		_exit(0);
	NEED(waitpid(child, NULL, 0) == child && read(told[0], &byte, 1) == 1);
	close(told[0]);
	close(told[1]);
}

#endif /* KCR_TESTS_OUTSIDER_H */
