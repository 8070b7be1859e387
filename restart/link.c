// SPDX-License-Identifier: GPL-2.0
/* See link.h. */
#include "restart/link.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

static int write_all(int fd, struct iovec *part, int count)
{
	while (count) {
		ssize_t n = writev(fd, part, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EPIPE ? -ECONNRESET : -errno;
		while (count && (size_t)n >= part->iov_len) {
			n -= (ssize_t)part->iov_len;
			part++;
			count--;
		}
		if (count) {
			part->iov_base = (char *)part->iov_base + n;
			part->iov_len -= n;
		}
	}
	return 0;
}

int link_send(const struct link *w, enum link_type type, const void *data, size_t length)
{
	struct link_head head = { .type = type, .length = length };
	struct iovec part[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)data, .iov_len = length },
	};

	return write_all(w->out, part, length ? 2 : 1);
}

int link_read(const struct link *w, void *data, size_t length)
{
	char *next = data;

	while (length) {
		ssize_t n = read(w->in, next, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n && errno != EIO ? -errno : -ECONNRESET;
		next += n;
		length -= n;
	}
	return 0;
}

int link_receive(const struct link *w, struct link_head *head)
{
	int err = link_read(w, head, sizeof(*head));

	if (!err && (!head->type || head->type > LINK_LOADED || head->length > LINK_DATA_MAX))
		err = -EPROTO;
	return err;
}
