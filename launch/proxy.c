// SPDX-License-Identifier: GPL-2.0
/* The process that the launcher takes for a rank.  See proxy.h. */
#include "launch/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/message.h"
#include "launch/start.h"
#include "launch/streams.h"
#include "report/report.h"

#define AT_ONCE		65536

struct proxy {
	int daemon;
	int rank[STREAMS];		/* the other ends of its output, if this carries it; -1 */
	bool ended;
	int status;
};

/* ---- signals ------------------------------------------------------------------------------ */

static int signals[2];			/* a pipe: the numbers of those that have come */

static void handler(int number)
{
	int saved = errno;
	unsigned char byte = number;

	if (write(signals[1], &byte, 1) < 0)	/* full: so many wait already */
		errno = saved;
}

static bool is_passed_on(int number)
{
	switch (number) {
	case SIGKILL: case SIGSTOP: case SIGCHLD: case SIGPIPE:
	case SIGSEGV: case SIGBUS: case SIGILL: case SIGFPE:
		return false;
	}
	return true;
}

static int catch_signals(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigset_t none;

	if (pipe2(signals, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	for (int number = 1; number < NSIG; number++)
		if (is_passed_on(number))
			sigaction(number, &action, NULL);	/* fails for those of the C library */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

static void pass_signals(const struct proxy *p)
{
	unsigned char numbers[64];
	ssize_t count = read(signals[0], numbers, sizeof(numbers));

	for (ssize_t i = 0; i < count; i++)
		launch_send(p->daemon, LAUNCH_SIGNAL, numbers[i], NULL, 0);
}

/* ---- output ------------------------------------------------------------------------------- */

/* False: the launcher takes no more, as it has died. */
static bool write_out(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(fd, data, length);
		struct pollfd room = { fd, POLLOUT, 0 };

		if (n < 0 && errno == EAGAIN)
			poll(&room, 1, -1);
		else if (n < 0 && errno != EINTR)
			return false;
		data += n > 0 ? n : 0;
		length -= n > 0 ? n : 0;
	}
	return true;
}

/*
 * The end of a pipe, or EIO of a terminal, when no process has it open any more.  What comes
 * after the launcher's death the daemon reads, which has the streams open, too.  Returns how
 * many bytes there were.
 */
static size_t carry_output(struct proxy *p, int n)
{
	char data[AT_ONCE];
	ssize_t got = read(p->rank[n], data, sizeof(data));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (got > 0 && write_out(n, data, got))
		return got;
	close(p->rank[n]);
	p->rank[n] = -1;
	return 0;
}

/* What the rank has written before it failed.  Others may write for ever. */
static void carry_rest(struct proxy *p)
{
	for (int n = STDOUT_FILENO; n < STREAMS; n++) {
		size_t got = 1;
		int left = 0;

		if (p->rank[n] >= 0)
			ioctl(p->rank[n], FIONREAD, &left);
		for (; left > 0 && got; left -= got)
			got = carry_output(p, n);
	}
}

/* ---- the daemon --------------------------------------------------------------------------- */

static void take_streams(struct proxy *p, int mask, const int *fds, int nr_fds)
{
	for (int n = 0, i = 0; n < STREAMS && i < nr_fds; n++)
		if (mask & 1 << n)
			p->rank[n] = fds[i++];
}

static int hear(struct proxy *p)
{
	struct launch_message m;
	int fds[LAUNCH_FDS_MAX], count = launch_receive(p->daemon, &m, fds);

	if (count < 0)
		return count;
	if (m.type == LAUNCH_STREAMS) {
		take_streams(p, m.value, fds, count);
	} else if (m.type == LAUNCH_ENDED) {
		p->ended = true;
		p->status = m.value;
	}
	return 0;
}

static int start(struct proxy *p, char *const *argv)
{
	int fds[] = { start_describe(argv), STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO,
		      syscall(SYS_pidfd_open, getppid(), 0) };
	const size_t last = sizeof(fds) / sizeof(*fds) - 1;
	int err = fds[0] < 0 ? fds[0] : fds[last] < 0 ? -errno : catch_signals();

	if (!err)
		err = launch_send(p->daemon, LAUNCH_START, 0, fds, last + 1);
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[last] >= 0)
		close(fds[last]);
	return err;
}

static int step(struct proxy *p)
{
	struct pollfd set[] = {
		{ p->ended ? -1 : p->daemon, POLLIN, 0 },
		{ signals[0], POLLIN, 0 },
		{ p->rank[STDOUT_FILENO], POLLIN, 0 },
		{ p->rank[STDERR_FILENO], POLLIN, 0 },
	};

	if (poll(set, sizeof(set) / sizeof(*set), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	for (int n = STDOUT_FILENO; n < STREAMS; n++)
		if (set[1 + n].revents)
			carry_output(p, n);
	if (set[1].revents)
		pass_signals(p);
	return set[0].revents ? hear(p) : 0;
}

static bool is_output_open(const struct proxy *p)
{
	return p->rank[STDOUT_FILENO] >= 0 || p->rank[STDERR_FILENO] >= 0;
}

int proxy_run(int daemon, char *const *argv)
{
	static struct proxy p = { .rank = { -1, -1, -1 } };
	int err;

	p.daemon = daemon;
	err = start(&p, argv);
	if (err)
		return report_errno(err, "cannot have %s started", argv[0]);
	while (!err && (!p.ended || (!p.status && is_output_open(&p))))
		err = step(&p);
	if (!err && p.status)
		carry_rest(&p);
	return err ? report_fail(err, "the daemon of this node has ended, and with it the rank") :
		     p.status;
}

void proxy_end_like(int status)
{
	const struct rlimit none = { 0, 0 };
	sigset_t all;

	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	raise(WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}
