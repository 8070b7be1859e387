// SPDX-License-Identifier: GPL-2.0
/* The two lines that are sent over mpirun's unix socket.  See request.h. */
#include "job/request.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SIGNAL_MAX	64
#define BYTES_MAX	1e18
#define TIME_MAX	1e15		/* ms */

/* ---- lines ------------------------------------------------------------------- */

/* 0 if it is missing; -1 if it is not a number from 0 to `most`. */
static double get_number(const cJSON *json, const char *name, double most)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

	if (!cJSON_IsNumber(item))
		return 0;
	return item->valuedouble >= 0 && item->valuedouble <= most ? item->valuedouble : -1;
}

static char *get_string(const cJSON *json, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));

	return text ? strdup(text) : NULL;
}

static char *print_and_delete(cJSON *json)
{
	char *text = cJSON_PrintUnformatted(json);

	cJSON_Delete(json);
	return text;
}

char *job_request_format(const struct job_request *request)
{
	cJSON *json = cJSON_CreateObject();
	cJSON *arguments;

	cJSON_AddStringToObject(json, "request", "checkpoint");
	cJSON_AddStringToObject(json, "path", request->path);
	cJSON_AddNumberToObject(json, "signal", request->signal);
	cJSON_AddNumberToObject(json, "timeout", request->timeout_s);
	cJSON_AddNumberToObject(json, "keep", request->keep);
	if (request->local)
		cJSON_AddStringToObject(json, "local", request->local);
	if (request->snapshot)
		cJSON_AddTrueToObject(json, "snapshot");
	if (request->incremental)
		cJSON_AddTrueToObject(json, "incremental");
	if (request->parent)
		cJSON_AddStringToObject(json, "parent", request->parent);
	arguments = cJSON_AddArrayToObject(json, "arguments");
	for (size_t i = 0; i < request->nr_arguments; i++)
		cJSON_AddItemToArray(arguments, cJSON_CreateString(request->argument[i]));
	return print_and_delete(json);
}

static int get_numbers(const cJSON *json, struct job_request *out)
{
	double signal = get_number(json, "signal", SIGNAL_MAX);
	double timeout = get_number(json, "timeout", INT_MAX), keep = get_number(json, "keep", INT_MAX);

	if (signal < 0 || timeout < 0 || keep < 1)
		return -EINVAL;
	out->signal = signal;
	out->timeout_s = timeout;
	out->keep = keep;
	return 0;
}

int job_request_parse(const char *line, struct job_request *out)
{
	cJSON *json = cJSON_Parse(line);
	const cJSON *item, *kind;

	memset(out, 0, sizeof(*out));
	if (!json)
		return -EINVAL;
	kind = cJSON_GetObjectItemCaseSensitive(json, "request");
	out->path = get_string(json, "path");
	out->local = get_string(json, "local");
	out->parent = get_string(json, "parent");
	out->snapshot = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "snapshot"));
	out->incremental = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "incremental"));
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "arguments"))
		if (cJSON_IsString(item) && out->nr_arguments < JOB_MAX_ARGUMENTS)
			out->argument[out->nr_arguments++] = strdup(item->valuestring);
	if (!cJSON_IsString(kind) || strcmp(kind->valuestring, "checkpoint") || !out->path ||
	    *out->path != '/' || (out->local && *out->local != '/') ||
	    (out->parent && *out->parent != '/') || get_numbers(json, out)) {
		cJSON_Delete(json);
		job_request_free(out);
		return -EINVAL;
	}
	cJSON_Delete(json);
	return 0;
}

int job_request_add(struct job_request *request, const char *argument)
{
	char *copy;

	if (request->nr_arguments == JOB_MAX_ARGUMENTS)
		return -E2BIG;
	copy = strdup(argument);
	if (!copy)
		return -ENOMEM;
	request->argument[request->nr_arguments++] = copy;
	return 0;
}

void job_request_free(struct job_request *request)
{
	free(request->path);
	free(request->local);
	free(request->parent);
	for (size_t i = 0; i < request->nr_arguments; i++)
		free(request->argument[i]);
	memset(request, 0, sizeof(*request));
}

static void add_warnings(cJSON *json, const struct job_answer *answer)
{
	cJSON *list = cJSON_AddArrayToObject(json, "warnings");

	for (size_t i = 0; i < JOB_MAX_WARNINGS && answer->warning[i]; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(answer->warning[i]));
}

static void get_warnings(const cJSON *json, struct job_answer *out)
{
	const cJSON *item;
	size_t count = 0;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "warnings"))
		if (cJSON_IsString(item) && count < JOB_MAX_WARNINGS)
			out->warning[count++] = strdup(item->valuestring);
}

