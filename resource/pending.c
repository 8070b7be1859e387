// SPDX-License-Identifier: GPL-2.0
/*
 * Queued signals, with their siginfo.  A thread may queue any siginfo for
 * itself, so every thread queues its own and the leader those of the process,
 * all signals being blocked.  SIGSTOP cannot be blocked, and would stop the process
 * in the middle of that, so it is not saved as a signal: a stopped process needs
 * no other (it may stay queued, for the process or for threads but the first), and a
 * process that got it after it was last checked is stopped after its restart.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "device/device.h"
#include "rebuild/script.h"
#include "report/report.h"

static int save_queue(const struct process_probe *probe, pid_t tid, size_t *n,
		      ProtobufCBinaryData **out)
{
	siginfo_t *info = NULL;
	int count, err = 0;

	if (*out)
		return 0;
	count = device_signals(probe->job, probe->pid, tid, &info);
	if (count <= 0) {
		free(info);
		return count;
	}
	*out = calloc(count, sizeof(**out));
	if (!*out)
		err = -ENOMEM;
	for (int i = 0; !err && i < count; i++) {
		(*out)[i].data = malloc(sizeof(*info));
		if (!(*out)[i].data) {
			err = -ENOMEM;
			break;
		}
		memcpy((*out)[i].data, &info[i], sizeof(*info));
		(*out)[i].len = sizeof(*info);
		*n = i + 1;
	}
	free(info);
	return err ? report_errno(err, "process %d: queued signals", probe->pid) : 0;
}

/* Takes SIGSTOP out of a queue; was it there? */
static bool drop_stop(size_t *n, ProtobufCBinaryData *queue)
{
	size_t kept = 0, before = *n;
	siginfo_t info;

	for (size_t i = 0; i < before; i++) {
		memcpy(&info, queue[i].data, sizeof(info));
		if (info.si_signo == SIGSTOP)
			free(queue[i].data);
		else
			queue[kept++] = queue[i];
	}
	*n = kept;
	return kept < before;
}

/* The queues of its threads have been saved already. */
static int pending_save(const struct process_probe *probe, Kcr__Process *p)
{
	int err = save_queue(probe, 0, &p->n_pending, &p->pending);
	bool stop = drop_stop(&p->n_pending, p->pending);

	for (size_t i = 0; i < p->n_thread; i++)
		stop |= drop_stop(&p->thread[i]->n_pending, p->thread[i]->pending);
	if (stop && p->state != KCR__PROCESS__STATE__STOPPED)
		p->has_stop_after = p->stop_after = true;
	return err;
}

static int pending_save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	return save_queue(probe, t->tid, &t->n_pending, &t->pending);
}

/* Copies the siginfo for a script; its signal number, or -EINVAL. */
static int siginfo_of(pid_t pid, const ProtobufCBinaryData *from, siginfo_t *info)
{
	if (from->len == sizeof(*info)) {
		memcpy(info, from->data, sizeof(*info));
		if (info->si_signo > 0 && info->si_signo <= 64 &&
		    info->si_signo != SIGKILL)
			return info->si_signo;
	}
	return report_fail(-EINVAL, "process %d: the context file has a bad queued signal", pid);
}

static int pending_script_thread(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
				 struct script *s)
{
	pid_t pid = rebuilt_tid(r, p, p->pid), tid = rebuilt_tid(r, p, t->tid);
	siginfo_t info;

	if (t->n_pending && !tid) {
		report_warn("thread %d has a new ID: its queued signals are lost", t->tid);
		return 0;
	}
	for (size_t i = 0; i < t->n_pending; i++) {
		int signal = siginfo_of(p->pid, &t->pending[i], &info);

		if (signal < 0)
			return signal;
		if (signal == SIGSTOP)	/* of a version that saved it */
			continue;
		script_call(s, "rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, pid, tid, signal,
			    script_data(s, &info, sizeof(info)), 0, 0);
	}
	return 0;
}

static int pending_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	pid_t pid = rebuilt_tid(r, p, p->pid);
	siginfo_t info;

	for (size_t i = 0; i < p->n_pending; i++) {
		int signal = siginfo_of(p->pid, &p->pending[i], &info);

		if (signal < 0)
			return signal;
		if (signal == SIGSTOP)	/* of a version that saved it */
			continue;
		script_call(s, "rt_sigqueueinfo", SYS_rt_sigqueueinfo, pid, signal,
			    script_data(s, &info, sizeof(info)), 0, 0, 0);
	}
	return 0;
}

const struct attribute attribute_pending = {
	.name = "queued signals",
	.save = pending_save,
	.save_thread = pending_save_thread,
	.script_thread = pending_script_thread,
	.script_last = pending_script_last,
};
