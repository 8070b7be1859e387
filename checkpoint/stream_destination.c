// SPDX-License-Identifier: GPL-2.0
/*
 * A destination that is not renamed at the end: what is written is visible at once,
 * and stays if the checkpoint fails.
 */
#include "checkpoint/destination.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/report.h"

static int commit(struct destination *d)
{
	(void)d;
	return 0;
}

static void close_stream(struct destination *d)
{
	close(d->fd);
	free(d);
}

static void path(const struct destination *d, char *text, size_t size)
{
	destination_fd_path(d->fd, text, size);
}

static const char *folder(const struct destination *d)
{
	(void)d;
	return NULL;
}

int stream_destination_open(struct destination **out, int fd, bool append, bool sync)
{
	static const struct destination_ops ops = {
		.rewind = destination_rewind_fd, .sync = destination_sync_fd, .commit = commit,
		.close = close_stream, .path = path, .folder = folder,
	};
	struct destination *d = calloc(1, sizeof(*d));

	if (!d) {
		close(fd);
		return report_errno(-ENOMEM, "destination");
	}
	*d = (struct destination) {
		.ops = &ops, .fd = fd, .sync = sync,
		.start = append ? -1 : lseek(fd, 0, SEEK_CUR),
	};
	*out = d;
	return 0;
}
