// SPDX-License-Identifier: GPL-2.0
/* See arrival.h. */
#include "migrate/arrival.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/context.h"
#include "proc/thread.h"
#include "report/report.h"

static void *run(void *argument)
{
	struct arrival *a = argument;
	uint64_t id;

	a->err = lseek(a->file, 0, SEEK_SET) ? report_errno(-errno, "%s", a->name) :
					       context_verify(a->file, a->name, &id);
	return NULL;
}

int arrival_finish(struct arrival *a)
{
	if (!a->running)
		return a->err;
	a->running = false;
	pthread_join(a->thread, NULL);
	/* On NFS what could not be written may be known only now. */
	if (close(a->file) && !a->err)
		a->err = report_errno(-errno, "cannot write %s", a->name);
	free(a->name);
	return a->err;
}

int arrival_verify(struct arrival *a, int file, const char *name)
{
	int err = arrival_finish(a);

	if (!err) {
		a->file = file;
		a->name = strdup(name);
		err = a->name ? thread_start(&a->thread, run, a) : -ENOMEM;
		if (!err) {
			a->running = true;
			return 0;
		}
		free(a->name);
		a->err = report_errno(err, "%s", name);
	}
	close(file);
	return a->err;
}
