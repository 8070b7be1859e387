// SPDX-License-Identifier: GPL-2.0
/*
 * The metrics of a job; see metrics.h.  The collector may read at any moment and its folder
 * may be shared with other users: the file is written under a name that nobody has, and
 * renamed.
 */
#include "batch/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/view.h"

/* What a label may contain: no control characters, and these three escaped. */
static void put_label(FILE *out, const char *name, const char *value)
{
	char *plain = NULL;
	size_t size;
	FILE *text = open_memstream(&plain, &size);

	if (text) {
		text_put(text, value);
		fclose(text);
	}
	fprintf(out, "%s=\"", name);
	for (const char *p = plain ? plain : ""; *p; p++) {
		if (*p == '\\' || *p == '"')
			putc('\\', out);
		putc(*p, out);
	}
	putc('"', out);
	free(plain);
}

static void put(FILE *out, const char *labels, const char *name, const char *type, const char *help,
		double value)
{
	fprintf(out, "# HELP kcr_batch_%s %s\n# TYPE kcr_batch_%s %s\nkcr_batch_%s%s %.15g\n", name, help,
		name, type, name, labels, value);
}

static char *format_labels(const struct folder *f)
{
	char *labels = NULL;
	size_t size;
	FILE *out = open_memstream(&labels, &size);

	if (!out)
		return NULL;
	putc('{', out);
	put_label(out, "job_name", f->name);
	putc(',', out);
	put_label(out, "folder", f->path);
	putc('}', out);
	fclose(out);
	return labels;
}

static void put_all(FILE *out, const char *labels, const struct state *s)
{
	put(out, labels, "running", "gauge", "1 while the program of the job runs, else 0.",
	    s->phase == STATE_RUNNING);
	put(out, labels, "checkpoints_total", "counter", "Checkpoints of the job so far.",
	    s->last.number);
	put(out, labels, "failed_saves_total", "counter", "Saves of the job that have failed.",
	    s->all_failures);
	put(out, labels, "restarts_total", "counter", "Restarts of the job.", s->restarts);
	if (s->next_due)
		put(out, labels, "next_save_timestamp_seconds", "gauge",
		    "When the next save is due, since 1970.", (double)s->next_due);
	if (!s->last.number)
		return;
	put(out, labels, "last_checkpoint_timestamp_seconds", "gauge",
	    "When the last checkpoint was complete, since 1970.", (double)s->last.time);
	put(out, labels, "last_checkpoint_size_bytes", "gauge", "Size of the last checkpoint.",
	    (double)s->last.bytes);
	put(out, labels, "last_checkpoint_duration_seconds", "gauge",
	    "How long the last checkpoint took.", s->last.cost_s);
}

/* Into the open file, which is closed.  0 or -errno. */
static int write_all(int fd, const struct folder *f, const struct state *s)
{
	char *labels = format_labels(f);
	FILE *out = labels ? fdopen(fd, "w") : NULL;
	int err = out ? 0 : -errno;

	if (out) {
		put_all(out, labels, s);
		if (fchmod(fd, 0644) || fflush(out))
			err = -errno;
		fclose(out);
	} else {
		close(fd);
	}
	free(labels);
	return err;
}

int metrics_write(const char *path, const struct folder *f, const struct state *s)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	char temporary[PATH_MAX];
	int err, fd;

	if (snprintf(temporary, sizeof(temporary), "%.*s.%s.XXXXXX", (int)(file - path), path, file) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_all(fd, f, s);
	if (!err && rename(temporary, path))
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}
