// SPDX-License-Identifier: GPL-2.0
/* Messages with file descriptors.  See message.h. */
#include "launch/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	char bytes[CMSG_SPACE(LAUNCH_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int launch_send(int fd, uint32_t type, int32_t value, const int *fds, size_t nr_fds)
{
	struct launch_message m = { type, value };
	struct iovec part = { &m, sizeof(m) };
	union control control = { 0 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *rights;
	ssize_t sent;

	if (nr_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(nr_fds * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, nr_fds * sizeof(int));
	}
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Takes the descriptors out of a message: their number. */
static int take_fds(struct msghdr *header, int fds[LAUNCH_FDS_MAX])
{
	int count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t length = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds, CMSG_DATA(c), length);
		count = length / sizeof(int);
	}
	return count;
}

int launch_receive(int fd, struct launch_message *m, int fds[LAUNCH_FDS_MAX])
{
	struct iovec part = { m, sizeof(*m) };
	union control control;
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t got;
	int count;

	do
		got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return got ? -errno : -ECONNRESET;
	count = take_fds(&header, fds);
	if (got == sizeof(*m) && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return count;
	while (count--)
		close(fds[count]);
	return -EPROTO;
}
