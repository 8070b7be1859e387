// SPDX-License-Identifier: GPL-2.0
/*
 * Processes with callbacks (libcr): telling them before they are stopped,
 * deciding about their answers, and letting them finish before the others go
 * on.  The module knows who they are; a scope without any costs one call.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device/device.h"
#include "proc/clock.h"
#include "proc/proc.h"
#include "report/code.h"
#include "report/report.h"

/* Threads that a callback may be waiting for, or callbacks of who is to be stopped again. */
#define HOLD_MS		5000u
#define MARGIN_NS	50000000ull	/* left of --time to say why it failed */

/* Milliseconds left of --time, at least 1; 0: there is no limit. */
static unsigned int time_left(const struct checkpoint *c)
{
	uint64_t now = now_ns() + MARGIN_NS;

	if (!c->deadline_ns)
		return 0;
	return c->deadline_ns > now + 1000000 ? (c->deadline_ns - now) / 1000000 : 1;
}

/* ---- what they are told ---------------------------------------------------------- */

static void path_of_descriptor(int fd, char *path, size_t size)
{
	ssize_t length = proc_fd_link(fd, path, size - 2);
	struct stat st;

	if (length < 0 || path[0] != '/')
		length = 0;
	path[length] = '\0';
	if (length && !stat(path, &st) && S_ISDIR(st.st_mode))
		strcat(path, "/.");
}

/* Absolute; "": it has none. */
static void path_of_destination(const struct checkpoint *c, char *path, size_t size)
{
	const struct destination *d = &c->destination;
	size_t length;

	if (d->dir_fd < 0) {
		path_of_descriptor(d->fd, path, size);
		return;
	}
	path_of_descriptor(d->dir_fd, path, size);
	length = strlen(path);
	if (length < 2 || length + strlen(d->name) >= size)
		path[0] = '\0';
	else
		strcpy(path + length - 1, d->name);	/* in the place of the dot */
}

/* ---- what they answer ------------------------------------------------------------- */

/* The request is over: its error, and what a callback made of it. */
static int refused(struct checkpoint *c, const struct kcr_notify *notify)
{
	bool kill = notify->event == KCR_EVENT_PERMANENT;
	int error = notify->result ?: kill ? CR_EPERMFAIL : CR_ETEMPFAIL;

	device_cancel(c->job, error, kill);
	c->cancelled = true;
	if (!kill)
		return report_fail(-error, "process %d does not want to be checkpointed now "
				   "(error %d)", notify->pid, error);
	c->nr_woken = 0;
	return report_fail(-error, "process %d gave up in a callback (error %d): all its processes "
			   "were killed", notify->pid, error);
}

static int remember_stopped(struct checkpoint *c, pid_t pid)
{
	pid_t *larger = realloc(c->woken, (c->nr_woken + 1) * sizeof(*larger));

	if (!larger)
		return report_errno(-ENOMEM, "list of processes");
	c->woken = larger;
	c->woken[c->nr_woken++] = pid;
	kill(pid, SIGCONT);
	return 0;
}

/* 1: all are ready; 0: ask again; -errno. */
static int handle(struct checkpoint *c, struct kcr_notify *notify)
{
	switch (notify->event) {
	case KCR_EVENT_READY:
		c->nr_clients = notify->nr_clients;
		return 1;
	case KCR_EVENT_OMIT:
		c->omission = true;
		return exclude(c, notify->pid, "a callback asked for that");
	case KCR_EVENT_STOPPED:
		return remember_stopped(c, notify->pid);
	case KCR_EVENT_FORWARD:
		return forward_add(c, notify);
	default:
		return refused(c, notify);
	}
}

int clients_notify(struct checkpoint *c)
{
	char path[KCR_PATH_MAX];
	struct kcr_notify notify = {
		.size = sizeof(notify), .path = (uintptr_t)path,
		.notice = {
			.target = c->options->target, .scope = c->options->scope,
			.signal = c->options->signal,
			.requester = c->options->requester,
		},
	};
	int ret = 0;

	path_of_destination(c, path, sizeof(path));
	while (!ret) {
		notify.timeout_ms = time_left(c);
		ret = device_notify(c->job, &notify);
		if (ret == -ETIMEDOUT) {
			device_cancel(c->job, ETIMEDOUT, false);
			c->cancelled = true;
		}
		if (!ret)
			ret = handle(c, &notify);
		if (notify.event != KCR_EVENT_FORWARD)
			notify.pid = notify.result = 0;
	}
	return ret < 0 ? ret : 0;
}

/* ---- the end ------------------------------------------------------------------------ */

static int wait_until_done(struct checkpoint *c, unsigned int timeout_ms)
{
	pid_t pid;
	int code, err = device_finish(c->job, timeout_ms, &code, &pid);

	if (!err && code)
		err = report_fail(-code, "process %d ended the checkpoint in a callback (error %d)",
				  pid, code);
	return err;
}

int clients_finish(struct checkpoint *c)
{
	unsigned int left = time_left(c);
	bool bounded = left && left < HOLD_MS;
	int err;

	if (!c->nr_clients)
		return 0;
	c->nr_clients = 0;
	err = device_release_clients(c->job);
	if (!err)
		err = wait_until_done(c, bounded ? left : HOLD_MS);
	if (err != -ETIMEDOUT || bounded)
		return err;
	report_clear();
	err = device_release(c->job, 0, &c->result->stopped_ns);
	c->released = true;
	return err ? err : wait_until_done(c, time_left(c));
}

bool clients_was_stopped(const struct checkpoint *c, pid_t pid)
{
	for (size_t i = 0; i < c->nr_woken; i++)
		if (c->woken[i] == pid)
			return true;
	return false;
}

void clients_stop_again(struct checkpoint *c)
{
	for (size_t i = 0; i < c->nr_woken; i++)
		kill(c->woken[i], SIGSTOP);
	c->nr_woken = 0;
}

/*
 * Callbacks come to their end first: a process that is stopped in one could not
 * be asked again.  What goes wrong here says nothing new.
 */
void clients_give_up(struct checkpoint *c)
{
	bool said = report_message();
	pid_t pid;
	int code;

	if (!c->nr_woken)
		return;
	if (!c->cancelled)
		device_cancel(c->job, ECANCELED, false);
	if (!c->released)
		device_release(c->job, 0, &c->result->stopped_ns);
	device_finish(c->job, HOLD_MS, &code, &pid);
	if (!said)
		report_clear();
	clients_stop_again(c);
}
