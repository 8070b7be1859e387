// SPDX-License-Identifier: GPL-2.0
/*
 * The memory sections of a context file: their runs, and the ways to take their
 * pages; and the tables, which say of pages what they are and where.
 */
#include <errno.h>
#include <unistd.h>

#include "reader.h"
#include "report/report.h"

static int check_runs(struct context_reader *r, const struct context_item *item)
{
	uint64_t end = 0, pages = 0;
	size_t i;

	for (i = 0; i < item->nr_runs; i++) {
		const struct kcr_run *run = &item->runs[i];

		if (run->address % CONTEXT_PAGE || run->address < end || !run->nr_pages ||
		    run->nr_pages > CONTEXT_CHUNK_PAGES ||
		    run->address > UINT64_MAX - run->nr_pages * CONTEXT_PAGE)
			return reader_damaged(r, "malformed memory runs");
		end = run->address + run->nr_pages * CONTEXT_PAGE;
		pages += run->nr_pages;
	}
	if (pages != item->nr_pages || pages > CONTEXT_CHUNK_PAGES)
		return reader_damaged(r, "malformed memory runs");
	return 0;
}

int reader_take_runs(struct context_reader *r, struct context_item *item, size_t page_bytes)
{
	const struct memory_meta *meta = (const void *)r->meta.data;
	const char *wrong;
	int err;

	item->pid = meta->pid;
	item->nr_runs = meta->nr_runs;
	item->nr_pages = meta->nr_pages;
	item->runs = (const struct kcr_run *)(meta + 1);
	item->position = r->start;
	item->sequence = r->sections - 1;
	if (item->nr_pages > CONTEXT_CHUNK_PAGES ||
	    r->head.meta_length != sizeof(*meta) + item->nr_runs * sizeof(struct kcr_run) +
					   item->nr_pages * page_bytes)
		return reader_damaged(r, "malformed memory runs");
	err = check_runs(r, item);
	if (err)
		return err;
	wrong = r->context ? check_memory(r->context, item) : NULL;
	return wrong ? reader_damaged(r, wrong) : 0;
}

int reader_take_memory(struct context_reader *r, struct context_item *item)
{
	const uint64_t stored = r->head.data_length;
	int err = reader_take_runs(r, item, 0);

	if (err)
		return err;
	item->compression = r->head.compression;
	item->length = stored;
	if (item->compression ? stored >= item->nr_pages * CONTEXT_PAGE :
				stored != item->nr_pages * CONTEXT_PAGE)
		return reader_damaged(r, "impossible length");
	r->pages += item->nr_pages;
	r->data_follow = true;
	return 0;
}

int reader_take_table(struct context_reader *r, struct context_item *item)
{
	int err = reader_take_runs(r, item, TABLE_PAGE_BYTES);

	if (err)
		return err;
	item->hash = (const struct context_hash *)(item->runs + item->nr_runs);
	item->owner = (const uint16_t *)(item->hash + item->nr_pages);
	for (uint64_t i = 0; r->context && i < item->nr_pages; i++)
		if (item->owner[i] > r->nr_ancestors)
			return reader_damaged(r, "pages of an unknown ancestor");
	return 0;
}

int reader_take_duplicates(struct context_reader *r, struct context_item *item)
{
	const char *wrong;
	int err = reader_take_runs(r, item, sizeof(*item->original));

	if (err)
		return err;
	item->original = (const struct context_original *)(item->runs + item->nr_runs);
	wrong = r->context ? check_originals(r->context, item) : NULL;
	return wrong ? reader_damaged(r, wrong) : 0;
}

size_t context_cut_runs(const struct kcr_run *runs, size_t nr_runs, uint64_t first,
			uint64_t nr_pages, struct kcr_run *out)
{
	size_t count = 0;

	for (size_t i = 0; nr_pages && i < nr_runs; i++) {
		uint64_t n = runs[i].nr_pages;

		if (first >= n) {
			first -= n;
			continue;
		}
		n = n - first < nr_pages ? n - first : nr_pages;
		out[count++] = (struct kcr_run) {
			.address = runs[i].address + first * CONTEXT_PAGE, .nr_pages = n,
		};
		nr_pages -= n;
		first = 0;
	}
	return count;
}

/* ---- taking the pages ---------------------------------------------------------- */

void context_reader_skim(struct context_reader *r, enum context_skim what)
{
	r->skim = what;
}

int context_reader_return(struct context_reader *r, uint64_t position, uint64_t sequence)
{
	if (r->error)
		return r->error;
	r->position = position;
	r->sections = sequence;
	r->last_type = CONTEXT_MEMORY;
	r->next_read = r->data_follow = r->held = false;
	return 0;
}

int context_memory_damaged(struct context_reader *r, uint64_t position, const char *what)
{
	r->error = report_fail(-EINVAL, "%s: damaged context file: %s (memory at byte %llu)",
			       r->name, what, (unsigned long long)position);
	return r->error;
}

int context_memory_taken(struct context_reader *r, uint64_t sum)
{
	if (r->error)
		return r->error;
	if (!r->data_follow || r->head.compression)
		return report_fail(-EINVAL, "%s: pages taken that are not there", r->name);
	r->position += r->head.data_length;
	return reader_check_tail(r, sum);
}

int context_memory_missing(struct context_reader *r)
{
	return reader_truncated(r, "after");
}

/* Can the pages of the section be read? */
static int check_taking(const struct context_reader *r)
{
	if (r->error)
		return r->error;
	if (!r->data_follow)
		return report_fail(-EINVAL, "%s: pages taken that are not there", r->name);
	return 0;
}

int context_memory_part(struct context_reader *r, size_t offset, void *buffer, size_t length)
{
	char *to = buffer;
	int err = check_taking(r);

	while (!err && length) {
		ssize_t n = pread(r->fd, to, length, (off_t)(r->base + r->position + offset));

		if (n < 0 && errno != EINTR)
			err = r->error = report_errno(-errno, "%s", r->name);
		else if (!n)
			err = reader_truncated(r, "after");
		else if (n > 0) {
			to += n;
			offset += n;
			length -= n;
		}
	}
	return err;
}

int context_memory_stored(struct context_reader *r, void *buffer, uint64_t *sum)
{
	int err = check_taking(r);

	if (!err)
		err = reader_exactly(r, buffer, r->head.data_length);
	return err ? err : reader_tail(r, sum);
}

int context_memory_read(struct context_reader *r, void *buffer)
{
	const size_t stored = r->head.data_length;
	const void *data = buffer;
	int err = check_taking(r);

	if (err)
		return err;
	if (!r->head.compression) {
		err = reader_exactly(r, buffer, stored);
	} else {
		err = reader_growing(r, &r->data, stored);
		data = r->data.data;
	}
	if (!err)
		err = reader_check_tail(r, XXH64(data, stored, 0));
	if (err || !r->head.compression)
		return err;
	err = codec_decompress(r->codec, r->head.compression, data, stored, buffer,
			       r->item.nr_pages * CONTEXT_PAGE);
	if (err == -ENOMEM)
		return reader_no_memory(r);
	return err ? reader_damaged(r, "malformed compression") : 0;
}
