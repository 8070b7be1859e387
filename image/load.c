// SPDX-License-Identifier: GPL-2.0
/*
 * Loads the metadata of a context file: everything before the first contents or
 * memory.  All later code relies on what check.c has validated.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "report/report.h"

#define MAX_FILES	(4u << 20)
#define MAX_PROCESSES	(4u << 20)

static int no_memory(const struct context_reader *r)
{
	return report_errno(-ENOMEM, "%s: cannot read the context file", r->name);
}

/* Room for one more pointer; arrays double, as the preamble's counts are not trusted. */
static int grow(void **array, size_t count)
{
	void *bigger;

	if (count & (count - 1))
		return 0;
	bigger = realloc(*array, (count ? 2 * count : 1) * sizeof(void *));
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	return 0;
}

static int take_preamble(struct context_reader *r, struct context *c)
{
	c->preamble = (Kcr__Preamble *)r->item.message;
	r->item.message = NULL;
	r->nr_ancestors = c->preamble->n_ancestor;
	if (r->nr_ancestors > CONTEXT_MAX_ANCESTORS ||
	    !r->nr_ancestors != !(r->features & CONTEXT_HAS_ANCESTORS))
		return reader_damaged(r, "impossible list of ancestors");
	for (size_t i = 0; i < r->nr_ancestors; i++)
		if (!*c->preamble->ancestor[i]->name || strchr(c->preamble->ancestor[i]->name, '/'))
			return reader_damaged(r, "ancestor without a name");
	for (size_t i = 0; i < c->preamble->n_filter; i++)
		if (check_filter(c->preamble->filter[i]))
			return reader_damaged(r, check_filter(c->preamble->filter[i]));
	for (size_t i = 0; i < c->preamble->n_clocks; i++)
		if (check_clocks(c->preamble->clocks[i]))
			return reader_damaged(r, check_clocks(c->preamble->clocks[i]));
	for (size_t i = 0; i < c->preamble->n_xstate_part; i++)
		if (check_xstate_part(c->preamble->xstate_part[i]))
			return reader_damaged(r, check_xstate_part(c->preamble->xstate_part[i]));
	if (c->preamble->n_clocks > c->preamble->nr_processes)
		return reader_damaged(r, "impossible number of clocks");
	if (c->preamble->nr_files > MAX_FILES || c->preamble->nr_processes > MAX_PROCESSES)
		return reader_damaged(r, "impossible counts");
	return 0;
}

static int take_file(struct context_reader *r, struct context *c)
{
	Kcr__File *file = (Kcr__File *)r->item.message;
	const char *wrong;

	if (grow((void **)&c->file, c->nr_files))
		return no_memory(r);
	c->file[c->nr_files++] = file;
	r->item.message = NULL;
	if (file->id != c->nr_files || c->nr_files > c->preamble->nr_files)
		return reader_damaged(r, "unexpected file id");
	wrong = check_file(file);
	return wrong ? reader_damaged(r, wrong) : 0;
}

static int take_process(struct context_reader *r, struct context *c)
{
	Kcr__Process *process = (Kcr__Process *)r->item.message;
	const char *wrong;

	if (grow((void **)&c->process, c->nr_processes))
		return no_memory(r);
	c->process[c->nr_processes++] = process;
	r->item.message = NULL;
	if (c->nr_processes > c->preamble->nr_processes)
		return reader_damaged(r, "more processes than announced");
	wrong = check_process(process, c->preamble, c->nr_files);
	return wrong ? reader_damaged(r, wrong) : 0;
}

static int compare_pid(const void *a, const void *b)
{
	const Kcr__Process *const *x = a, *const *y = b;

	return ((*x)->pid > (*y)->pid) - ((*x)->pid < (*y)->pid);
}

static int sort_processes(struct context *c)
{
	c->by_pid = calloc(c->nr_processes + 1, sizeof(*c->by_pid));
	if (!c->by_pid)
		return -ENOMEM;
	if (c->nr_processes)
		memcpy(c->by_pid, c->process, c->nr_processes * sizeof(*c->by_pid));
	qsort(c->by_pid, c->nr_processes, sizeof(*c->by_pid), compare_pid);
	return 0;
}

/* Takes over the current item; 1: more metadata may follow. */
static int take(struct context_reader *r, struct context *c)
{
	const char *wrong;

	switch (r->item.type) {
	case CONTEXT_PREAMBLE:
		return take_preamble(r, c) ?: 1;
	case CONTEXT_FILE:
		return take_file(r, c) ?: 1;
	case CONTEXT_PROCESS:
		return take_process(r, c) ?: 1;
	default:
		break;
	}
	if (c->nr_files != c->preamble->nr_files ||
	    c->nr_processes != c->preamble->nr_processes)
		return reader_damaged(r, "files or processes are missing");
	if (sort_processes(c))
		return no_memory(r);
	wrong = check_context(c);
	if (!wrong && r->item.type == CONTEXT_CONTENT)
		wrong = check_content(c, &r->item);
	if (!wrong && r->item.nr_runs)
		wrong = check_memory(c, &r->item) ?: check_sharers(c, &r->item);
	if (!wrong && r->item.type == CONTEXT_DUPLICATES)
		wrong = check_originals(c, &r->item);
	for (uint64_t i = 0; !wrong && r->item.type == CONTEXT_TABLE && i < r->item.nr_pages; i++)
		if (r->item.owner[i] > r->nr_ancestors)
			wrong = "pages of an unknown ancestor";
	return wrong ? reader_damaged(r, wrong) : 0;
}

int context_load(struct context_reader *r, struct context **out)
{
	struct context *c = calloc(1, sizeof(*c));
	int result, err;

	if (!c)
		return no_memory(r);
	do {
		result = reader_next(r);
		err = result < 0 ? result : take(r, c);
	} while (err > 0);
	if (err) {
		/* take() has not taken ownership. */
		if (r->item.message)
			protobuf_c_message_free_unpacked(r->item.message, NULL);
		r->item.message = NULL;
		context_free(c);
		return err;
	}
	r->held = true;
	r->last_result = result;
	r->context = c;
	*out = c;
	return 0;
}

void context_free(struct context *c)
{
	size_t i;

	if (!c)
		return;
	if (c->preamble)
		kcr__preamble__free_unpacked(c->preamble, NULL);
	for (i = 0; i < c->nr_files; i++)
		kcr__file__free_unpacked(c->file[i], NULL);
	for (i = 0; i < c->nr_processes; i++)
		kcr__process__free_unpacked(c->process[i], NULL);
	free(c->file);
	free(c->process);
	free(c->by_pid);
	free(c);
}

size_t context_find(const struct context *c, int32_t pid)
{
	size_t low = 0, high = c->nr_processes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->by_pid[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->nr_processes && c->by_pid[low]->pid == pid ? low : SIZE_MAX;
}

const Kcr__Process *context_process(const struct context *c, int32_t pid)
{
	size_t found = context_find(c, pid);

	return found == SIZE_MAX ? NULL : c->by_pid[found];
}

const Kcr__File *context_file(const struct context *c, uint32_t id)
{
	return id && id <= c->nr_files ? c->file[id - 1] : NULL;
}

size_t context_area(const Kcr__Mm *mm, uint64_t address)
{
	size_t low = 0, high = mm->n_vma;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mm->vma[middle]->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < mm->n_vma && mm->vma[low]->start <= address ? low : SIZE_MAX;
}
