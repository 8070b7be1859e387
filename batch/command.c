// SPDX-License-Identifier: GPL-2.0
/* Running commands; see command.h. */
#include "batch/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/clock.h"
#include "util/follow.h"

static void become(const char *const argv[], int output)
{
	int input = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0)
		_exit(126);
	follow_end();
	execvp(argv[0], (char *const *)argv);
	_exit(errno == ENOENT ? 127 : 126);
}

/* Reads until the end of the pipe or the deadline; false: it was the deadline. */
static bool collect(int fd, uint64_t deadline_ns, char *out, size_t size)
{
	char part[512];
	size_t used = 0, fits;

	out[0] = '\0';
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (now >= deadline_ns || poll(&ready, 1, (int)((deadline_ns - now) / 1000000) + 1) < 0)
			return false;
		if (!ready.revents)
			continue;
		n = read(fd, part, sizeof(part));
		if (n <= 0)
			return true;
		fits = (size_t)n < size - 1 - used ? (size_t)n : size - 1 - used;
		memcpy(out + used, part, fits);
		used += fits;
		out[used] = '\0';
	}
}

int command_run(const char *const argv[], unsigned int limit_s, char *out, size_t size)
{
	int ends[2], status;
	bool in_time;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (!child)
		become(argv, ends[1]);
	close(ends[1]);
	if (child < 0) {
		int err = -errno;

		close(ends[0]);
		return err;
	}
	in_time = collect(ends[0], now_ns() + limit_s * 1000000000ull, out, size);
	close(ends[0]);
	if (!in_time)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!in_time)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
