// SPDX-License-Identifier: GPL-2.0
/*
 * Processes with callbacks (libcr): notifying them before they are stopped,
 * handling their answers, and letting them finish before the others go on.
 * The module knows which they are; a scope without any costs one call.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/clock.h"
#include "proc/handle.h"
#include "report/code.h"
#include "report/report.h"

/* How long to hold threads a callback may wait for, or wait before stopping clients again. */
#define HOLD_MS		5000u
#define MARGIN_NS	50000000ull	/* kept of --time for reporting the failure */

/* Milliseconds left of --time, at least 1; 0: there is no limit. */
static unsigned int time_left(const struct checkpoint *c)
{
	uint64_t now = now_ns() + MARGIN_NS;

	if (!c->deadline_ns)
		return 0;
	return c->deadline_ns > now + 1000000 ? (c->deadline_ns - now) / 1000000 : 1;
}

/* ---- their answers ---------------------------------------------------------------- */

/* A callback refused the checkpoint, temporarily or for good: cancels it and reports. */
static int refused(struct checkpoint *c, const struct kcr_notify *notify)
{
	bool kill = notify->event == KCR_EVENT_PERMANENT;
	int error = notify->result ?: kill ? CR_EPERMFAIL : CR_ETEMPFAIL;

	device_cancel(c->attempt.job, error, kill);
	c->attempt.clients.cancelled = true;
	if (!kill)
		return report_fail(-error, "process %d does not want to be checkpointed now "
				   "(error %d)", notify->pid, error);
	clients_forget_stopped(c);
	return report_fail(-error, "process %d gave up in a callback (error %d): all its processes "
			   "were killed", notify->pid, error);
}

static int remember_stopped(struct checkpoint *c, pid_t pid)
{
	int *larger = realloc(c->woken_handle, (c->woken.count + 1) * sizeof(*larger));
	int fd, err;

	if (!larger)
		return report_errno(-ENOMEM, "list of processes");
	c->woken_handle = larger;
	fd = stop_handle(c, pid);
	if (fd < 0)
		return fd == -ESRCH ? 0 : fd;
	err = pid_list_add(&c->woken, pid);
	if (err) {
		close(fd);
		return err;
	}
	c->woken_handle[c->woken.count - 1] = fd;
	handle_signal(fd, SIGCONT);
	return 0;
}

/* 1: all are ready; 0: wait for the next answer; -errno. */
static int handle(struct checkpoint *c, struct kcr_notify *notify)
{
	switch (notify->event) {
	case KCR_EVENT_READY:
		c->attempt.clients.count = notify->nr_clients;
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

static int notify_all(struct checkpoint *c)
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

	destination_path(c->destination, path, sizeof(path));
	while (!ret) {
		notify.timeout_ms = time_left(c);
		ret = device_notify(c->attempt.job, &notify);
		if (ret == -ETIMEDOUT) {
			device_cancel(c->attempt.job, ETIMEDOUT, false);
			c->attempt.clients.cancelled = true;
		}
		if (!ret)
			ret = handle(c, &notify);
		if (notify.event != KCR_EVENT_FORWARD)
			notify.pid = notify.result = 0;
	}
	return ret < 0 ? ret : 0;
}

int clients_notify(struct checkpoint *c)
{
	uint64_t start = now_ns();
	int err;

	if (c->obstacle)	/* nothing is saved, so no callback is to run; the module does not mind */
		return 0;
	err = notify_all(c);
	c->result->notify_ns += now_ns() - start;
	return err;
}

/* ---- the end ------------------------------------------------------------------------ */

static int wait_until_done(struct checkpoint *c, unsigned int timeout_ms)
{
	pid_t pid;
	int code, err = device_finish(c->attempt.job, timeout_ms, &code, &pid);

	if (!err && code)
		err = report_fail(-code, "process %d ended the checkpoint in a callback (error %d)",
				  pid, code);
	return err;
}

static int finish_all(struct checkpoint *c)
{
	unsigned int left = time_left(c);
	bool bounded = left && left < HOLD_MS;
	int err = device_release_clients(c->attempt.job);

	if (!err)
		err = wait_until_done(c, bounded ? left : HOLD_MS);
	if (err != -ETIMEDOUT || bounded)
		return err;
	report_clear();
	/* What they did before their end would be lost, or done twice. */
	if (c->options->ends)
		return 0;
	err = stop_run_on(c, 0);
	c->attempt.members.released = true;
	return err ? err : wait_until_done(c, time_left(c));
}

int clients_finish(struct checkpoint *c)
{
	uint64_t start = now_ns();
	int err;

	if (!c->attempt.clients.count)
		return 0;
	c->attempt.clients.count = 0;
	err = finish_all(c);
	c->result->finish_ns = now_ns() - start;
	return err;
}

bool clients_was_stopped(const struct checkpoint *c, pid_t pid)
{
	return pid_list_has(&c->woken, pid);
}

void clients_forget_stopped(struct checkpoint *c)
{
	handles_close(c->woken_handle, c->woken.count);
	c->woken_handle = NULL;
	c->woken.count = 0;
}

void clients_stop_again(struct checkpoint *c)
{
	for (size_t i = 0; i < c->woken.count; i++)
		handle_signal(c->woken_handle[i], SIGSTOP);
	clients_forget_stopped(c);
}

/*
 * Callbacks finish first: a process stopped within one could not be notified
 * again.  Failures here are not reported: the first one matters.
 */
void clients_give_up(struct checkpoint *c)
{
	bool said = report_message();
	pid_t pid;
	int code;

	if (!c->woken.count)
		return;
	if (!c->attempt.clients.cancelled)
		device_cancel(c->attempt.job, ECANCELED, false);
	if (!c->attempt.members.released)
		device_release(c->attempt.job, 0, &c->result->stopped_ns);
	device_finish(c->attempt.job, HOLD_MS, &code, &pid);
	if (!said)
		report_clear();
	clients_stop_again(c);
}
