// SPDX-License-Identifier: GPL-2.0
/*
 * A process whose group holds another one that is not its child any more: that
 * one's parent has ended.  In a checkpoint of the group both are there and go on
 * talking over their pipes.
 */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

int main(int argc, char **argv)
{
	int there[2], back[2];
	char byte;

	check_begin(argc, argv);
	NEED(!pipe(there) && !pipe(back));
	NEED(!setpgid(0, 0) || getpgrp() == getpid());
	if (!fork()) {
		if (!fork()) {
			while (read(there[0], &byte, 1) == 1 && byte != 'e')
				if (write(back[1], &byte, 1) != 1)
					break;
			_exit(0);
		}
		_exit(0);
	}
	NEED(wait(NULL) > 0);
	NEED(write(there[1], "a", 1) == 1 && read(back[0], &byte, 1) == 1);
	check_ready();
	check_wait();
	CHECK(write(there[1], "b", 1) == 1 && read(back[0], &byte, 1) == 1 && byte == 'b');
	CHECK(write(there[1], "e", 1) == 1);
	CHECK(getpgrp() == getpid());
	return check_end();
}
