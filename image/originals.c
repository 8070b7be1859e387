// SPDX-License-Identifier: GPL-2.0
/* See originals.h.  Sorted, so that each MEMORY section finds its own. */
#include "image/originals.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report.h"

struct wanted {
	uint64_t from;			/* of this page … */
	uint64_t address;		/* … this one is a duplicate */
	int32_t pid;			/* of the first */
};

static int no_memory(void)
{
	return report_errno(-ENOMEM, "pages that are equal to others");
}

static int make_room(struct originals *o, size_t more)
{
	size_t room = 2 * o->room > o->count + more ? 2 * o->room : o->count + more;
	struct wanted *larger;

	if (o->count + more <= o->room)
		return 0;
	larger = reallocarray(o->wanted, room, sizeof(*larger));
	if (!larger)
		return no_memory();
	o->wanted = larger;
	o->room = room;
	return 0;
}

int originals_note(struct originals *o, const struct context_item *item)
{
	const struct context_original *original = item->original;
	int err = make_room(o, item->nr_pages);

	for (size_t i = 0; !err && i < item->nr_runs; i++)
		for (uint64_t k = 0; k < item->runs[i].nr_pages; k++, original++)
			o->wanted[o->count++] = (struct wanted) {
				.from = original->address, .pid = original->pid,
				.address = item->runs[i].address + k * CONTEXT_PAGE,
			};
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* The first one of this page, or of a later one. */
static size_t find(const struct originals *o, int32_t pid, uint64_t address)
{
	const struct wanted key = { .pid = pid, .from = address };
	size_t low = 0, high = o->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&o->wanted[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Passes on what of a run is wanted; `data`: its pages, NULL: only counts. */
static int take_run(const struct originals *o, const struct context_item *item,
		    const struct kcr_run *run, const char *data,
		    int (*put)(void *arg, uint64_t address, const void *page), void *arg, size_t *taken)
{
	uint64_t end = run->address + run->nr_pages * CONTEXT_PAGE;
	int err = 0;

	for (size_t i = find(o, item->pid, run->address); !err && i < o->count; i++) {
		const struct wanted *w = &o->wanted[i];

		if (w->pid != item->pid || w->from >= end)
			break;
		++*taken;
		if (data)
			err = put(arg, w->address, data + (w->from - run->address));
	}
	return err;
}

static int take(const struct originals *o, struct context_reader *r, const struct context_item *item,
		char *buffer, int (*put)(void *arg, uint64_t address, const void *page), void *arg,
		size_t *taken)
{
	const char *data = buffer;
	size_t wanted = 0;
	int err = 0;

	for (size_t i = 0; i < item->nr_runs; i++)
		take_run(o, item, &item->runs[i], NULL, put, arg, &wanted);
	if (wanted)
		err = context_memory_read(r, buffer);
	for (size_t i = 0; wanted && !err && i < item->nr_runs; i++) {
		err = take_run(o, item, &item->runs[i], data, put, arg, taken);
		data += item->runs[i].nr_pages * CONTEXT_PAGE;
	}
	return err;
}

static int read_again(const struct originals *o, struct context_reader *r, char *buffer,
		      int (*put)(void *arg, uint64_t address, const void *page), void *arg)
{
	struct context_item item;
	size_t taken = 0;
	int err = 0, more = 0;

	context_reader_skim(r, CONTEXT_SKIM_PAGES);
	while (!err && (more = context_read(r, &item)) > 0)
		if (item.type == CONTEXT_MEMORY)
			err = take(o, r, &item, buffer, put, arg, &taken);
	err = err ?: more;
	if (!err && taken != o->count)
		err = report_fail(-EINVAL, "the context file is damaged: it has duplicates of pages that "
				  "are not there");
	return err;
}

int originals_read(struct originals *o, const struct context_reader *reader,
		   int (*put)(void *arg, uint64_t address, const void *page), void *arg)
{
	struct context_reader *again;
	char *buffer;
	int err;

	if (!o->count)
		return 0;
	err = context_reader_again(&again, reader);
	if (err == -ESPIPE)
		return report_fail(err, "the context file has pages that are equal to others "
				   "(cr_checkpoint --dedup) and is read twice: save it in a file first");
	if (err)
		return err;
	qsort(o->wanted, o->count, sizeof(*o->wanted), compare);
	buffer = malloc(CONTEXT_CHUNK_BYTES);
	err = buffer ? read_again(o, again, buffer, put, arg) : no_memory();
	free(buffer);
	context_reader_free(again);
	return err;
}

void originals_free(struct originals *o)
{
	free(o->wanted);
	*o = (struct originals){ 0 };
}