char *job_answer_format(const struct job_answer *answer)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "code", answer->code);
	if (answer->message)
		cJSON_AddStringToObject(json, "message", answer->message);
	if (answer->code)
		return print_and_delete(json);
	cJSON_AddStringToObject(json, "path", answer->path);
	cJSON_AddNumberToObject(json, "ranks", answer->ranks);
	cJSON_AddNumberToObject(json, "not_copied", answer->not_copied);
	cJSON_AddNumberToObject(json, "bytes", (double)answer->bytes);
	cJSON_AddNumberToObject(json, "gate_ms", answer->gate_ms);
	cJSON_AddNumberToObject(json, "drain_ms", answer->drain_ms);
	cJSON_AddNumberToObject(json, "copy_ms", answer->copy_ms);
	cJSON_AddNumberToObject(json, "dump_ms", answer->dump_ms);
	cJSON_AddNumberToObject(json, "commit_ms", answer->commit_ms);
	cJSON_AddNumberToObject(json, "stopped_ms", answer->stopped_ms);
	job_figures_write(&answer->figures, cJSON_AddObjectToObject(json, "figures"));
	if (answer->committed)
		cJSON_AddTrueToObject(json, "committed");
	if (answer->warning[0])
		add_warnings(json, answer);
	return print_and_delete(json);
}

int job_answer_parse(const char *line, struct job_answer *out)
{
	cJSON *json = cJSON_Parse(line);
	double code = get_number(json, "code", INT_MAX), ranks = get_number(json, "ranks", UINT32_MAX);
	double bytes = get_number(json, "bytes", BYTES_MAX);
	double not_copied = get_number(json, "not_copied", UINT32_MAX);

	memset(out, 0, sizeof(*out));
	if (!cJSON_HasObjectItem(json, "code") || code < 0 || ranks < 0 || bytes < 0 ||
	    not_copied < 0) {
		cJSON_Delete(json);
		return -EINVAL;
	}
	out->code = code;
	out->message = get_string(json, "message");
	out->path = get_string(json, "path");
	out->ranks = ranks;
	out->not_copied = not_copied;
	out->bytes = bytes;
	out->gate_ms = get_number(json, "gate_ms", TIME_MAX);
	out->drain_ms = get_number(json, "drain_ms", TIME_MAX);
	out->copy_ms = get_number(json, "copy_ms", TIME_MAX);
	out->dump_ms = get_number(json, "dump_ms", TIME_MAX);
	out->commit_ms = get_number(json, "commit_ms", TIME_MAX);
	out->stopped_ms = get_number(json, "stopped_ms", TIME_MAX);
	out->committed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "committed"));
	job_figures_read(&out->figures, cJSON_GetObjectItemCaseSensitive(json, "figures"));
	get_warnings(json, out);
	cJSON_Delete(json);
	return 0;
}

void job_answer_free(struct job_answer *answer)
{
	free(answer->message);
	for (size_t i = 0; i < JOB_MAX_WARNINGS; i++)
		free(answer->warning[i]);
	free(answer->path);
	memset(answer, 0, sizeof(*answer));
}

/* ---- asking --------------------------------------------------------------------- */

static int send_line(int fd, const char *line)
{
	size_t length = strlen(line), done = 0;

	while (done <= length) {	/* with a newline in place of the NUL */
		ssize_t n = done < length ? send(fd, line + done, length - done, MSG_NOSIGNAL) :
					    send(fd, "\n", 1, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? n : 0;
	}
	return 0;
}

/* Byte by byte: another line may follow. */
static int receive_line(int fd, char *line, size_t size)
{
	size_t length = 0;

	while (length < size - 1) {
		ssize_t n = recv(fd, line + length, 1, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -ECONNRESET;
		length += n;
		line[length] = '\0';
		if (line[length - 1] == '\n')
			return 0;
	}
	return -EMSGSIZE;
}

static int receive_answer(int fd, char *line, struct job_answer *answer)
{
	int err = receive_line(fd, line, JOB_LINE_MAX);

	return err ?: job_answer_parse(line, answer);
}

int job_ask(int fd, const struct job_request *request, struct job_answer *answer)
{
	char *line = job_request_format(request);
	char *reply = malloc(JOB_LINE_MAX);
	int err = line && reply ? send_line(fd, line) : -ENOMEM;
	struct job_answer last;

	if (!err)
		err = receive_answer(fd, reply, answer);
	/* If no other one follows, the signal has ended mpirun. */
	if (!err && answer->committed && !receive_answer(fd, reply, &last)) {
		job_answer_free(answer);
		*answer = last;
	}
	free(line);
	free(reply);
	return err;
}
