// SPDX-License-Identifier: GPL-2.0
/* Running cr_checkpoint for a rank.  See dump.h. */
#include "job/coordinator/dump.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND		"cr_checkpoint"
#define MAX_ARGUMENTS	32
#define READ_AT_ONCE	4096

extern char **environ;

static int spawn(struct dump *d, char **argv, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err = posix_spawnp(&d->pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int dump_start(struct dump *d, pid_t top, const char *path, char *const *arguments)
{
	char number[16], *argv[MAX_ARGUMENTS + 8] = { COMMAND, "--tree", "--json", "--clobber" };
	int count = 4, ends[2], err;

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->path = strdup(path);
	if (!d->path || pipe2(ends, O_CLOEXEC)) {
		free(d->path);
		return -ENOMEM;
	}
	for (int i = 0; i < MAX_ARGUMENTS && arguments[i]; i++)
		argv[count++] = arguments[i];
	snprintf(number, sizeof(number), "%d", top);
	argv[count++] = "--file";
	argv[count++] = d->path;
	argv[count] = number;
	err = spawn(d, argv, ends[1]);
	close(ends[1]);
	if (err) {
		close(ends[0]);
		free(d->path);
		return err;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	d->fd = ends[0];
	return 0;
}

int dump_read(struct dump *d)
{
	for (;;) {
		char *grown = realloc(d->text, d->length + READ_AT_ONCE + 1);
		ssize_t n;

		if (!grown)
			return 1;
		d->text = grown;
		n = read(d->fd, d->text + d->length, READ_AT_ONCE);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 1;
		d->length += n;
		d->text[d->length] = '\0';
	}
}

/* The last event that it reported: 0 for "done". */
static int outcome(const char *line, char **message)
{
	cJSON *json = cJSON_Parse(line);
	const char *event = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "event"));
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "message"));
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(json, "code");
	int err = -EIO;

	if (event && !strcmp(event, "done"))
		err = 0;
	else if (event && !strcmp(event, "error") && cJSON_IsNumber(code) && code->valueint > 0)
		err = -code->valueint;
	if (err && text)
		*message = strdup(text);
	cJSON_Delete(json);
	return err;
}

int dump_finish(struct dump *d, char **message)
{
	char *line = d->text;
	int err = -EIO;

	*message = NULL;
	if (d->length) {
		if (line[d->length - 1] == '\n')
			line[d->length - 1] = '\0';
		err = outcome(strrchr(line, '\n') ? strrchr(line, '\n') + 1 : line, message);
	}
	if (err && !*message)
		*message = strdup(COMMAND " ended without a result");
	close(d->fd);
	d->fd = -1;
	free(d->path);
	free(d->text);
	d->path = d->text = NULL;
	return err;
}

void dump_cancel(struct dump *d)
{
	if (d->fd >= 0)
		kill(d->pid, SIGTERM);
}
