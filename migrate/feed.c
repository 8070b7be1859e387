// SPDX-License-Identifier: GPL-2.0
/* See feed.h. */
#include "migrate/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "image/shadow.h"
#include "proc/thread.h"
#include "report/report.h"

/* 0 when the image is complete. */
static int take_all(struct feed *f, void *buffer)
{
	while (!context_shadow_is_complete(f->shadow)) {
		ssize_t n = read(f->pipe[0], buffer, LINK_DATA_MAX);
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		err = context_shadow_add(f->shadow, buffer, n);
		f->unkept = err;
		if (!err)
			err = link_send(f->link, LINK_DATA, buffer, n);
		if (err)
			return err;
	}
	return link_send(f->link, LINK_END, NULL, 0);
}

static void *run(void *argument)
{
	struct feed *f = argument;
	void *buffer = malloc(LINK_DATA_MAX);

	f->err = buffer ? take_all(f, buffer) : -ENOMEM;
	free(buffer);
	/* Whoever still writes gets EPIPE. */
	close(f->pipe[0]);
	return NULL;
}

int feed_start(struct feed *f, const struct link *w, int file)
{
	int err;

	*f = (struct feed){ .link = w, .file = file };
	f->shadow = context_shadow_new(file);
	err = f->shadow ? 0 : -ENOMEM;
	if (!err && pipe2(f->pipe, O_CLOEXEC))
		err = -errno;
	if (!err) {
		fcntl(f->pipe[1], F_SETPIPE_SZ, LINK_DATA_MAX);	/* less will do */
		err = thread_start(&f->thread, run, f);
		f->running = !err;
		if (err) {
			close(f->pipe[0]);
			close(f->pipe[1]);
		}
	}
	if (!err)
		return 0;
	context_shadow_free(f->shadow);
	close(file);
	return report_errno(err, "cannot send an image");
}

int feed_finish(struct feed *f)
{
	if (!f->running)
		return 0;
	f->running = false;
	close(f->pipe[1]);
	pthread_join(f->thread, NULL);
	context_shadow_free(f->shadow);
	close(f->file);
	return f->err;
}
