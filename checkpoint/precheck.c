// SPDX-License-Identifier: GPL-2.0
/*
 * Refuses, while everything runs, what is sure to fail: processes that do not
 * exist or may not be accessed, resources that cannot be saved.  What shows up
 * only later (a file opened meanwhile) is refused by the same code once the
 * processes are stopped.
 */
#include "checkpoint/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device/device.h"
#include "device/refused.h"
#include "proc/namespace.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/aio_context.h"
#include "resource/namespace.h"
#include "resource/reopen.h"

#define STATUS_SIZE	(64u << 10)
#define DEV_ZERO	makedev(1, 5)
#define MAX_TRIES	5

int pid_list_add(struct pid_list *list, pid_t pid)
{
	pid_t *larger = realloc(list->pid, (list->count + 1) * sizeof(*larger));

	if (!larger)
		return report_errno(-ENOMEM, "list of processes");
	list->pid = larger;
	list->pid[list->count++] = pid;
	return 0;
}

bool pid_list_has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pid[i] == pid)
			return true;
	return false;
}

bool is_excluded(const struct checkpoint *c, pid_t pid)
{
	return pid_list_has(&c->excluded, pid);
}

int exclude(struct checkpoint *c, pid_t pid, const char *why)
{
	int err = pid_list_add(&c->excluded, pid);

	if (!err)
		report_warn("process %d is left out: %s", pid, why);
	return err;
}

/* ---- obstacles ------------------------------------------------------------------ */

/* Has it exited since it was listed, or the thread that stands for it? */
static bool has_left(const struct scope_process *p)
{
	struct scope_process now;

	return scope_look(p->pid, &now) || now.zombie || now.exiting || now.thread != p->thread;
}

/*
 * In an examination, what cannot be saved is told and passed over, to find the rest: 0.  It
 * does not count if process p (NULL: none) has just ended, or if it is busy for a moment.
 */
static int pass(struct checkpoint *c, const struct scope_process *p, int err)
{
	if (!err || !c->obstacle || err == -EBUSY || (p && has_left(p)))
		return err;
	c->obstacle(c->obstacle_arg, report_message());
	report_clear();
	return 0;
}

static int pass_file(void *checkpoint, int err)
{
	return pass(checkpoint, NULL, err);
}

/* ---- the target ---------------------------------------------------------------- */

/*
 * Not in /proc: it does not exist, is hidden from us (hidepid), or begins just now, as a
 * process does that is being restarted with its old PID.
 */
static int find_target(pid_t pid, struct scope_process *p, char *status, size_t size)
{
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		if (!scope_look(pid, p) && proc_read(pid, "status", status, size) > 0)
			return 0;
		if (kill(pid, 0) && errno != EPERM)
			return report_fail(-ESRCH, "no process %d", pid);
	}
	return refused_trace(pid);
}

static int check_target(const struct checkpoint *c)
{
	pid_t target = c->options->target;
	char status[2048];
	struct scope_process p;
	int err;

	switch (c->options->scope) {
	case CHECKPOINT_GROUP:
		return c->attempt.scope.count ? 0 :
			report_fail(-ESRCH, "no process group %d (other than this program)", target);
	case CHECKPOINT_SESSION:
		return c->attempt.scope.count ? 0 :
			report_fail(-ESRCH, "no session %d (other than this program)", target);
	default:
		break;
	}
	if (target == getpid())
		return report_fail(-EDEADLK, "process %d is this program itself", target);
	err = find_target(target, &p, status, sizeof(status));
	if (err)
		return err;
	if (status_number(status, "Tgid", 10, target) != (uint64_t)target)
		return report_fail(-ESRCH, "no process %d: it is a thread of process %d", target,
				   (pid_t)status_number(status, "Tgid", 10, 0));
	if (p.zombie)
		return report_fail(-ESRCH, "process %d (%s) has ended already: only its status is "
				   "left, for its parent %d", target, p.name, p.ppid);
	return 0;
}

