// SPDX-License-Identifier: GPL-2.0
/*
 * Files of the kernel's own file systems, open for reading and writing, of which each open file has
 * a state: `trigger` of pressure (PSI), `no_trigger`, and the `peak` of memory of a cgroup.  And a
 * pipe for the kernel's `notes`.
 */
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "check.h"

static int open_it(void)
{
	int fd = open(check_argument, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		check_skip("this kernel has no such file");
	return fd;
}

static void trigger(void)
{
	static const char text[] = "some 150000 2000000";
	struct pollfd poll_it = { .fd = open_it(), .events = POLLPRI };

	NEED(write(poll_it.fd, text, sizeof(text)) == sizeof(text));
	checkpoint_here();
	CHECK(poll(&poll_it, 1, 0) >= 0 && !(poll_it.revents & POLLERR));
}

static void no_trigger(void)
{
	int fd = open_it();
	char byte;

	checkpoint_here();
	CHECK(read(fd, &byte, 1) == 1);
}

static void peak(void)
{
	int fd = open_it();
	char byte;

	if (write(fd, "reset", 5) != 5)
		check_skip("this kernel does not count anew");
	checkpoint_here();
	CHECK(pread(fd, &byte, 1, 0) == 1);
}

/* Also one whose size is not set yet. */
static void notes(void)
{
	int ends[2];

	/* O_NOTIFICATION_PIPE, IOC_WATCH_QUEUE_SET_SIZE */
	if (syscall(SYS_pipe2, ends, O_EXCL | O_CLOEXEC))
		check_skip("this kernel has no pipes for notes");
	NEED(!check_argument || !ioctl(ends[0], _IO('W', 0x60), 16));
	checkpoint_here();
	CHECK(fcntl(ends[0], F_GETFD) == FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	static const struct check kinds[] = {
		{ "trigger", trigger }, { "no_trigger", no_trigger }, { "peak", peak },
		{ "notes", notes }, { }
	};

	return check_one(argc, argv, kinds);
}
