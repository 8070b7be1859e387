// SPDX-License-Identifier: GPL-2.0
/* See duplicates.h. */
#include "restart/duplicates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"

int duplicates_check(const struct context_reader *reader, const struct kcr_info *info)
{
	if (!(context_reader_features(reader) & CONTEXT_HAS_DUPLICATES) ||
	    info->features & KCR_FEATURE_READ_BACK)
		return 0;
	return report_fail(-EOPNOTSUPP, "the context file has pages that are equal to others "
			   "(cr_checkpoint --dedup), which the loaded module, an older one, cannot copy: "
			   "load that of this version");
}

static bool is_same(const struct context_original *a, const struct context_original *b)
{
	return a->pid == b->pid && a->address == b->address;
}

/* How many originals, from the first on, follow one upon the other? */
static uint64_t count_consecutive(const struct context_original *o, uint64_t nr_pages)
{
	uint64_t n = 1;

	while (n < nr_pages && o[n].pid == o->pid && o[n].address == o->address + n * CONTEXT_PAGE)
		n++;
	return n;
}

static int read_originals(const struct rebuild *r, const struct context_item *item, char *buffer)
{
	const struct context_original *o = item->original;
	uint64_t n;
	int err = 0;

	for (uint64_t i = 0; !err && i < item->nr_pages; i += n) {
		char *to = buffer + i * CONTEXT_PAGE;
		struct kcr_run run = { .address = o[i].address };

		n = 1;
		if (i && is_same(&o[i], &o[i - 1])) {
			memcpy(to, to - CONTEXT_PAGE, CONTEXT_PAGE);
			continue;
		}
		run.nr_pages = n = count_consecutive(&o[i], item->nr_pages - i);
		err = device_read(r->job, rebuild_pid(r, o[i].pid), 0, to, &run, 1, NULL);
	}
	return err;
}

static int copy(const struct rebuild *r, const struct context_item *item, struct page_sink *sink,
		char *buffer)
{
	int err = read_originals(r, item, buffer);

	return err ?: sink->ops->store(sink, &(struct context_chunk) {
		.pid = item->pid, .runs = item->runs, .nr_runs = item->nr_runs,
		.nr_pages = item->nr_pages, .data = buffer, .length = item->nr_pages * CONTEXT_PAGE,
	});
}

int duplicates_fill(const struct rebuild *r, struct context_reader *reader, struct page_sink *sink,
		    uint64_t *count)
{
	struct context_item item;
	char *buffer;
	int err = 0, more = 0;

	if (!(context_reader_features(reader) & CONTEXT_HAS_DUPLICATES))
		return 0;
	buffer = malloc(CONTEXT_CHUNK_BYTES);
	if (!buffer)
		return report_errno(-ENOMEM, "pages that are equal to others");
	/* Nothing else can follow. */
	while (!err && (more = context_read(reader, &item)) > 0) {
		err = copy(r, &item, sink, buffer);
		*count += item.nr_pages;
	}
	free(buffer);
	return err ?: more;
}