/* No signal from inside ends an init, and from outside only SIGKILL surely does (inside.h). */
static int check_init(const struct checkpoint_options *o)
{
	if (namespace_is_first("pid"))
		return report_fail(-EPERM, "process 1 is init, which cannot be checkpointed");
	if (!(o->namespaces & CLONE_NEWPID))
		return report_fail(-EPERM, "process 1 is the init of its container: run cr_checkpoint "
				   "outside of the container, with the PID that it has there");
	if (o->signal && o->signal != SIGKILL)
		return report_fail(-EPERM, "the process is the init of its container, which takes no such "
				   "signal: use --kill, or none and end the container then");
	return 0;
}

int check_kind(const struct checkpoint *c, const struct scope_process *p)
{
	if (p->pid == 1)
		return check_init(c->options);
	if (p->kernel_thread)
		return report_fail(-EPERM, "process %d (%s) is a kernel thread, which cannot be "
				   "checkpointed", p->pid, p->name);
	return 0;
}

/* ---- one process ---------------------------------------------------------------- */

/* In a 32-bit program's auxv the first 64 bits hold both key and value. */
static int check_program(const struct scope_process *p)
{
	int fd = proc_open(p->thread, "auxv", O_RDONLY), err = 0;
	uint64_t key;

	if (fd < 0)
		return 0;		/* left to the module */
	if (read(fd, &key, sizeof(key)) == sizeof(key) && key > UINT32_MAX)
		err = report_fail(-EOPNOTSUPP, "process %d is a 32-bit program, which cannot be "
				  "checkpointed", p->pid);
	close(fd);
	return err;
}

/* > 0: they have different ones; < 0: not known, as one of them has ended. */
static long compare(pid_t thread, pid_t tid, int what)
{
	return syscall(SYS_kcmp, thread, tid, what, 0, 0);
}

/*
 * Threads can unshare file descriptors (unshare(2)).  An exiting thread has none, but drops
 * its mm before them, so the mm is compared last; by then it may have ended.
 */
static int check_threads(const struct scope_process *p)
{
	DIR *threads = proc_list(p->pid, "task");
	int err = 0;
	pid_t tid;

	while (!err && (tid = proc_next(threads)) >= 0)
		if (tid != p->pid && tid != p->thread &&
		    compare(p->thread, tid, KCMP_FILES) > 0 && !compare(p->thread, tid, KCMP_VM))
			err = report_fail(-EOPNOTSUPP, "process %d: thread %d has descriptors of its "
					  "own, which cannot be saved", p->pid, tid);
	if (threads)
		closedir(threads);
	return err;
}

int refuse_shared_table(pid_t pid, pid_t other)
{
	return report_fail(-EOPNOTSUPP, "process %d shares its table of descriptors with process %d "
			   "(CLONE_FILES without CLONE_VM), which cannot be saved: let the program "
			   "use threads, or descriptors of its own", pid, other);
}

int refuse_shared_folder(pid_t pid, pid_t other)
{
	return report_fail(-EOPNOTSUPP, "process %d shares its working folder and umask with process %d "
			   "(CLONE_FS without CLONE_VM), which cannot be saved: let the program use "
			   "threads, or folders of its own", pid, other);
}

/* The parent, whose memory it may be in, is not saved: it would write to that all the time. */
static int check_memory(const struct checkpoint *c, const struct scope_process *p)
{
	const struct scope_process *parent = scope_find(&c->attempt.scope, p->ppid);

	if ((parent && !is_excluded(c, parent->pid)) || p->ppid <= 1 ||
	    compare(p->ppid, p->thread, KCMP_VM))
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d shares its memory with its parent, process %d "
			   "(CLONE_VM), which is not saved: save both", p->pid, p->ppid);
}

/* Processes of one table are mostly parent and child; all are compared once they are stopped. */
static int check_table(const struct checkpoint *c, const struct scope_process *p)
{
	const struct scope_process *parent = scope_find(&c->attempt.scope, p->ppid);

	if (!parent || parent->zombie || is_excluded(c, parent->pid) ||
	    compare(parent->thread, p->thread, KCMP_VM) <= 0)
		return 0;
	if (!compare(parent->thread, p->thread, KCMP_FILES))
		return refuse_shared_table(p->pid, parent->pid);
	return compare(parent->thread, p->thread, KCMP_FS) ? 0 :
	       refuse_shared_folder(p->pid, parent->pid);
}

