// SPDX-License-Identifier: GPL-2.0
/*
 * The descriptor table of a process: a duplicate of every open file goes into
 * the register of resource/file_table.c.
 */
#include "checkpoint/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static int add(struct file_table *files, int pidfd, pid_t pid, int number, Kcr__Process *process)
{
	int fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	uint32_t id;
	int err;

	if (fd < 0 && !process && (errno == EBADF || errno == ESRCH))
		return 0;		/* it runs, and closed it */
	if (fd < 0) {
		err = -errno;
		if (err == -EMFILE)
			return file_too_many(pid);
		return report_errno(err, "process %d: cannot get its descriptor %d", pid, number);
	}
	err = file_table_add(files, fd, pid, number, FILE_NOT_MAPPED, &id);
	if (err || !process)
		return err;
	return list(process, number, id, file_table_cloexec(files));
}

int describe_descriptors(struct file_table *files, pid_t pid, Kcr__Process *process)
{
	struct dirent *entry;
	char path[32];
	int pidfd, err = 0;
	DIR *dir;

	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return report_errno(-errno, "process %d", pid);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		err = report_errno(-errno, "process %d: cannot list its descriptors", pid);
	while (!err && (entry = readdir(dir)))
		if (isdigit(entry->d_name[0]))
			err = add(files, pidfd, pid, atoi(entry->d_name), process);
	if (dir)
		closedir(dir);
	close(pidfd);
	return err;
}
