// SPDX-License-Identifier: GPL-2.0
/*
 * userfaultfd(2).  It works on the memory of the process that has made it, whoever has its
 * descriptor: so it is made again by that process, and all others that have it get it from there,
 * through a socket whose only message stays for the next one.  Which mappings are registered
 * with it is saved with these (checkpoint/user_faults.c).
 *
 * Who waits for a page faults again after a restart, so there are no messages to save.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/file_table.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1	/* Linux 5.11 */
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW	_IO(0xaa, 0)	/* Linux 6.1 */
#endif

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int))];
};

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[userfaultfd]");
}

/* ---- save ------------------------------------------------------------------------------ */

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__UserFault *fault = file_new_kind(file, KCR__FILE__KIND_USER_FAULT, sizeof(*fault));
	struct kcr_userfault_range *ranges = NULL;
	struct kcr_userfault found;
	int err;

	if (!fault)
		return -ENOMEM;
	err = t->job < 0 ? -EOPNOTSUPP : device_userfault(t->job, 0, probe->fd, &found, &ranges);
	free(ranges);
	if (err == -EOPNOTSUPP)
		return file_unsupported(t, "a userfaultfd, of which this kernel does not tell enough: "
					"it takes Linux 5.16 with CONFIG_DEBUG_INFO_BTF");
	if (err < 0)
		return file_save_error(probe, err, "cannot be examined");
	if (found.made_with & ~(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))
		return file_unsupported(t, "a userfaultfd with flags that this version does not know "
					"(%#x)", found.made_with);
	fault->begun = found.features & KCR_USERFAULT_BEGUN;
	fault->features = found.features & ~KCR_USERFAULT_BEGUN;
	fault->user_mode_only = found.made_with & UFFD_USER_MODE_ONLY;
	return 0;
}

/* ---- rebuild ----------------------------------------------------------------------------- */

/* In place of the userfaultfd there is the end of a socket, until a process needs it. */
static int open_socket(struct rebuild *r, const Kcr__File *file)
{
	int end[2], sender;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, end))
		return rebuild_error(file, -errno, "socketpair");
	sender = fcntl(end[1], F_DUPFD_CLOEXEC, r->high_fd);
	close(end[1]);
	if (sender < 0) {
		close(end[0]);
		return rebuild_error(file, -errno, "its descriptor");
	}
	r->giver_fd[file->id - 1] = sender;
	r->borrowed[file->id - 1] = BORROWED;	/* the socket's flags do not matter */
	return rebuild_put(r, file->id, end[0]);
}

/* By the device, which may be open to users who must not call userfaultfd(2). */
static int make_by_device(int flags)
{
	int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), fd;

	if (device < 0)
		return -EPERM;
	fd = ioctl(device, USERFAULTFD_IOC_NEW, flags);
	if (fd < 0)
		fd = -errno;
	close(device);
	return fd;
}

static int make(const Kcr__File *file)
{
	const Kcr__UserFault *fault = file->user_fault;
	struct uffdio_api api = { .api = UFFD_API, .features = fault->features };
	int flags = O_CLOEXEC | (file->flags & O_NONBLOCK), fd, err = 0;

	if (fault->user_mode_only)
		flags |= UFFD_USER_MODE_ONLY;
	fd = (int)syscall(SYS_userfaultfd, flags);
	if (fd < 0)
		fd = errno == EPERM && !fault->user_mode_only ? make_by_device(flags) : -errno;
	if (fd == -EPERM)
		return rebuild_error(file, fd, "not allowed here (sysctl vm.unprivileged_userfaultfd)");
	if (fd < 0)
		return rebuild_error(file, fd, "userfaultfd");
	if (fault->begun && ioctl(fd, UFFDIO_API, &api))
		err = rebuild_error(file, -errno, errno == EPERM ? "events of forks take CAP_SYS_PTRACE" :
				    "this kernel's userfaultfd has less than that of the checkpoint");
	if (err)
		close(fd);
	return err ?: fd;
}

static int give(int socket, int fd)
{
	union control control = { 0 };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.head = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Nothing else is used, whoever may have put it there. */
static bool is_one(int fd)
{
	static const char name[] = "anon_inode:[userfaultfd]";
	char link[sizeof(name) + 1];

	return proc_fd_link(fd, link, sizeof(link)) == sizeof(name) - 1 && !strcmp(link, name);
}

/* Waits until it is there, and leaves it there for others. */
static int look(int socket)
{
	union control control;
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd p = { .fd = socket, .events = POLLIN };
	int fd;

	/* Not by recvmsg(2): a message wakes only one of those who wait for it there. */
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	if (recvmsg(socket, &message, MSG_PEEK | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	if (message.msg_controllen < CMSG_LEN(sizeof(fd)) || control.head.cmsg_type != SCM_RIGHTS)
		return -EMFILE;		/* there was no room for the descriptor */
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	if (is_one(fd))
		return fd;
	close(fd);
	return -EBADF;
}

/* Takes over fd, in the place of the socket. */
static int put(struct rebuild *r, const Kcr__File *file, int fd)
{
	int *giver = &r->giver_fd[file->id - 1], err = 0;

	if (dup3(fd, r->file_fd[file->id - 1], O_CLOEXEC) < 0)
		err = rebuild_error(file, -errno, "its descriptor");
	close(fd);
	close(*giver);
	*giver = -1;
	return err;
}

int user_fault_bring(struct rebuild *r, const Kcr__File *file)
{
	int fd;

	if (file->kind_case != KCR__FILE__KIND_USER_FAULT || r->giver_fd[file->id - 1] < 0)
		return 0;
	fd = look(r->file_fd[file->id - 1]);
	return fd < 0 ? rebuild_error(file, fd, "its descriptor") : put(r, file, fd);
}

int user_faults_make(struct rebuild *r, const Kcr__Process *process)
{
	const struct context *c = r->context;
	int err = 0, fd;

	for (size_t i = 0; i < c->nr_files && !err; i++) {
		const Kcr__File *file = c->file[i];

		if (file->kind_case != KCR__FILE__KIND_USER_FAULT || r->giver_fd[i] < 0 ||
		    file->user_fault->pid != process->pid)
			continue;
		fd = make(file);
		if (fd < 0)
			return fd;
		err = give(r->giver_fd[i], fd);
		if (err) {
			close(fd);
			return rebuild_error(file, err, "its descriptor");
		}
		err = put(r, file, fd);
	}
	return err;
}

static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	int flags = fcntl(number, F_GETFD), err = user_fault_bring(r, file);

	(void)process;
	if (!err && dup3(r->file_fd[file->id - 1], number, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		err = rebuild_error(file, -errno, "descriptor %d", number);
	return err;
}

const struct file_kind file_kind_user_fault = {
	.kind = KCR__FILE__KIND_USER_FAULT,
	.name = "userfaultfd",
	.match = match,
	.save = save,
	.open = open_socket,
	.install = install,
};
