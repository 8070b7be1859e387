// SPDX-License-Identifier: GPL-2.0
/*
 * A program on a terminal whose other end is outside of the checkpoint: after a
 * restart it has the terminal of cr_restart, in the mode that it had set, and gets
 * signals of it.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct termios set, got;
	int tty;

	check_begin(argc, argv);
	tty = open("/dev/tty", O_RDWR);
	if (tty < 0 || !isatty(0))
		check_skip("not on a terminal");
	NEED(!tcgetattr(0, &set));
	set.c_cc[VERASE] = 'y';
	NEED(!tcsetattr(0, TCSANOW, &set));
	NEED(!fcntl(tty, F_SETSIG, SIGURG) && !fcntl(tty, F_SETOWN, getpid()));
	NEED(!fcntl(tty, F_SETFL, fcntl(tty, F_GETFL) | O_ASYNC));
	check_ready();
	check_wait();
	CHECK(isatty(0) && isatty(1) && isatty(tty));
	CHECK(!tcgetattr(tty, &got) && got.c_cc[VERASE] == 'y');
	CHECK(fcntl(tty, F_GETFL) & O_ASYNC && fcntl(tty, F_GETSIG) == SIGURG);
	CHECK(write(tty, "by tty\n", 7) == 7 && write(1, "by stdout\n", 10) == 10);
	return check_end();
}
