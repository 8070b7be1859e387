// SPDX-License-Identifier: GPL-2.0
/*
 * A context file as source or sink of the page pipeline.
 */
#include <errno.h>
#include <unistd.h>

#include "image/page_map.h"
#include "image/pages.h"
#include "report/report.h"

/* ---- from a file ----------------------------------------------------------------- */

static struct context_reader *reader(struct page_source *source)
{
	return ((struct context_page_source *)source)->reader;
}

static int next(struct page_source *source, struct context_chunk *chunk)
{
	struct page_map *map = ((struct context_page_source *)source)->map;
	struct context_item item;
	int more, err;

	while ((more = context_read(reader(source), &item)) > 0 && item.type == CONTEXT_TABLE) {
		err = map ? page_map_add(map, &item) : 0;
		if (err)
			return err;
	}
	if (more <= 0)
		return more;
	/* Pages come no more; the caller may have use for these. */
	if (item.type == CONTEXT_DUPLICATES) {
		context_unread(reader(source));
		return 0;
	}
	if (item.type == CONTEXT_ELSEWHERE) {
		*chunk = (struct context_chunk) {
			.pid = item.pid, .runs = item.runs, .nr_runs = item.nr_runs,
			.nr_pages = item.nr_pages, .nr_needed = item.nr_pages, .needed = item.runs,
			.nr_needed_runs = item.nr_runs, .elsewhere = true,
			.number = ((struct context_page_source *)source)->nr_elsewhere++,
		};
		return 1;
	}
	if (item.type != CONTEXT_MEMORY)
		return report_fail(-EINVAL,
				   "the context file is damaged: its sections are out of order");
	if (item.nr_sharers)
		return report_fail(-EINVAL,
				   "the context file is damaged: it has shared pages where none can be");
	*chunk = (struct context_chunk) {
		.pid = item.pid, .runs = item.runs, .nr_runs = item.nr_runs,
		.nr_pages = item.nr_pages, .nr_needed = item.nr_pages, .compression = item.compression,
		.length = item.length, .position = item.position, .sequence = item.sequence,
		.needed = item.runs, .nr_needed_runs = item.nr_runs,
	};
	return 1;
}

static int load(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		uint64_t *sum)
{
	(void)chunk;
	return context_memory_stored(reader(source), buffer, sum);
}

/*
 * Only a regular file never blocks.  If the module waits for a pipe, being stopped
 * interrupts it, and what it has read is lost.
 */
static int begin_read(struct page_source *source)
{
	int fd = context_reader_fd(reader(source));

	return lseek(fd, 0, SEEK_CUR) < 0 ? -1 : fd;
}

static int end_read(struct page_source *source, int result, uint64_t sum)
{
	if (result != -ENODATA)
		return context_memory_taken(reader(source), sum);
	/* The fault is in the file, not in the process. */
	report_clear();
	return context_memory_missing(reader(source));
}

static int damaged(struct page_source *source, const struct context_chunk *chunk, const char *what)
{
	return context_memory_damaged(reader(source), chunk->position, what);
}

void context_page_source(struct context_page_source *s, struct context_reader *r)
{
	static const struct page_source_ops ops = {
		.next = next, .load = load, .begin = begin_read, .end = end_read,
		.damaged = damaged,
	};

	*s = (struct context_page_source){ .source.ops = &ops, .reader = r };
}

/* ---- to a file --------------------------------------------------------------------- */

static struct context_writer *writer(struct page_sink *sink)
{
	return ((struct context_page_sink *)sink)->writer;
}

static int write_sharers(struct page_sink *sink, const struct context_chunk *chunk)
{
	int err = 0;

	for (size_t i = 0; !err && i < chunk->nr_sharers; i++)
		err = context_write_sharer(writer(sink), &chunk->sharer[i]);
	return err;
}

static int store(struct page_sink *sink, const struct context_chunk *chunk)
{
	int err = chunk->table ? context_write_table(writer(sink), chunk->table) : 0;

	if (!err)
		err = write_sharers(sink, chunk);
	return err || !chunk->nr_pages ? err : context_write_chunk(writer(sink), chunk);
}

static int begin_write(struct page_sink *sink, const struct context_chunk *chunk)
{
	int err = write_sharers(sink, chunk);

	if (!err)
		err = context_memory_begin(writer(sink), chunk->pid, chunk->runs, chunk->nr_runs);
	return err ? err : context_writer_fd(writer(sink));
}

static int end_write(struct page_sink *sink, uint64_t sum)
{
	return context_memory_end(writer(sink), sum);
}

void context_page_sink(struct context_page_sink *s, struct context_writer *w)
{
	static const struct page_sink_ops ops = {
		.store = store, .begin = begin_write, .end = end_write,
	};

	s->sink.ops = &ops;
	s->writer = w;
}