/*
 * PID namespaces: what the module and system calls return depends on them.  A process may be
 * in one and create its children in another, likewise with time namespaces (clocks.c); its other
 * threads, which may do so alone, are checked with their other namespaces.
 */
static int check_namespaces(const struct scope_process *p)
{
	char ours[64], theirs[64];

	if (proc_link(PROC_SELF, "ns/pid", ours, sizeof(ours)) >= 0 &&
	    proc_link(p->thread, "ns/pid", theirs, sizeof(theirs)) >= 0 && strcmp(ours, theirs))
		return namespace_refuse(p->pid, p->thread, "is in another pid namespace");
	return namespace_check_children(p->pid, p->thread, false);
}

int refuse_own_spaces(const struct scope_process *p)
{
	return check_namespaces(p) ?: check_threads(p);
}

static int check_device(pid_t pid, const char *path)
{
	struct stat st;

	if (stat(path, &st) || !S_ISCHR(st.st_mode) || st.st_rdev == DEV_ZERO)
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d has memory of the device %s mapped, which "
			   "cannot be saved (--skip-unsupported leaves it out)", pid, path);
}

/*
 * Refuses devices and other objects of the kernel, and contexts of io_setup(2) where they cannot
 * be saved; notes memory of sockets; opens files that will be needed during the stop.
 */
static int check_mappings(struct checkpoint *c, const struct scope_process *p)
{
	FILE *maps = proc_stream(p->thread, "maps");
	char last[4096] = "", *line = NULL;
	size_t size = 0;
	int err = 0;

	while (maps && !err && getline(&line, &size, maps) > 0) {
		const char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (!path) {
			if (strstr(line, " socket:["))
				c->has_socket_memory = true;
			err = mapped_object_check(c, p, line);
			continue;
		}
		if (!strncmp(path, "/dev/", 5)) {
			err = c->options->skip_unsupported ? 0 : check_device(p->pid, path);
		} else if (aio_context_is_ring(path)) {
			err = aio_context_check(c->attempt.job, p->pid);
		} else if (strcmp(path, last)) {
			err = mapped_object_check(c, p, line);
			opened_prepare(c, path);
			snprintf(last, sizeof(last), "%s", path);
		}
	}
	free(line);
	if (maps)
		fclose(maps);
	return err;
}

/* Which socket it is: all have names of their own. */
static const Kcr__File *find_socket(const struct file_table *files, const char *link)
{
	for (uint32_t id = 1; id <= file_table_count(files); id++)
		if (!strcmp(file_table_probe(files, id)->link, link))
			return file_table_get(files, id);
	return NULL;
}

/* Not of those that were opened meanwhile, or are closed: they are left to describe(). */
static int check_socket_memory(const struct file_table *files, const struct scope_process *p)
{
	FILE *maps = proc_stream(p->thread, "maps");
	size_t size = 0;
	char *line = NULL;
	int err = 0;

	while (maps && !err && getline(&line, &size, maps) > 0) {
		const char *name = strstr(line, " socket:[");
		const Kcr__File *file;
		unsigned long long start, end, offset;
		char shared;

		line[strcspn(line, "\n")] = '\0';
		file = name ? find_socket(files, name + 1) : NULL;
		if (file && sscanf(line, "%llx-%llx %*3c%c %llx", &start, &end, &shared, &offset) == 4)
			err = socket_memory_check(p->pid, file, offset, end - start, shared == 's');
	}
	free(line);
	if (maps)
		fclose(maps);
	return err;
}

/* Refuses attributes that cannot be saved. */
static int check_attributes(struct checkpoint *c, const struct scope_process *p,
			    const struct process_probe *probe)
{
	int err = 0;

	for (size_t i = 0; !err && attributes[i]; i++)
		if (attributes[i]->check)
			err = pass(c, p, attributes[i]->check(probe));
	return err;
}

