// SPDX-License-Identifier: GPL-2.0
/*
 * A session on a pseudo-terminal of the tree: its leader has not got it open, but
 * another pseudo-terminal; the child, which has it, is in the foreground.
 */
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "check.h"

static int open_pair(int *slave)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	NEED(master >= 0 && !grantpt(master) && !unlockpt(master));
	*slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	NEED(*slave >= 0);
	return master;
}

/* Has it the terminal of the session, with this group in the foreground? */
static void check_terminal(pid_t session, pid_t foreground)
{
	int tty = open("/dev/tty", O_RDWR);

	CHECK(tty >= 0);
	CHECK(tcgetsid(tty) == session);
	CHECK(tcgetpgrp(tty) == foreground);
	close(tty);
}

static int child(int slave, int up, int down)
{
	char byte;

	NEED(!setpgid(0, 0) && write(up, "", 1) == 1);
	check_wait();
	check_terminal(getppid(), getpid());
	CHECK(tcgetpgrp(slave) == getpid());
	/* The session loses its terminal when nobody has it open. */
	CHECK(read(down, &byte, 1) == 1);
	return check_end();
}

static int leader(int slave, int up)
{
	int ready[2], done[2], status;
	pid_t pid;
	char byte;

	NEED(setsid() > 0 && !ioctl(slave, TIOCSCTTY, 0) && !pipe(ready) && !pipe(done));
	pid = fork();
	if (!pid)
		_exit(child(slave, ready[1], done[0]));
	NEED(read(ready[0], &byte, 1) == 1 && !tcsetpgrp(slave, pid));
	close(slave);
	NEED(write(up, "", 1) == 1);
	check_wait();
	check_terminal(getpid(), pid);
	CHECK(write(done[1], "", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return check_end();
}

int main(int argc, char **argv)
{
	int other, slave, up[2], status;
	pid_t pid;
	char byte;

	check_begin(argc, argv);
	NEED(open_pair(&other) >= 0 && open_pair(&slave) >= 0 && !pipe(up));
	pid = fork();
	if (!pid)
		_exit(leader(slave, up[1]));
	close(slave);
	NEED(read(up[0], &byte, 1) == 1);
	check_ready();
	check_wait();
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return check_end();
}
