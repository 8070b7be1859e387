// SPDX-License-Identifier: GPL-2.0
/* See userfault.h. */
#include "restart/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/context.h"
#include "report/report.h"

/* All changes of a mapping; the kernel reports those of forks to privileged readers only. */
#define FEATURES	(UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | \
			 UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP)

static int make(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int userfault_begin(int fd)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };

	return ioctl(fd, UFFDIO_API, &api) < 0 ? -errno : 0;
}

int userfault_check(void)
{
	int fd = make(), err = fd < 0 ? fd : userfault_begin(fd);

	if (fd >= 0)
		close(fd);
	if (err == -EPERM)
		return report_fail(err, "--lazy needs userfaultfd(2) with all its events, which takes "
				   "CAP_SYS_PTRACE outside of user namespaces: restart it as root, or leave "
				   "--lazy out");
	return err ? report_errno(err, "--lazy: userfaultfd(2)") : 0;
}

int userfault_send(int socket, size_t number)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { &number, sizeof(number) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd = make(), err = 0;

	if (fd < 0)
		return fd;
	control.head = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		err = -errno;
	close(fd);
	return err;
}

int userfault_receive(int socket, size_t *number)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec data = { number, sizeof(*number) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd;

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n != sizeof(*number) || message.msg_controllen < CMSG_LEN(sizeof(fd)) ||
	    control.head.cmsg_type != SCM_RIGHTS)
		return -EMFILE;		/* there was no room for the descriptor */
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

int userfault_register(int fd, uint64_t start, uint64_t end, uint64_t mode)
{
	struct uffdio_register range = { .range = { start, end - start }, .mode = mode };

	return ioctl(fd, UFFDIO_REGISTER, &range) < 0 ? -errno : 0;
}

int userfault_protect(int fd, uint64_t start, uint64_t end)
{
	struct uffdio_writeprotect pages = {
		.range = { start, end - start }, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return ioctl(fd, UFFDIO_WRITEPROTECT, &pages) < 0 ? -errno : 0;
}

int64_t userfault_copy(int fd, uint64_t address, const void *pages, uint64_t length)
{
	struct uffdio_copy copy = { .dst = address, .src = (uintptr_t)pages, .len = length };

	if (!ioctl(fd, UFFDIO_COPY, &copy) || copy.copy > 0)
		return copy.copy;
	return -errno;
}

int64_t userfault_zero(int fd, uint64_t address)
{
	struct uffdio_zeropage zero = { .range = { address, CONTEXT_PAGE } };

	return ioctl(fd, UFFDIO_ZEROPAGE, &zero) < 0 ? -errno : (int64_t)CONTEXT_PAGE;
}

void userfault_wake(int fd, uint64_t address)
{
	struct uffdio_range range = { address, CONTEXT_PAGE };

	ioctl(fd, UFFDIO_WAKE, &range);
}
