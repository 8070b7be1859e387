// SPDX-License-Identifier: GPL-2.0
/* Steps in a process of their own: what they have to say comes by a pipe when they are done. */
#include "resource/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct answer {
	int err;
	size_t length;			/* of the data, which come last */
};

static int put(int fd, const void *data, size_t length)
{
	ssize_t n;

	for (size_t at = 0; at < length; at += n) {
		n = write(fd, (const char *)data + at, length - at);
		if (n <= 0)
			return -EPIPE;
	}
	return 0;
}

static int get(int fd, void *data, size_t length)
{
	ssize_t n;

	for (size_t at = 0; at < length; at += n) {
		n = read(fd, (char *)data + at, length - at);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return -EIO;
	}
	return 0;
}

/* In a session of its own, neither the terminal nor a signal to the group of its parent reaches it. */
static void hide(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
}

static void act(const int ends[2], apart_step step, void *arg, size_t size)
{
	ProtobufCBinaryData data = {};
	struct answer answer;

	hide();
	close(ends[0]);
	answer.err = step(arg, &data);
	answer.length = answer.err ? 0 : data.len;
	if (!put(ends[1], &answer, sizeof(answer)) && !put(ends[1], arg, size))
		put(ends[1], data.data, answer.length);
	_exit(0);
}

static int take(int fd, void *arg, size_t size, ProtobufCBinaryData *data)
{
	struct answer answer;
	int err = get(fd, &answer, sizeof(answer)) ?: get(fd, arg, size) ?: answer.err;

	if (err)
		return err;
	data->data = malloc(answer.length + 1);
	if (!data->data)
		return -ENOMEM;
	data->len = answer.length;
	return get(fd, data->data, data->len);
}

static void reap(pid_t pid)
{
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int apart_do(apart_step step, void *arg, size_t size, ProtobufCBinaryData *data)
{
	int ends[2], err;
	pid_t pid;

	*data = (ProtobufCBinaryData){};
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (!pid)
		act(ends, step, arg, size);
	close(ends[1]);
	if (!err)
		err = take(ends[0], arg, size, data);
	close(ends[0]);
	reap(pid);
	return err;
}

/* The pipe ends with the process that has its other end, whatever ends that. */
static void wait_to_undo(const int ends[2], void (*undo)(void *arg), void *arg)
{
	char none;

	hide();
	close(ends[1]);
	if (!read(ends[0], &none, sizeof(none)))
		undo(arg);
	_exit(0);
}

struct apart_guard apart_guard(void (*undo)(void *arg), void *arg)
{
	struct apart_guard guard = { .pid = -1, .fd = -1 };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return guard;
	guard.pid = fork();
	if (!guard.pid)
		wait_to_undo(ends, undo, arg);
	close(ends[0]);
	guard.fd = ends[1];
	return guard;
}

void apart_unguard(const struct apart_guard *guard)
{
	if (guard->pid > 0)
		kill(guard->pid, SIGKILL);
	reap(guard->pid);
	if (guard->fd >= 0)
		close(guard->fd);
}
