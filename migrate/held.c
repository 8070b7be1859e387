// SPDX-License-Identifier: GPL-2.0
/* See held.h. */
#include "migrate/held.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/report.h"

/* --run-on-success makes it end when the program runs, which is then nobody's child. */
static void become(const struct held_work *work, int fd)
{
	const struct target_options *o = work->options;
	const char *argument[16 + 1];
	char hold[32], pages[32];
	size_t n = 0, given = 0;
	char **all;

	snprintf(hold, sizeof(hold), "--hold-fd=%d", fd);
	argument[n++] = "cr_restart";
	if (o->detach)
		argument[n++] = "--run-on-success=:";
	if (work->check)
		argument[n++] = "--check";
	argument[n++] = hold;
	if (work->lazy)
		argument[n++] = "--lazy";
	if (work->pages_fd >= 0) {
		snprintf(pages, sizeof(pages), "--pages-fd=%d", work->pages_fd);
		argument[n++] = pages;
		fcntl(work->pages_fd, F_SETFD, 0);
	}
	if (work->file) {
		argument[n++] = "-f";
		argument[n++] = work->file;
	}
	while (o->arguments[given])
		given++;
	all = calloc(n + given + 1, sizeof(*all));
	if (!all)
		_exit(ENOMEM);
	memcpy(all, argument, n * sizeof(*all));
	memcpy(all + n, o->arguments, given * sizeof(*all));
	fcntl(fd, F_SETFD, 0);
	execv(o->restart, all);
	_exit(127);
}

/* The connection is not for the program before it runs, nor ever with --detach. */
static void prepare(const struct held_work *work)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (!work->options->detach && !work->check)
		return;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(126);
	if (work->options->detach)
		setsid();
}

int held_start(struct held *h, const struct held_work *work)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return report_errno(-errno, "cr_restart");
	h->pid = fork();
	if (!h->pid) {
		prepare(work);
		become(work, ends[1]);
	}
	close(ends[1]);
	h->fd = ends[0];
	if (h->pid > 0)
		return 0;
	h->pid = 0;
	return report_errno(-errno, "cannot run %s", work->options->restart);
}

/* A line without its end; false: it has ended, or its end of the socket is closed. */
static bool read_line(int fd, char *line, size_t size)
{
	size_t used = 0;
	char byte = 0;

	while (byte != '\n') {
		ssize_t n = read(fd, &byte, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		if (byte != '\n' && used < size - 1)
			line[used++] = byte;
	}
	line[used] = '\0';
	return true;
}

enum held_state held_listen(struct held *h, struct link_failure *failure)
{
	char line[sizeof(failure->text) + 32];
	int used = 0;

	memset(failure, 0, sizeof(*failure));
	if (!read_line(h->fd, line, sizeof(line)))
		return HELD_ENDED;
	if (!strcmp(line, "held"))
		return HELD_READY;
	if (!strcmp(line, "running"))
		return HELD_RUNNING;
	if (!strcmp(line, "loaded"))
		return HELD_LOADED;
	if (sscanf(line, "failed %d %n", &failure->code, &used) < 1)
		failure->code = EPROTO;
	snprintf(failure->text, sizeof(failure->text), "%.1000s", line + used);
	return HELD_FAILED;
}

/* If it has gone, held_listen() says so. */
static void say(struct held *h, const char *text)
{
	if (send(h->fd, text, strlen(text) + 1, MSG_NOSIGNAL) < 0)
		return;
}

void held_name(struct held *h, const char *file)
{
	say(h, file);
}

void held_let_go(struct held *h)
{
	say(h, "");
}

int held_end(struct held *h)
{
	int status = 0;

	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
	while (h->pid > 0 && waitpid(h->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	h->pid = 0;
	return status;
}
