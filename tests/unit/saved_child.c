// SPDX-License-Identifier: GPL-2.0
/* Children that are saved and rebuilt without the module.  See saved_child.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/proc.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "saved_child.h"

/* ---- what the module and the script do in a restart ------------------------------ */

siginfo_t canned_signal;
int nr_canned_signals;
struct kcr_timer canned_timer[CHILD_TIMERS];
int nr_canned_timers;

int device_signals(int job, pid_t pid, pid_t tid, siginfo_t **out)
{
	(void)job;
	(void)pid;
	if (tid || !nr_canned_signals)
		return 0;
	*out = malloc(sizeof(**out));
	**out = canned_signal;
	return 1;
}

int device_timers(int job, pid_t pid, struct kcr_timer **out)
{
	(void)job;
	(void)pid;
	*out = malloc(sizeof(canned_timer));
	memcpy(*out, canned_timer, sizeof(canned_timer));
	return nr_canned_timers;
}

/* Only a parked process is asked. */
int device_aio(int job, pid_t pid, struct kcr_aio_context **out)
{
	(void)job;
	(void)pid;
	*out = NULL;
	return 0;
}

int device_read(int job, pid_t pid, uint32_t flags, void *buffer, const struct kcr_run *runs,
		size_t count, uint64_t *sum)
{
	(void)job;
	(void)pid;
	(void)flags;
	(void)buffer;
	(void)runs;
	(void)count;
	(void)sum;
	return -EIO;
}

static long make_call(const char *label, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t a3, uint64_t a4, uint64_t a5)
{
	long result = syscall(nr, a0, a1, a2, a3, a4, a5);

	if (result < 0)
		fprintf(stderr, "# %s: %s\n", label, strerror(errno));
	return result;
}

bool child_script_failed;
static bool leave_next_out;

void script_call(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	(void)s;
	child_script_failed |= make_call(label, nr, a0, a1, a2, a3, a4, a5) < 0;
}

void script_call_expect(struct script *s, const char *label, uint64_t expected, long nr,
			uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			uint64_t a5)
{
	(void)s;
	child_script_failed |= (uint64_t)make_call(label, nr, a0, a1, a2, a3, a4, a5) != expected;
}

void script_call_try(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		     uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	(void)s;
	(void)label;
	if (!leave_next_out)
		syscall(nr, a0, a1, a2, a3, a4, a5);
	leave_next_out = false;
}

void script_call_or_noted(struct script *s, const char *label, int32_t pid, long nr, uint64_t a0,
			  uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	(void)s;
	(void)pid;
	leave_next_out = make_call(label, nr, a0, a1, a2, a3, a4, a5) >= 0;
}

void script_timer_create(struct script *s, const char *label, int32_t clock, uint64_t event,
			 int32_t id)
{
	int got = -1;

	(void)s;
	for (int i = 0; i <= id && got != id; i++)
		child_script_failed |= make_call(label, SYS_timer_create, clock, event, (uintptr_t)&got,
					   0, 0, 0) < 0;
	child_script_failed |= got != id;
}

uint64_t script_data(struct script *s, const void *data, size_t length)
{
	void *copy = malloc(length);

	(void)s;
	memcpy(copy, data, length);
	return (uintptr_t)copy;
}

/* ---- children ------------------------------------------------------------------- */

struct child child_start(void (*work)(void *), void *argument)
{
	struct child child;
	int ready[2], release[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(release), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		close(release[1]);
		work(argument);
		if (write(ready[1], "", 1) < 0)
			_exit(2);
		if (read(release[0], &byte, 1) < 0)
			_exit(2);
		_exit(0);
	}
	close(ready[1]);
	close(release[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	child.release = release[1];
	return child;
}

void child_finish(struct child child)
{
	int status;

	close(child.release);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_int_equal(status, 0);
}

int child_save(pid_t pid, Kcr__Process **out)
{
	static char status[1 << 16], stat[4096];
	struct kcr_process info = { .pid = pid, .dumpable = 1 };
	struct process_probe probe = { .job = -1, .pid = pid, .thread = pid, .info = &info, .status = status,
				       .stat = stat };
	Kcr__Process *p = malloc(sizeof(*p));
	Kcr__Thread *t = malloc(sizeof(*t));
	int err = 0;

	assert_true(proc_read(pid, "status", status, sizeof(status)) > 0);
	assert_true(proc_read(pid, "stat", stat, sizeof(stat)) > 0);
	kcr__process__init(p);
	kcr__thread__init(t);
	t->tid = p->pid = pid;
	p->thread = malloc(sizeof(t));
	p->thread[0] = t;
	p->n_thread = 1;
	for (const struct attribute *const *a = attributes; *a && !err; a++) {
		if ((*a)->save)
			err = (*a)->save(&probe, p);
		if (!err && (*a)->save_thread)
			err = (*a)->save_thread(&probe, t);
	}
	*out = p;
	return err;
}

void child_rebuild(void *argument)
{
	struct remake *m = argument;
	struct context context = { .process = &m->p, .nr_processes = 1 };
	struct rebuild r = { .context = &context, .restore_ids = false };
	int32_t pid = getpid();
	sigset_t all;

	r.new_pid = &pid;
	m->err = 0;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (const struct attribute *const *a = attributes; *a && !m->err; a++)
		if ((*a)->rebuild)
			m->err = (*a)->rebuild(&r, m->p);
	for (const struct attribute *const *a = attributes; *a && !m->err; a++)
		if ((*a)->script)
			m->err = (*a)->script(&r, m->p, NULL);
	for (const struct attribute *const *a = attributes; *a && !m->err; a++)
		if ((*a)->script_thread)
			m->err = (*a)->script_thread(&r, m->p, m->p->thread[0], NULL);
	for (const struct attribute *const *a = attributes; *a && !m->err; a++)
		if ((*a)->script_last)
			m->err = (*a)->script_last(&r, m->p, NULL);
	if (m->err || child_script_failed) {
		fprintf(stderr, "# rebuild: %d %s\n", m->err,
			report_message() ? report_message() : "");
		_exit(1);
	}
}

static void assert_same(Kcr__Process *a, Kcr__Process *b)
{
	size_t length = kcr__process__get_packed_size(a);
	uint8_t *x = malloc(length), *y;

	b->pid = a->pid;
	b->thread[0]->tid = a->thread[0]->tid;
	assert_int_equal(kcr__process__get_packed_size(b), length);
	y = malloc(length);
	kcr__process__pack(a, x);
	kcr__process__pack(b, y);
	assert_memory_equal(x, y, length);
	free(x);
	free(y);
}

void child_round_trip(void (*work)(void *))
{
	struct child first, second;
	struct remake remake;
	Kcr__Process *again;

	first = child_start(work, NULL);
	assert_int_equal(child_save(first.pid, &remake.p), 0);
	child_finish(first);
	second = child_start(child_rebuild, &remake);
	assert_int_equal(child_save(second.pid, &again), 0);
	child_finish(second);
	assert_same(remake.p, again);
	kcr__process__free_unpacked(remake.p, NULL);
	kcr__process__free_unpacked(again, NULL);
}

void child_need(bool ok)
{
	if (!ok) {
		perror("# setting up");
		_exit(2);
	}
}
