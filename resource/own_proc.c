// SPDX-License-Identifier: GPL-2.0
/*
 * Files and directories of /proc/PID, where PID is a process of the image: when
 * files are opened, it may not exist yet, or have another PID.  Until they are
 * installed, something that is of no use stands in, as it may get to a process of a user.  While a
 * process is being restored they are root's, if cr_restart runs as root, so opening them takes more
 * than the saved process's rights; but those of another user's process, and anything
 * outside that folder, are out of reach.
 */
#include "resource/file.h"

#include <fcntl.h>
#include <errno.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/identity.h"

bool own_proc_is_of_thread(const struct file_probe *probe)
{
	int pid, tid;

	return probe->fs.f_type == PROC_SUPER_MAGIC &&
	       sscanf(probe->link, "/proc/%d/task/%d", &pid, &tid) == 2 && tid != pid;
}

/* What follows /proc/PID in such a path ("", "/…"), or NULL. */
static const char *behind_pid(const char *path, pid_t *pid)
{
	char *end;

	if (strncmp(path, "/proc/", 6))
		return NULL;
	*pid = strtol(path + 6, &end, 10);
	return end != path + 6 && (!*end || *end == '/') ? end : NULL;
}

/* Likewise for a process of the image. */
static const char *rest_of(const struct rebuild *r, const char *path, pid_t *pid)
{
	const char *rest = behind_pid(path, pid);

	return rest && context_process(r->context, *pid) ? rest : NULL;
}

bool own_proc_is_among(const char *path, Kcr__Process *const *process, size_t count)
{
	pid_t pid;

	return behind_pid(path, &pid) && process_is_among(process, count, pid);
}

void own_proc_warn(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *probe = file_table_probe(t, id);
		pid_t pid;

		if (probe->fs.f_type == PROC_SUPER_MAGIC && behind_pid(probe->link, &pid) &&
		    !process_is_among(process, count, pid) && !file_table_left_out(t, id))
			report_warn("process %d, descriptor %d: %s is of a process that is not saved: after "
				    "a restart it is that of whoever has this ID by then", probe->pid,
				    probe->number, probe->link);
	}
}

/* `rest` in process `pid`, whose first thread had the ID `saved`, for /task/TID. */
static void path_in(char path[PROC_PATH], pid_t pid, const char *rest, pid_t saved)
{
	int end = 0, tid;

	if (sscanf(rest, "/task/%d%n", &tid, &end) == 1 && tid == saved)
		snprintf(path, PROC_PATH, "task/%d%s", pid, rest + end);
	else
		snprintf(path, PROC_PATH, "%s", *rest ? rest + 1 : ".");
}

/*
 * May what it names be root's only because the process is not the user's yet?  Not the files of its
 * network namespace, which are root's for good; nor is any name with dots what the kernel said.
 */
static bool is_of_process(const char *rest)
{
	int end = 0, tid;

	if (sscanf(rest, "/task/%d%n", &tid, &end) == 1)
		rest += end;
	else if (!strncmp(rest, "/task/", 6))
		return false;
	return !strstr(rest, "/.") && !strstr(rest, "//") &&
	       (strncmp(rest, "/net", 4) || (rest[4] && rest[4] != '/'));
}

/* saved: the process's ID in the image; own: what is root's for now may be opened. */
static int open_in(pid_t pid, pid_t saved, const char *rest, int flags, bool own)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	bool raised = own && is_of_process(rest) && identity_raise_to_look();
	char folder[32], path[PROC_PATH];
	int at, fd;

	snprintf(folder, sizeof(folder), "/proc/%d", pid);
	path_in(path, pid, rest, saved);
	at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (flags & O_PATH)
		how.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	fd = at < 0 ? -1 : syscall(SYS_openat2, at, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	if (at >= 0)
		close(at);
	identity_lower(raised);
	return fd;
}

bool own_proc_has(const struct rebuild *r, const char *path)
{
	pid_t pid;

	return rest_of(r, path, &pid);
}

int own_proc_stand_in(struct rebuild *r, const Kcr__File *file, const char *path)
{
	pid_t pid;
	const char *rest = rest_of(r, path, &pid);
	int fd = open_in(getpid(), pid, rest, O_PATH | O_NOFOLLOW, true);

	if (fd < 0)
		return fd;		/* such a file there is in no process here */
	close(fd);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->borrowed[file->id - 1] = BORROWED;
	return fd < 0 ? -errno : fd;
}

/* Opens, in `process`, a file of process `pid`, with the saved rights of `process`. */
static int open_of(struct rebuild *r, const Kcr__Process *process, pid_t pid, const char *rest,
		   int flags)
{
	const Kcr__Process *other = context_process(r->context, pid);
	pid_t now = rebuild_wait_pid(r, pid);
	int fd, err = identity_enter(process->credentials);

	if (err)
		return err;
	fd = open_in(now, pid, rest, flags,
		     identity_may_trace(process->credentials, other->credentials));
	identity_leave();
	return fd;
}

int own_proc_install(struct rebuild *r, const Kcr__Process *process, const Kcr__File *file,
		     const char *saved, int number)
{
	int fd, flags = fcntl(number, F_GETFD);
	const char *rest;
	pid_t pid;

	rest = rest_of(r, saved, &pid);
	if (!rest)
		return 0;
	fd = open_of(r, process, pid, rest, rebuild_open_flags(file));
	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	if (file->has_position)
		lseek(fd, file->position, SEEK_SET);
	dup3(fd, number, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	close(fd);
	return 0;
}
