// SPDX-License-Identifier: GPL-2.0
/* Pseudo-terminals of which both ends are inside; lines to devices. */
#include <linux/tty.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>

#include "check.h"

/* ---- pty ---- */

/*
 * A pseudo-terminal with both ends inside: settings, window size, a line under way,
 * and a child whose controlling terminal it is.  TIOCGPTPEER leaves O_CLOEXEC in the
 * flags of the file, where /proc/PID/fdinfo takes it for that of any descriptor.
 */
static void fd_pty(void)
{
	struct winsize size = { .ws_row = 33, .ws_col = 99 }, now;
	struct termios set, got;
	int master, slave, peer, plain, status;
	char text[64] = "", byte;
	int up[2];
	pid_t child;

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
	checkpoint_here();
	CHECK(!tcgetattr(slave, &got) && got.c_cc[VERASE] == 'x' && !(got.c_lflag & ECHO));
	CHECK(!ioctl(slave, TIOCGWINSZ, &now) && now.ws_row == 33 && now.ws_col == 99);
	CHECK(fcntl(peer, F_GETFD) == FD_CLOEXEC && fcntl(peer, F_GETFL) & O_CLOEXEC);
	CHECK(fcntl(plain, F_GETFD) == 0);
	CHECK(fcntl(slave, F_GETFD) == 0 && !(fcntl(slave, F_GETFL) & O_CLOEXEC));
	CHECK(read(slave, text, 64) == 7 && !memcmp(text, "a line\n", 7));
	CHECK(write(slave, "out", 3) == 3 && read(master, text, 64) == 3);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- pty_tree ---- */

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
	pid_t self;
	char byte;

	NEED(!setpgid(0, 0) && write(up, "", 1) == 1);
	check_wait();
	self = getpid();
	CHECK(write(up, &self, sizeof(self)) == sizeof(self));
	check_terminal(getppid(), self);
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
	CHECK(read(ready[0], &pid, sizeof(pid)) == sizeof(pid));	/* it may have got another */
	check_terminal(getpid(), pid);
	CHECK(write(done[1], "", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return check_end();
}

/*
 * A session on a pseudo-terminal of the tree: its leader has not got it open, but
 * another pseudo-terminal; the child, which has it, is in the foreground.
 */
static void fd_pty_tree(void)
{
	int other, slave, up[2], status;
	pid_t pid;
	char byte;

	NEED(open_pair(&other) >= 0 && open_pair(&slave) >= 0 && !pipe(up));
	pid = fork();
	if (!pid)
		_exit(leader(slave, up[1]));
	close(slave);
	NEED(read(up[0], &byte, 1) == 1);
	checkpoint_here();
	CHECK(wait(&status) > 0 && status == 0);
}

/* ---- pty_closed ---- */

static int without_descriptor(int slave, int up, int down)
{
	char byte;

	NEED(setsid() > 0 && !ioctl(slave, TIOCSCTTY, 0));
	NEED(write(slave, "bye", 3) == 3 && !close(slave) && write(up, "", 1) == 1);
	check_wait();
	CHECK(read(down, &byte, 1) == 1);
	check_terminal(getpid(), getpid());
	return check_end();
}

/*
 * A session keeps its terminal when nobody has it open; what was written to it is
 * still read from the master, which then hangs up.
 */
static void fd_pty_closed(void)
{
	int slave, up[2], down[2], status, master = open_pair(&slave);
	char text[8];
	pid_t pid;

	NEED(!pipe(up) && !pipe(down));
	pid = fork();
	if (!pid) {
		close(master);
		_exit(without_descriptor(slave, up[1], down[0]));
	}
	close(slave);
	NEED(read(up[0], text, 1) == 1);
	checkpoint_here();
	CHECK(read(master, text, 8) == 3 && !memcmp(text, "bye", 3));
	CHECK(read(master, text, 8) == -1 && errno == EIO);
	CHECK(write(down[1], "", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- pty_node ---- */

/* Owner and mode of the slave's node, as mesg(1) and login(1) set them. */
static void fd_pty_node(void)
{
	int slave, master = open_pair(&slave);
	struct stat st;

	NEED(!fchown(slave, 1000, 1001) && !fchmod(slave, 0622));
	checkpoint_here();
	CHECK(!fstat(slave, &st) && st.st_uid == 1000 && st.st_gid == 1001);
	CHECK((st.st_mode & 07777) == 0622);
	CHECK(!stat(ptsname(master), &st) && st.st_uid == 1000);
}

/* ---- pty_stopped ---- */

static bool has_room(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, ms) == 1 && p.revents & POLLOUT;
}

static void wait_for_stop(int fd)
{
	for (int i = 0; i < 1000 && has_room(fd, 0); i++)
		check_sleep_ms(10);
	NEED(!has_room(fd, 0));
}

/* All of it comes from the master. */
static bool reads_all(int master, const char *expected)
{
	size_t length = strlen(expected), at = 0;
	struct pollfd p = { .fd = master, .events = POLLIN };
	char text[64];
	ssize_t got;

	while (at < length && poll(&p, 1, 10000) == 1) {
		got = read(master, text + at, sizeof(text) - at);
		if (got <= 0)
			break;
		at += got;
	}
	return at == length && !memcmp(text, expected, length);
}

/*
 * Pseudo-terminals with unread output that are stopped: by Ctrl-S, with a line typed
 * since; by tcflow(3), which Ctrl-Q does not end; and one that takes no input.
 */
static void fd_pty_stopped(void)
{
	int typed, called, deaf, masters[] = { open_pair(&typed), open_pair(&called),
					       open_pair(&deaf) };
	char text[8];

	NEED(write(typed, "before", 6) == 6 && write(called, "before", 6) == 6);
	NEED(write(masters[0], "\x13", 1) == 1);
	wait_for_stop(typed);
	NEED(write(masters[0], "ab\n", 3) == 3);
	NEED(!tcflow(called, TCOOFF) && !has_room(called, 0));
	NEED(write(masters[2], "ab\n", 3) == 3 && reads_all(masters[2], "ab\r\n"));
	NEED(!tcflow(masters[2], TCOOFF) && !has_room(masters[2], 0));
	checkpoint_here();
	CHECK(!has_room(typed, 0) && !has_room(called, 0) && !has_room(masters[2], 0));
	CHECK(!(fcntl(typed, F_GETFL) & O_NONBLOCK) && !(fcntl(masters[0], F_GETFL) & O_NONBLOCK));
	CHECK(write(masters[0], "\x11", 1) == 1 && has_room(typed, 10000));
	CHECK(write(typed, "after", 5) == 5 && reads_all(masters[0], "beforeab\r\nafter"));
	CHECK(read(typed, text, 8) == 3 && !memcmp(text, "ab\n", 3));
	CHECK(write(masters[1], "\x11", 1) == 1 && !has_room(called, 200));
	CHECK(!tcflow(called, TCOON) && has_room(called, 10000));
	CHECK(write(called, "after", 5) == 5 && reads_all(masters[1], "beforeafter"));
	CHECK(read(deaf, text, 8) == 3 && !memcmp(text, "ab\n", 3));
	CHECK(!tcflow(masters[2], TCOON) && has_room(masters[2], 10000));
}

/* ---- pty_exclusive ---- */

static bool is_exclusive(int fd)
{
	int value = -1;

	return !ioctl(fd, TIOCGEXCL, &value) && value == 1;
}

/* TIOCEXCL, of a slave that is open twice; and a slave that is still locked. */
static void fd_pty_exclusive(void)
{
	int slave, other, master = open_pair(&slave), locked = open("/dev/ptmx", O_RDWR | O_NOCTTY);

	NEED(locked >= 0 && open(ptsname(locked), O_RDWR | O_NOCTTY) < 0);
	other = ioctl(master, TIOCGPTPEER, O_RDONLY | O_NOCTTY);
	NEED(other >= 0 && !ioctl(slave, TIOCEXCL) && is_exclusive(other) && !is_exclusive(master));
	checkpoint_here();
	CHECK(is_exclusive(slave) && is_exclusive(other) && !is_exclusive(master));
	CHECK(!ioctl(other, TIOCNXCL) && !is_exclusive(slave));
	CHECK(open(ptsname(locked), O_RDWR | O_NOCTTY) < 0 && errno == EIO && !unlockpt(locked));
	CHECK(open(ptsname(locked), O_RDWR | O_NOCTTY) >= 0);
}

/* ---- discipline ---- */

/* A line discipline that is not the usual one. */
static void fd_discipline(void)
{
	int slave, number = N_NULL;

	open_pair(&slave);
	NEED(!ioctl(slave, TIOCSETD, &number));
	checkpoint_here();
	number = -1;
	CHECK(!ioctl(slave, TIOCGETD, &number) && number == N_NULL);
}

/* ---- line ---- */

/* A terminal that is not the program's own, under two names. */
static void fd_line(void)
{
	int usual = open("/dev/console", O_RDWR | O_NOCTTY | O_NONBLOCK), other;
	struct stat st, now;

	NEED(!mknod("line", S_IFCHR | 0600, makedev(5, 1)));
	other = open("line", O_WRONLY | O_NOCTTY);
	if (usual < 0 || other < 0)
		check_skip("there is no console here");
	checkpoint_here();
	CHECK(!fstat(usual, &st) && st.st_rdev == makedev(5, 1));
	CHECK(fcntl(usual, F_GETFL) & O_NONBLOCK && !(fcntl(other, F_GETFL) & O_NONBLOCK));
	CHECK(!fstat(other, &st) && st.st_rdev == makedev(5, 1));
	CHECK(!stat("line", &now) && now.st_ino == st.st_ino && !unlink("line"));
}

static const struct check checks[] = {
	{ "pty", fd_pty },
	{ "pty_closed", fd_pty_closed },
	{ "pty_exclusive", fd_pty_exclusive },
	{ "pty_node", fd_pty_node },
	{ "pty_stopped", fd_pty_stopped },
	{ "discipline", fd_discipline },
	{ "line", fd_line },
	{ "pty_tree", fd_pty_tree },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
