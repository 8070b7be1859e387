// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of rebuilt processes comes straight from the context file: the
 * module reads raw pages into place; compressed ones, and those that cannot be
 * read a second time, pass through a buffer of one chunk here.  No process runs
 * before all of it has been verified.
 */
#include "restart/fill.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"

static pid_t current_pid(const struct rebuild *r, int32_t saved)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		if (r->context->process[i]->pid == saved)
			return r->new_pid[i];
	return -1;
}

static int fill_raw(struct rebuild *r, struct context_reader *reader,
		    const struct context_item *item, pid_t pid)
{
	uint64_t sum;
	int err = device_fill(r->job, pid, context_reader_fd(reader), item->runs, item->nr_runs,
			      &sum);

	if (err == -ENODATA) {
		/* The file is to blame, not the process. */
		report_clear();
		return context_memory_missing(reader);
	}
	return err ? err : context_memory_taken(reader, sum);
}

static int fill_decoded(struct rebuild *r, struct context_reader *reader,
			const struct context_item *item, pid_t pid, void *buffer)
{
	uint64_t sum;
	int err = context_memory_read(reader, buffer);

	return err ? err : device_store(r->job, pid, buffer, item->runs, item->nr_runs, &sum);
}

/*
 * Only a file has its pages at once.  When the module waits for a pipe, it is
 * interrupted as soon as we are stopped, and what it has read is lost.
 */
static bool module_reads(const struct context_reader *reader, const struct context_item *item)
{
	return item->compression == CONTEXT_RAW &&
	       lseek(context_reader_fd(reader), 0, SEEK_CUR) >= 0;
}

static int fill_one(struct rebuild *r, struct context_reader *reader,
		    const struct context_item *item, void **buffer)
{
	pid_t pid = current_pid(r, item->pid);

	if (module_reads(reader, item))
		return fill_raw(r, reader, item, pid);
	if (!*buffer)
		*buffer = malloc((size_t)CONTEXT_CHUNK_PAGES * CONTEXT_PAGE);
	if (!*buffer)
		return report_errno(-ENOMEM, "restart");
	return fill_decoded(r, reader, item, pid, *buffer);
}

int fill_memory(struct rebuild *r, struct context_reader *reader, struct context_item *item,
		int more, const struct restart_options *options, struct restart_result *result)
{
	const Kcr__Preamble *preamble = r->context->preamble;
	uint64_t total = preamble->has_image_bytes_hint ? preamble->image_bytes_hint : 0;
	void *buffer = NULL;
	int err = 0;

	while (more > 0 && item->type == CONTEXT_MEMORY) {
		err = fill_one(r, reader, item, &buffer);
		if (err)
			break;
		result->nr_pages += item->nr_pages;
		if (options->progress)
			options->progress(options->progress_arg, result->nr_pages * CONTEXT_PAGE,
					  total);
		more = context_read(reader, item);
	}
	free(buffer);
	if (err)
		return err;
	if (more < 0)
		return more;
	if (more > 0)
		return report_fail(-EINVAL, "the context file is damaged: its sections are out of order");
	return 0;
}
