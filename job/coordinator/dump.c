// SPDX-License-Identifier: GPL-2.0
/* Running cr_checkpoint for a rank.  See dump.h. */
#include "job/coordinator/dump.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND		"cr_checkpoint"
#define MAX_ARGUMENTS	32
#define READ_AT_ONCE	4096

extern char **environ;

static int spawn(struct dump *d, char **argv, int in, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int err;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	if (in >= 0)
		posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	else
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

static void close_pair(int ends[2])
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

/* Its output and, if it is to wait, what it waits at. */
static int start(struct dump *d, char **argv, bool waits)
{
	int out[2], hold[2] = { -1, -1 }, err;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (waits && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, hold)) {
		err = -errno;
		close_pair(out);
		return err;
	}
	err = spawn(d, argv, hold[0], out[1]);
	if (err) {
		close_pair(out);
		close_pair(hold);
		return err;
	}
	close(out[1]);
	if (waits)
		close(hold[0]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	d->fd = out[0];
	d->hold = hold[1];
	return 0;
}

int dump_start(struct dump *d, pid_t top, const char *path, char *const *arguments, bool copy,
	       int signal)
{
	char number[16], name[16], *argv[MAX_ARGUMENTS + 10] = { COMMAND, "--tree", "--json" };
	int count = 3, err;

	memset(d, 0, sizeof(*d));
	d->fd = d->hold = -1;
	d->state = copy ? DUMP_CHECKS : DUMP_WRITES;
	d->path = strdup(path);
	if (!d->path)
		return -ENOMEM;
	for (int i = 0; i < MAX_ARGUMENTS && arguments[i]; i++)
		argv[count++] = arguments[i];
	snprintf(number, sizeof(number), "%d", top);
	if (copy) {
		argv[count++] = "--snapshot";
		argv[count++] = "--hold-fd=0";
	} else if (signal) {
		snprintf(name, sizeof(name), "%d", signal);
		argv[count++] = "--signal";
		argv[count++] = name;
		argv[count++] = "--hold-end-fd=0";
	}
	argv[count++] = "--file";
	argv[count++] = d->path;
	argv[count] = number;
	err = start(d, argv, copy || signal);
	if (err) {
		free(d->path);
		d->path = NULL;
	}
	return err;
}

static const char *string_of(const cJSON *json, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));
}

static int take_file(const cJSON *json, struct wire_synced *file)
{
	const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(json, "bytes");
	const char *id = string_of(json, "id");

	if (!cJSON_IsNumber(bytes) || bytes->valuedouble < 0 || !id ||
	    sscanf(id, "%" SCNx64, &file->id) != 1)
		return -EIO;
	file->bytes = bytes->valuedouble;
	return 0;
}

/* What is known of the complete file, and of the older ones: 0, -EIO or -ENOMEM. */
static int take_files(struct dump *d, const cJSON *json)
{
	const cJSON *item, *older = cJSON_GetObjectItemCaseSensitive(json, "older");
	int err;

	d->file = calloc(1 + (size_t)cJSON_GetArraySize(older), sizeof(*d->file));
	if (!d->file)
		return -ENOMEM;
	err = take_file(json, &d->file[d->nr_files++]);
	cJSON_ArrayForEach(item, older)
		err = err ?: take_file(item, &d->file[d->nr_files++]);
	return err;
}

static bool is_event(const cJSON *json, const char *name)
{
	const char *event = string_of(json, "event");

	return event && !strcmp(event, name);
}

static void take_event(struct dump *d, const cJSON *json)
{
	if (is_event(json, "ready")) {
		d->state = DUMP_READY;
	} else if (is_event(json, "released")) {
		d->state = DUMP_RELEASED;
		d->copied = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "copied"));
	} else if (is_event(json, "saved")) {
		job_figures_read(&d->figures, json);
		if (take_files(d, json))
			dump_cancel(d);		/* its end is taken for its failure */
		else
			d->state = DUMP_SAVED;
	}
}

/* The whole lines that are new. */
static void take_events(struct dump *d)
{
	char *line = d->text + d->heard, *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		cJSON *json = cJSON_ParseWithLength(line, end - line);

		take_event(d, json);
		cJSON_Delete(json);
		d->heard = end + 1 - d->text;
	}
}

int dump_read(struct dump *d)
{
	for (;;) {
		char *grown = realloc(d->text, d->length + READ_AT_ONCE + 1);
		ssize_t n;

		if (!grown) {
			kill(d->pid, SIGTERM);
			return 1;
		}
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
		if (d->hold >= 0)
			take_events(d);
	}
}

bool dump_is_held(const struct dump *d)
{
	return d->fd >= 0 && (d->state == DUMP_READY || d->state == DUMP_RELEASED ||
			      d->state == DUMP_SAVED);
}

void dump_go_on(struct dump *d)
{
	d->state++;
	/* If it has ended, its output says so. */
	send(d->hold, "", 1, MSG_NOSIGNAL);
}

/* The last event that it reported: 0 for "done". */
static int outcome(struct dump *d, const char *line, char **message)
{
	cJSON *json = cJSON_Parse(line);
	const char *text = string_of(json, "message");
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(json, "code");
	int err = -EIO;

	if (is_event(json, "done") && d->state == DUMP_ENDS) {
		err = 0;
	} else if (is_event(json, "done")) {
		err = take_files(d, json);
		job_figures_read(&d->figures, json);
	} else if (is_event(json, "error") && cJSON_IsNumber(code) && code->valueint > 0) {
		err = -code->valueint;
	}
	if (err && text)
		*message = strdup(text);
	cJSON_Delete(json);
	return err;
}

static void add_warning(char *all, const char *warning)
{
	size_t used = strlen(all);

	if (warning && used + strlen(warning) + 2 <= DUMP_WARNINGS)
		sprintf(all + used, "%s\n", warning);
}

char *dump_warnings(const struct dump *d)
{
	const char *line = d->text;
	char all[DUMP_WARNINGS] = "";
	const char *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		cJSON *json = cJSON_ParseWithLength(line, end - line);

		if (is_event(json, "warning"))
			add_warning(all, string_of(json, "message"));
		cJSON_Delete(json);
	}
	return *all ? strdup(all) : NULL;
}

int dump_finish(struct dump *d, char **text)
{
	char *line = d->text;
	int err = -EIO;

	*text = NULL;
	if (d->length) {
		if (line[d->length - 1] == '\n')
			line[d->length - 1] = '\0';
		err = outcome(d, strrchr(line, '\n') ? strrchr(line, '\n') + 1 : line, text);
	}
	if (!err)
		*text = dump_warnings(d);
	else if (!*text)
		*text = strdup(COMMAND " ended without a result");
	close(d->fd);
	if (d->hold >= 0)
		close(d->hold);
	d->fd = d->hold = -1;
	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(d->path);
	free(d->text);
	d->path = d->text = NULL;
	if (err) {
		free(d->file);
		d->file = NULL;
	}
	return err;
}

void dump_cancel(struct dump *d)
{
	if (d->fd >= 0)
		kill(d->pid, SIGTERM);
}
