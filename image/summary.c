// SPDX-License-Identifier: GPL-2.0
/*
 * See summary.h.  A chunk holds pages of one process, but maybe of several of its mappings,
 * and a run may cross from one to the next: so pages are counted by mapping, stored bytes are not.
 */
#include "image/summary.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report.h"

static size_t process_index(const struct context *c, int32_t pid)
{
	size_t i;

	for (i = 0; i < c->nr_processes && c->process[i]->pid != pid; i++)
		;
	return i;
}

/* ---- one section ----------------------------------------------------------------- */

static void count_chunk(struct compression_count *n, const struct context_item *item)
{
	n[item->compression].chunks++;
	n[item->compression].bytes += item->nr_pages * CONTEXT_PAGE;
	n[item->compression].stored += item->length;
}

/* kind: a compression, SUMMARY_SHARED or SUMMARY_DUPLICATE. */
static void add_run(const Kcr__Mm *mm, struct summary_memory *m, const struct kcr_run *run,
		    unsigned int kind)
{
	uint64_t address = run->address, end = address + run->nr_pages * CONTEXT_PAGE;

	/* The reader has checked that there are mappings. */
	for (size_t i = context_area(mm, address); address < end; i++) {
		uint64_t to = mm->vma[i]->end < end ? mm->vma[i]->end : end;

		m->mapping[i].pages[kind] += (to - address) / CONTEXT_PAGE;
		address = to;
	}
}

static void add_shared(const struct context *c, struct summary *s, const struct context_sharer *sharer)
{
	size_t process = process_index(c, sharer->pid);
	struct summary_memory *m = &s->memory[process];

	for (size_t i = 0; i < sharer->nr_runs; i++) {
		add_run(c->process[process]->mm, m, &sharer->runs[i], SUMMARY_SHARED);
		m->shared += sharer->runs[i].nr_pages;
		s->shared += sharer->runs[i].nr_pages;
	}
}

static void add_memory(const Kcr__Mm *mm, struct summary *s, struct summary_memory *m,
		       const struct context_item *item)
{
	m->sections++;
	m->runs += item->nr_runs;
	m->pages += item->nr_pages;
	s->pages += item->nr_pages;
	count_chunk(m->compression, item);
	count_chunk(s->compression, item);
	for (size_t i = 0; i < item->nr_runs; i++)
		add_run(mm, m, &item->runs[i], item->compression);
}

/* A table names the pages that are here, too. */
static void add_table(const struct context *c, const Kcr__Mm *mm, struct summary *s,
		      struct summary_memory *m, const struct context_item *item)
{
	const uint16_t *owner = item->owner;

	for (size_t i = 0; i < item->nr_runs; i++) {
		const struct kcr_run *run = &item->runs[i];
		size_t mapping = context_area(mm, run->address);

		for (uint64_t k = 0; k < run->nr_pages; k++, owner++) {
			if (*owner >= c->preamble->n_ancestor)
				continue;
			while (mm->vma[mapping]->end <= run->address + k * CONTEXT_PAGE)
				mapping++;
			m->mapping[mapping].older++;
			m->older++;
			s->older[*owner]++;
		}
	}
}

static void add_duplicates(const Kcr__Mm *mm, struct summary *s, struct summary_memory *m,
			   const struct context_item *item)
{
	m->duplicates += item->nr_pages;
	s->duplicates += item->nr_pages;
	for (size_t i = 0; i < item->nr_runs; i++)
		add_run(mm, m, &item->runs[i], SUMMARY_DUPLICATE);
}

static void add(struct summary *s, const struct context *c, const struct context_item *item)
{
	size_t process;

	s->sections++;
	if (item->type == CONTEXT_CONTENT) {
		s->content[item->file_id - 1] += item->length;
		s->content_bytes += item->length;
		return;
	}
	process = process_index(c, item->pid);
	for (size_t i = 0; i < item->nr_sharers; i++)
		add_shared(c, s, &item->sharer[i]);
	if (item->type == CONTEXT_MEMORY)
		add_memory(c->process[process]->mm, s, &s->memory[process], item);
	else if (item->type == CONTEXT_DUPLICATES)
		add_duplicates(c->process[process]->mm, s, &s->memory[process], item);
	else
		add_table(c, c->process[process]->mm, s, &s->memory[process], item);
}

/* ---- all ------------------------------------------------------------------------- */

static int allocate(struct summary *s, const struct context *c)
{
	s->content = calloc(c->nr_files + 1, sizeof(*s->content));
	s->memory = calloc(c->nr_processes + 1, sizeof(*s->memory));
	if (!s->content || !s->memory)
		return -ENOMEM;
	s->nr_memories = c->nr_processes;
	for (size_t i = 0; i < s->nr_memories; i++) {
		const Kcr__Mm *mm = c->process[i]->mm;

		if (!mm)
			continue;
		s->memory[i].mapping = calloc(mm->n_vma + 1, sizeof(struct summary_mapping));
		if (!s->memory[i].mapping)
			return -ENOMEM;
	}
	return 0;
}

int summary_read(struct context_reader *r, const struct context *c, struct summary *out)
{
	struct context_item item;
	struct summary s = { 0 };
	Kcr__Ancestor identity = KCR__ANCESTOR__INIT;
	int more = 0, err = allocate(&s, c);

	if (err)
		report_errno(err, "cannot read the context file");
	while (!err && (more = context_read(r, &item)) > 0)
		add(&s, c, &item);
	err = err ? err : more;
	if (err) {
		summary_free(&s);
		return err;
	}
	context_reader_identity(r, &identity);
	s.id = identity.id;
	s.bytes = context_reader_bytes(r);
	*out = s;
	return 0;
}

void summary_free(struct summary *s)
{
	for (size_t i = 0; i < s->nr_memories; i++)
		free(s->memory[i].mapping);
	free(s->memory);
	free(s->content);
}

uint64_t summary_saved(const struct summary_mapping *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++)
		sum += m->pages[i];
	return sum;
}
