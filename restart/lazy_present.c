// SPDX-License-Identifier: GPL-2.0
/* See lazy_present.h. */
#include "restart/lazy_present.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"

#define IS_PRESENT	(1ull << 63 | 1ull << 62)	/* or swapped: proc_pid_pagemap(5) */

struct filling {
	const struct rebuild *rebuild;
	const struct deferred *deferred;
	struct deferred_reader *reader;
	int32_t pid;
	char *pages;			/* of `chunk` */
	const struct deferred_chunk *chunk;
	uint64_t entry[CONTEXT_CHUNK_PAGES];	/* of /proc/PID/pagemap */
};

/* Where a page of the chunk is in f->pages. */
static const char *page_in(const struct filling *f, uint64_t address)
{
	const char *at = f->pages;

	for (size_t i = 0; i < f->chunk->nr_runs; i++) {
		const struct kcr_run *run = &f->chunk->runs[i];

		if (address - run->address < run->nr_pages * CONTEXT_PAGE)
			return at + (address - run->address);
		at += run->nr_pages * CONTEXT_PAGE;
	}
	return NULL;
}

/* Fills one page, if it is deferred. */
static int fill_page(struct filling *f, uint64_t address)
{
	size_t number = deferred_find(f->deferred, f->pid, address);
	struct kcr_run run = { .address = address, .nr_pages = 1 };
	const struct deferred_chunk *chunk;
	int err = 0;

	if (number == SIZE_MAX)
		return 0;
	chunk = deferred_at(f->deferred, number);
	if (chunk != f->chunk)
		err = deferred_load(f->reader, chunk, f->pages);
	f->chunk = err ? NULL : chunk;
	return err ? err : device_store(f->rebuild->job, rebuild_pid(f->rebuild, f->pid),
					page_in(f, address), &run, 1, NULL);
}

/* Of any thread but the first one, which may have ended and have no memory any more. */
static int open_page_map(pid_t pid)
{
	DIR *list = proc_list(pid, "task");
	pid_t thread = pid;

	for (int tid; (tid = proc_next(list)) >= 0;)
		thread = tid == pid ? thread : tid;
	if (list)
		closedir(list);
	return proc_open(thread, "pagemap", O_RDONLY);
}

static int fill_range(struct filling *f, int pagemap, uint64_t at, uint64_t end)
{
	while (at < end) {
		uint64_t left = (end - at) / CONTEXT_PAGE;
		uint64_t n = left < CONTEXT_CHUNK_PAGES ? left : CONTEXT_CHUNK_PAGES;
		ssize_t got = pread(pagemap, f->entry, n * sizeof(*f->entry),
				    (off_t)(at / CONTEXT_PAGE * sizeof(*f->entry)));

		if (got != (ssize_t)(n * sizeof(*f->entry)))
			return report_errno(got < 0 ? -errno : -EIO, "process %d: its page map", f->pid);
		for (uint64_t i = 0; i < n; i++) {
			int err = f->entry[i] & IS_PRESENT ? fill_page(f, at + i * CONTEXT_PAGE) : 0;

			if (err)
				return err;
		}
		at += n * CONTEXT_PAGE;
	}
	return 0;
}

int lazy_fill_present(const struct rebuild *r, const struct deferred *d, int32_t pid,
		      uint64_t start, uint64_t end)
{
	struct filling *f = calloc(1, sizeof(*f));
	struct deferred_reader *reader = deferred_reader_new(d);
	char *pages = malloc(CONTEXT_CHUNK_BYTES);
	int pagemap, err = -ENOMEM;

	if (f && pages && reader) {
		f->rebuild = r;
		f->deferred = d;
		f->reader = reader;
		f->pid = pid;
		f->pages = pages;
		err = pagemap = open_page_map(rebuild_pid(r, pid));
		if (pagemap >= 0) {
			err = fill_range(f, pagemap, start, end);
			close(pagemap);
		}
	}
	free(f);
	free(pages);
	deferred_reader_free(reader);
	return err ? report_errno(err, "process %d: its memory cannot be loaded lazily", pid) : 0;
}
