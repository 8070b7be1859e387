// SPDX-License-Identifier: GPL-2.0
/*
 * A pseudo-terminal with both ends inside: settings, window size, a line under way,
 * and a child whose controlling terminal it is.  TIOCGPTPEER leaves O_CLOEXEC in the
 * flags of the file, where /proc/PID/fdinfo takes it for that of any descriptor.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct winsize size = { .ws_row = 33, .ws_col = 99 }, now;
	struct termios set, got;
	int master, slave, peer, plain, status;
	char text[64] = "", byte;
	int up[2];
	pid_t child;

	check_begin(argc, argv);
	master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	NEED(master >= 0 && !grantpt(master) && !unlockpt(master) && !pipe(up));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	NEED(slave >= 0 && !tcgetattr(slave, &set));
	peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	plain = dup(peer);
	NEED(peer >= 0 && plain >= 0);
	set.c_lflag &= ~ECHO;
	set.c_cc[VERASE] = 'x';
	NEED(!tcsetattr(slave, TCSANOW, &set) && !ioctl(master, TIOCSWINSZ, &size));
	NEED(write(master, "a line\n", 7) == 7);
	child = fork();
	if (!child) {
		NEED(setsid() > 0 && !ioctl(slave, TIOCSCTTY, 0));
		NEED(write(up[1], "", 1) == 1);
		check_wait();
		CHECK(tcgetpgrp(slave) == getpid() && tcgetsid(slave) == getpid());
		CHECK(open("/dev/tty", O_RDWR) >= 0);
		_exit(check_end());
	}
	NEED(read(up[0], &byte, 1) == 1);
	check_ready();
	check_wait();
	CHECK(!tcgetattr(slave, &got) && got.c_cc[VERASE] == 'x' && !(got.c_lflag & ECHO));
	CHECK(!ioctl(slave, TIOCGWINSZ, &now) && now.ws_row == 33 && now.ws_col == 99);
	CHECK(fcntl(peer, F_GETFD) == FD_CLOEXEC && fcntl(peer, F_GETFL) & O_CLOEXEC);
	CHECK(fcntl(plain, F_GETFD) == 0);
	CHECK(fcntl(slave, F_GETFD) == 0 && !(fcntl(slave, F_GETFL) & O_CLOEXEC));
	CHECK(read(slave, text, 64) == 7 && !memcmp(text, "a line\n", 7));
	CHECK(write(slave, "out", 3) == 3 && read(master, text, 64) == 3);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return check_end();
}