static int check_process(struct checkpoint *c, struct file_table *files,
			 const struct scope_process *p)
{
	char *status = malloc(STATUS_SIZE);
	struct process_probe probe = { .job = c->attempt.job, .pid = p->pid, .thread = p->thread,
				       .status = status };
	int err = pass(c, p, check_namespaces(p));

	if (!err)	/* permitted, and in no other job? */
		err = stop_add(c, p);
	if (err == -EEXIST || err == -ESRCH) {	/* exited, or in exec: left to stop.c */
		report_clear();
		err = 0;
	}
	if (!err)
		err = pass(c, p, check_program(p));
	if (!err)
		err = pass(c, p, refuse_launcher(c, p->pid, p->thread));
	if (!err && !status)
		err = report_errno(-ENOMEM, "process %d", p->pid);
	if (!err && proc_read(p->thread, "status", status, STATUS_SIZE) > 0)
		err = check_attributes(c, p, &probe);
	if (!err)
		err = pass(c, p, check_threads(p));
	if (!err)
		err = pass(c, p, check_table(c, p));
	if (!err)
		err = pass(c, p, check_memory(c, p));
	if (!err)
		err = pass(c, p, check_mappings(c, p));
	if (!err)
		err = pass(c, p, describe_descriptors(c, files, p->pid, NULL));
	free(status);
	return err;
}

/* Once their sockets, of which more is known, have been checked. */
static int check_sockets(struct checkpoint *c, const struct file_table *files)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->attempt.scope.count; i++) {
		const struct scope_process *p = &c->attempt.scope.process[i];

		if (!p->zombie && !is_excluded(c, p->pid))
			err = pass(c, p, check_socket_memory(files, p));
	}
	return err;
}

/* Checks the processes of the scope and their open files. */
static int check_scope(struct checkpoint *c)
{
	struct file_table *files = file_table_new(c->options->skip_unsupported);
	int err = 0, left = 0;

	if (!files)
		return -ENOMEM;
	c->has_socket_memory = false;
	file_table_use_job(files, c->attempt.job);
	for (size_t i = 0; !err && i < c->attempt.scope.count; i++) {
		const struct scope_process *p = &c->attempt.scope.process[i];

		if (p->zombie || is_excluded(c, p->pid))
			continue;
		err = pass(c, p, check_process(c, files, p));
		if (err && has_left(p)) {	/* still check the others */
			report_clear();
			err = 0;
			left = p->pid;
		}
	}
	if (!err)
		err = file_table_check(files, c->obstacle ? pass_file : NULL, c);
	if (!err && c->has_socket_memory)
		err = check_sockets(c, files);
	if (!err && (c->options->must_reopen || c->obstacle))
		err = pass(c, NULL, reopen_files(files, REOPEN_REFUSE));
	if (!err)
		c->expected_content = file_table_content_bytes(files);
	if (!err && left)
		err = report_fail(-ESRCH, "process %d has ended", left);
	file_table_free(files);
	return err;
}

/* Has any process of the scope? */
static bool somebody_left(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->attempt.scope.count; i++)
		if (!c->attempt.scope.process[i].zombie && has_left(&c->attempt.scope.process[i]))
			return true;
	return false;
}

static int precheck_once(struct checkpoint *c)
{
	int err;

	c->expected_bytes = 0;
	err = scope_collect(&c->attempt.scope, c->options->scope, c->options->target, NULL, 0);
	if (!err)
		err = check_target(c);
	for (size_t i = 0; !err && i < c->attempt.scope.count; i++)
		err = check_kind(c, &c->attempt.scope.process[i]);
	if (!err)
		err = check_debuggers(c);
	return err ? err : check_scope(c);
}

int precheck(struct checkpoint *c)
{
	for (int try = 0; try < MAX_TRIES; try++) {
		int err = precheck_once(c);
		/* A process becoming a libcr client has the device open for a moment. */
		bool passing = err == -EBUSY && try < MAX_TRIES - 1;

		/* A failure because a process has exited is none. */
		if (!err || !(passing || somebody_left(c)) ||
		    (err == -EOPNOTSUPP && try == MAX_TRIES - 1))
			return err;
		report_clear();
		if (passing)
			usleep(BUSY_US);
	}
	return 0;			/* too much fork and exit: left to stop.c */
}
