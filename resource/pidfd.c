// SPDX-License-Identifier: GPL-2.0
/*
 * pidfd_open(2): of a process in the tree, or else of one that has ended,
 * since a PID outside the tree may be another process's by now.
 */
#include "resource/family.h"
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/report.h"

#define OF_THREAD	O_EXCL		/* PIDFD_THREAD, since Linux 6.9 */
#define KILLS		O_TRUNC		/* PIDFD_AUTOKILL, since Linux 7.1 */

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[pidfd]") || !strncmp(probe->link, "pidfd:", 6);
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	const char *pid = fdinfo_value(probe->fdinfo, "Pid:");
	Kcr__PidFd *pidfd;

	if (probe->flags & OF_THREAD)
		return file_unsupported(t, "a pidfd of a thread (PIDFD_THREAD)");
	if (probe->flags & KILLS)
		return file_unsupported(t, "a pidfd whose process is killed when it is closed "
					"(CLONE_PIDFD_AUTOKILL)");
	pidfd = file_new_kind(file, KCR__FILE__KIND_PIDFD, sizeof(*pidfd));
	if (!pidfd)
		return -ENOMEM;
	if (!pid)
		return file_unsupported(t, "a pidfd that this kernel gives no information on");
	pidfd->pid = atoi(pid);		/* -1: it has ended */
	return 0;
}

static bool is_alive(const struct file_probe *probe)
{
	struct pollfd p = { .fd = probe->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

void pidfd_warn(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *probe = file_table_probe(t, id);
		const Kcr__File *file = file_table_get(t, id);

		if (file->kind_case == KCR__FILE__KIND_PIDFD && file->pidfd->pid > 0 &&
		    !process_is_among(process, count, file->pidfd->pid) && is_alive(probe))
			report_warn("process %d, descriptor %d: a pidfd of process %d, which is not "
				    "saved: after a restart it says that that has ended", probe->pid,
				    probe->number, file->pidfd->pid);
	}
}

/* One pidfd for all of these: of a child that ends at once. */
static int dead_pidfd(struct rebuild *r)
{
	pid_t child;
	int fd;

	if (r->dead_pidfd >= 0)
		return r->dead_pidfd;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		_exit(0);
	fd = syscall(SYS_pidfd_open, child, 0);
	if (fd < 0)
		fd = -errno;
	waitpid(child, NULL, 0);
	if (fd >= 0) {
		r->dead_pidfd = fcntl(fd, F_DUPFD_CLOEXEC, r->high_fd);
		close(fd);
		fd = r->dead_pidfd;
	}
	return fd;
}

static int open_pidfd(struct rebuild *r, const Kcr__File *file)
{
	int fd = dead_pidfd(r);

	if (fd >= 0)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, r->high_fd);
	r->borrowed[file->id - 1] = BORROWED;
	return fd < 0 ? rebuild_error(file, -errno, "pidfd_open") : rebuild_put(r, file->id, fd);
}

/* The processes exist by now, or will soon. */
static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	pid_t pid = file->pidfd->pid > 0 ? rebuild_wait_pid(r, file->pidfd->pid) : 0;
	int flags = fcntl(number, F_GETFD), fd;

	(void)process;
	if (!pid)
		return 0;
	fd = syscall(SYS_pidfd_open, pid, file->flags & O_NONBLOCK);
	if (fd < 0)
		return rebuild_error(file, -errno, "pidfd_open of process %d", pid);
	dup3(fd, number, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
	close(fd);
	return 0;
}

const struct file_kind file_kind_pidfd = {
	.kind = KCR__FILE__KIND_PIDFD,
	.name = "pidfd",
	.match = match,
	.save = save,
	.open = open_pidfd,
	.install = install,
};
