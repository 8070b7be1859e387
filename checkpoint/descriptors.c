// SPDX-License-Identifier: GPL-2.0
/*
 * The file descriptors of a process: a duplicate of every one is registered in
 * resource/file_table.c.  It comes from pidfd_getfd(2), which fails once the
 * thread group leader has exited; then it comes from the module.
 */
#include "checkpoint/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"

static int list(Kcr__Process *process, int number, uint32_t id, bool cloexec)
{
	size_t n = process->n_descriptor;
	Kcr__Descriptor *d, **larger = process->descriptor;

	if (!(n & (n - 1))) {		/* full: 0, 1, 2, 4, 8 … */
		larger = realloc(larger, (n ? 2 * n : 1) * sizeof(*larger));
		if (!larger)
			return report_errno(-ENOMEM, "process %d: descriptors", process->pid);
		process->descriptor = larger;
	}
	d = malloc(sizeof(*d));
	if (!d)
		return report_errno(-ENOMEM, "process %d: descriptors", process->pid);
	kcr__descriptor__init(d);
	d->fd = number;
	d->file_id = id;
	d->has_cloexec = true;
	d->cloexec = cloexec;
	process->descriptor[process->n_descriptor++] = d;
	return 0;
}

/* The process with the file descriptors, and how to get them. */
struct owner {
	int job;
	int pidfd;
	pid_t pid, thread;
	Kcr__Process *process;		/* NULL: it is running */
};

/* A duplicate, or -errno. */
static int duplicate(const struct owner *owner, int number)
{
	int fd;

	if (owner->thread != owner->pid)
		return device_descriptor(owner->job, owner->pid, number);
	fd = syscall(SYS_pidfd_getfd, owner->pidfd, number, 0);
	return fd < 0 ? -errno : fd;
}

/*
 * TIOCGPTPEER leaves O_CLOEXEC in the flags of the open file, and /proc then shows it
 * for all its file descriptors.  -ENODATA: /proc is right.
 */
static int closes_on_exec(const struct owner *owner, int number, int fd)
{
	return fcntl(fd, F_GETFL) & O_CLOEXEC ?
		device_closes_on_exec(owner->job, owner->pid, number) : -ENODATA;
}

static int add(struct file_table *files, const struct owner *owner, int number)
{
	int fd = duplicate(owner, number), cloexec, err;
	uint32_t id;

	if (!owner->process && (fd == -EBADF || fd == -ESRCH))
		return 0;		/* it is running, and closed it */
	if (fd == -EMFILE)
		return file_too_many(owner->pid);
	if (fd < 0)
		return report_errno(fd, "process %d: cannot get its descriptor %d", owner->pid,
				    number);
	cloexec = closes_on_exec(owner, number, fd);
	err = file_table_add(files, fd, owner->pid, owner->thread, number, FILE_NOT_MAPPED, &id);
	if (err || !owner->process)
		return err;
	return list(owner->process, number, id,
		    cloexec < 0 ? file_table_cloexec(files) : cloexec);
}

int describe_descriptors(const struct checkpoint *c, struct file_table *files, pid_t pid,
			 Kcr__Process *process)
{
	struct owner owner = {
		.job = c->attempt.job, .pid = pid, .thread = scope_thread(&c->attempt.scope, pid),
		.process = process,
	};
	int err = 0, number;
	DIR *numbers;

	owner.pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (owner.pidfd < 0)
		return report_errno(-errno, "process %d", pid);
	numbers = proc_list(owner.thread, "fd");
	if (!numbers)
		err = report_errno(-errno, "process %d: cannot list its descriptors", pid);
	while (!err && (number = proc_next(numbers)) >= 0)
		err = add(files, &owner, number);
	if (numbers)
		closedir(numbers);
	close(owner.pidfd);
	return err;
}
