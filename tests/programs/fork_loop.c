// SPDX-License-Identifier: GPL-2.0
/*
 * A program that makes processes all the time: whatever moment the checkpoint
 * catches, every child is there once and ends as it should.
 */
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	long made = 0, ended = 0;
	int status;

	check_begin(argc, argv);
	check_ready();
	while (!check_gone() || made < 3) {
		for (int i = 0; i < 3; i++, made++) {
			pid_t child = fork();

			NEED(child >= 0);
			if (!child) {
				pid_t inner = fork();

				if (!inner)
					_exit(5);
				_exit(waitpid(inner, &status, 0) == inner &&
				      WEXITSTATUS(status) == 5 ? 6 : 7);
			}
		}
		for (int i = 0; i < 3; i++, ended++)
			CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 6);
	}
	CHECK(made == ended);
	CHECK(wait(&status) < 0 && errno == ECHILD);
	return check_end();
}
