// SPDX-License-Identifier: GPL-2.0
/* Blocking reads and writes of messages.  See wire.h. */
#include "job/coordinator/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

int wire_write(int fd, uint32_t type, uint32_t rank, uint32_t id, const void *data, size_t length)
{
	struct wire_header header = { length, type, rank, id };
	struct iovec iov[2] = { { &header, sizeof(header) }, { (void *)data, length } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

	while (iov[0].iov_len + iov[1].iov_len) {
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (int i = 0; i < 2; i++) {
			size_t part = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;

			iov[i].iov_base = (char *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			n -= part;
		}
	}
	return 0;
}

static int read_all(int fd, void *buffer, size_t length)
{
	while (length) {
		ssize_t n = recv(fd, buffer, length, 0);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buffer = (char *)buffer + n;
		length -= n;
	}
	return 0;
}

int wire_read(int fd, struct wire_header *header, uint8_t **data, size_t most)
{
	int err = read_all(fd, header, sizeof(*header));

	*data = NULL;
	if (err || !header->length)
		return err;
	if (header->length > most)
		return -EPROTO;
	*data = malloc(header->length);
	err = *data ? read_all(fd, *data, header->length) : -ENOMEM;
	if (err) {
		free(*data);
		*data = NULL;
	}
	return err;
}
