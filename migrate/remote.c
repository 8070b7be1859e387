// SPDX-License-Identifier: GPL-2.0
/* See remote.h. */
#include "migrate/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migrate/relay.h"
#include "report/report.h"

#define SAFE	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"

/* In apostrophes, each of its own as '\''. */
static void quote(FILE *out, const char *argument)
{
	if (*argument && strspn(argument, SAFE) == strlen(argument)) {
		fputs(argument, out);
		return;
	}
	putc('\'', out);
	for (; *argument; argument++)
		if (*argument == '\'')
			fputs("'\\''", out);
		else
			putc(*argument, out);
	putc('\'', out);
}

int remote_quote(char **line, const char *argument)
{
	char *longer = NULL;
	size_t size;
	FILE *out = open_memstream(&longer, &size);
	bool failed = !out;

	if (out) {
		if (*line)
			fprintf(out, "%s ", *line);
		quote(out, argument);
		failed = ferror(out);
		failed |= fclose(out) != 0;
	}
	if (failed) {
		free(longer);
		return report_errno(-ENOMEM, "the remote command");
	}
	free(*line);
	*line = longer;
	return 0;
}

/* It ends with us: whoever waits for a host that does not answer has nothing to wait for. */
static void become(const int *input, const int *output, const char *script, const char *host,
		   const char *command, bool lasting)
{
	static const int of_terminal[] = { SIGINT, SIGQUIT, SIGHUP };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (size_t i = 0; lasting && i < sizeof(of_terminal) / sizeof(*of_terminal); i++)
		signal(of_terminal[i], SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(input[0], STDIN_FILENO) < 0 || dup2(output[1], STDOUT_FILENO) < 0)
		_exit(126);
	execlp("sh", "sh", "-c", script, "sh", host, command, NULL);
	_exit(127);
}

static int start(struct remote *r, const char *script, const char *host, const char *command)
{
	int input[2], output[2];

	if (pipe2(input, O_CLOEXEC))
		return -errno;
	if (pipe2(output, O_CLOEXEC)) {
		int err = -errno;

		close(input[0]);
		close(input[1]);
		return err;
	}
	r->pid = fork();
	if (!r->pid)
		become(input, output, script, host, command, r->lasting);
	close(input[0]);
	close(output[1]);
	r->link = (struct link){ .in = output[0], .out = input[1] };
	return r->pid < 0 ? -errno : 0;
}

int remote_start(struct remote *r, const char *rsh, const char *host, const char *command)
{
	char *script;
	int err;

	if (asprintf(&script, "%s \"$@\"", rsh) < 0)
		return report_errno(-ENOMEM, "%s", rsh);
	err = start(r, script, host, command);
	free(script);
	return err ? report_errno(err, "cannot run %s", rsh) : 0;
}

void remote_relay(struct remote *r)
{
	struct relay_way output = { r->link.in, STDOUT_FILENO, .ends = true };
	struct relay_way input = { STDIN_FILENO, r->link.out, .ends = false };

	/* It is ours alone. */
	fcntl(r->link.out, F_SETFL, O_NONBLOCK);
	relay_both(&output, &input);
	r->link.out = input.to;
}

int remote_end(struct remote *r)
{
	int status = 0;

	if (r->link.out >= 0)
		close(r->link.out);
	if (r->link.in >= 0)
		close(r->link.in);
	r->link = (struct link){ .in = -1, .out = -1 };
	while (r->pid > 0 && waitpid(r->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	r->pid = 0;
	return status;
}
