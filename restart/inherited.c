// SPDX-License-Identifier: GPL-2.0
/*
 * A unit is what the kernel may have made of one mapping of a process: neighbours, of which
 * some have been given another protection.  It would merge them again only if they had been
 * one, and so they are one until they get their protection here.  A pool holds the common
 * pages of units that overlap, each at its final offset.  See inherited.h.
 *
 * The kernel counts these offsets from the address at which a mapping was when its first page
 * was written.  So a pool is born at the address where it will be in the end, if that is free
 * here.
 */
#include "restart/inherited.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "rebuild/restorer.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/resource.h"

#define HUGE_BYTES	(2ull << 20)	/* page tables move whole between alike addresses */
#define LABEL		"memory that processes have in common"

struct run_list {
	struct kcr_run *run;		/* sorted and apart, after settle() */
	size_t count, room;
};

struct unit {
	int32_t pid;
	uint64_t start, end, kind;	/* CONTEXT_SHARING_KIND */
	size_t pool;
	struct run_list pages;		/* that it has of the pool */
};

/* Made when its first page comes. */
struct pool {
	uint64_t start, end, kind;	/* of its units */
	char *at;			/* where the part up to the last page is now, or NULL */
	uint64_t length;
	struct run_list pages;		/* at their final addresses */
};

struct inherited {
	struct unit *unit;		/* by PID and address */
	size_t nr_units;
	struct pool *pool;
	size_t nr_pools;
};

static uint64_t end_of(const struct kcr_run *run)
{
	return run->address + run->nr_pages * CONTEXT_PAGE;
}

/* ---- lists of pages ------------------------------------------------------------------- */

static int add_run(struct run_list *list, uint64_t address, uint64_t end)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		struct kcr_run *larger = reallocarray(list->run, room, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		list->run = larger;
		list->room = room;
	}
	list->run[list->count++] = (struct kcr_run) {
		.address = address, .nr_pages = (end - address) / CONTEXT_PAGE,
	};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct kcr_run *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* false: some are twice there. */
static bool settle(struct run_list *list)
{
	bool apart = true;
	size_t n = 0;

	if (list->count)
		qsort(list->run, list->count, sizeof(*list->run), compare);
	for (size_t i = 0; i < list->count; i++) {
		struct kcr_run *last = n ? &list->run[n - 1] : NULL;
		uint64_t end = end_of(&list->run[i]);

		apart &= !last || end_of(last) <= list->run[i].address;
		if (!last || end_of(last) < list->run[i].address)
			list->run[n++] = list->run[i];
		else if (end > end_of(last))
			last->nr_pages = (end - last->address) / CONTEXT_PAGE;
	}
	list->count = n;
	return apart;
}

/* ---- units and pools ------------------------------------------------------------------ */

static bool may_share(const Kcr__Vma *vma)
{
	return !vma->file_id && context_may_share(vma->flags, vma->end - vma->start);
}

static uint64_t kind_of(const Kcr__Vma *vma)
{
	return vma->flags & CONTEXT_SHARING_KIND;
}

/* Adds the units of a process; there is room. */
static void add_units(struct inherited *in, const Kcr__Process *p)
{
	struct unit *last = NULL;

	for (size_t i = 0; p->mm && i < p->mm->n_vma; i++) {
		const Kcr__Vma *vma = p->mm->vma[i];

		if (!may_share(vma))
			continue;
		if (last && last->end == vma->start && last->kind == kind_of(vma)) {
			last->end = vma->end;
			continue;
		}
		last = &in->unit[in->nr_units++];
		*last = (struct unit) {
			.pid = p->pid, .start = vma->start, .end = vma->end, .kind = kind_of(vma),
		};
	}
}

static int by_kind(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int by_pid(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

/* Units of one kind that overlap have a pool. */
static int plan(struct inherited *in, const struct context *c)
{
	struct pool *pool = NULL;
	size_t room = 1;

	for (size_t i = 0; i < c->nr_processes; i++)
		room += c->process[i]->mm ? c->process[i]->mm->n_vma : 0;
	in->unit = malloc(room * sizeof(*in->unit));
	in->pool = malloc(room * sizeof(*in->pool));
	if (!in->unit || !in->pool)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr_processes; i++)
		add_units(in, c->process[i]);
	qsort(in->unit, in->nr_units, sizeof(*in->unit), by_kind);
	for (size_t i = 0; i < in->nr_units; i++) {
		struct unit *u = &in->unit[i];

		if (!pool || pool->kind != u->kind || pool->end <= u->start) {
			pool = &in->pool[in->nr_pools++];
			*pool = (struct pool){ .start = u->start, .end = u->end, .kind = u->kind };
		}
		pool->end = u->end > pool->end ? u->end : pool->end;
		u->pool = in->nr_pools - 1;
	}
	qsort(in->unit, in->nr_units, sizeof(*in->unit), by_pid);
	return 0;
}

/* The unit of a process with this address; or NULL. */
static struct unit *find_unit(const struct inherited *in, int32_t pid, uint64_t address)
{
	size_t low = 0, high = in ? in->nr_units : 0;
	struct unit *u;

	while (low < high) {		/* the first one that is not wholly before it */
		size_t middle = low + (high - low) / 2;

		u = &in->unit[middle];
		if (u->pid < pid || (u->pid == pid && u->end <= address))
			low = middle + 1;
		else
			high = middle;
	}
	u = in && low < in->nr_units ? &in->unit[low] : NULL;
	return u && u->pid == pid && u->start <= address ? u : NULL;
}

static int map_first_page(struct pool *p)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (p->kind & KCR_VMA_NORESERVE ? MAP_NORESERVE : 0);
	int prot = PROT_READ | PROT_WRITE;
	char *at = mmap((void *)(uintptr_t)p->start, CONTEXT_PAGE, prot,
			flags | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		at = mmap(NULL, CONTEXT_PAGE, prot, flags, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	/* Fixes the offsets. */
	*(volatile char *)at = 0;
	madvise(at, CONTEXT_PAGE, MADV_DONTNEED);
	p->at = at;
	p->length = CONTEXT_PAGE;
	return 0;
}

/* Makes room up to this address. */
static int grow(struct pool *p, uint64_t end)
{
	uint64_t wanted = 2 * (end - p->start);
	int err = p->at ? 0 : map_first_page(p);
	char *at;

	if (err || end - p->start <= p->length)
		return err;
	if (wanted > p->end - p->start)
		wanted = p->end - p->start;
	at = mremap(p->at, p->length, wanted, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		return -errno;
	p->at = at;
	p->length = wanted;
	return 0;
}

/* ---- reading -------------------------------------------------------------------------- */

static int take_run(struct inherited *in, int32_t pid, const struct kcr_run *run, const char *data)
{
	struct unit *u = find_unit(in, pid, run->address);	/* there is one: image/shared.c */
	struct pool *p = &in->pool[u->pool];
	int err = grow(p, end_of(run));

	if (err)
		return err;
	memcpy(p->at + (run->address - p->start), data, run->nr_pages * CONTEXT_PAGE);
	err = add_run(&p->pages, run->address, end_of(run));
	return err ? err : add_run(&u->pages, run->address, end_of(run));
}

static int take_sharer(struct inherited *in, const struct context_sharer *sharer)
{
	int err = 0;

	for (size_t i = 0; !err && i < sharer->nr_runs; i++) {
		const struct kcr_run *run = &sharer->runs[i];

		err = add_run(&find_unit(in, sharer->pid, run->address)->pages, run->address,
			      end_of(run));
	}
	return err;
}

static int take_chunk(struct inherited *in, struct context_reader *reader,
		      const struct context_item *item, char *buffer)
{
	const char *data = buffer;
	int err = context_memory_read(reader, buffer);

	if (err)
		return err;
	for (size_t i = 0; !err && i < item->nr_runs; i++) {
		err = take_run(in, item->pid, &item->runs[i], data);
		data += item->runs[i].nr_pages * CONTEXT_PAGE;
	}
	for (size_t i = 0; !err && i < item->nr_sharers; i++)
		err = take_sharer(in, &item->sharer[i]);
	return err ? report_errno(err, LABEL) : 0;
}

/* All mappings of all processes, and our own: where pools can't wait to be moved. */
static int busy_ranges(const struct context *c, struct ranges *busy)
{
	int err = ranges_self(busy);

	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Mm *mm = c->process[i]->mm;

		for (size_t k = 0; mm && !err && k < mm->n_vma; k++)
			err = ranges_add(busy, (struct range){ .start = mm->vma[k]->start,
							       .end = mm->vma[k]->end });
	}
	return err;
}

static int park(struct pool *p, struct ranges *busy)
{
	uint64_t hole;
	char *at;
	int err = hole_find(busy, p->length + HUGE_BYTES, &hole);

	if (err)
		return err;
	hole += (p->start - hole) & (HUGE_BYTES - 1);
	at = mremap(p->at, p->length, p->length, MREMAP_MAYMOVE | MREMAP_FIXED,
		    (void *)(uintptr_t)hole);
	if (at == MAP_FAILED)
		return report_errno(-errno, LABEL);
	p->at = at;
	return ranges_add(busy, (struct range){ .start = hole, .end = hole + p->length });
}

static int settle_all(struct inherited *in, const struct context *c)
{
	struct ranges busy = { 0 };
	int err = busy_ranges(c, &busy);

	for (size_t i = 0; i < in->nr_pools && !err; i++) {
		if (!settle(&in->pool[i].pages))
			err = report_fail(-EINVAL, "the context file is damaged: it has a page of "
					  "memory twice");
		else if (in->pool[i].at)
			err = park(&in->pool[i], &busy);
	}
	for (size_t i = 0; i < in->nr_units; i++)
		settle(&in->unit[i].pages);
	ranges_free(&busy);
	return err;
}

static void count(const struct context_item *item, const struct context *c,
		  const struct restart_options *options, struct restart_result *result)
{
	struct compression_count *kind = &result->compression[item->compression];

	result->nr_pages += item->nr_pages;
	result->image[0].nr_pages += item->nr_pages;
	result->image[0].bytes += item->length;
	kind->chunks++;
	kind->bytes += item->nr_pages * CONTEXT_PAGE;
	kind->stored += item->length;
	for (size_t i = 0; i < item->nr_sharers; i++)
		for (size_t k = 0; k < item->sharer[i].nr_runs; k++)
			result->nr_shared += item->sharer[i].runs[k].nr_pages;
	if (options->progress)
		options->progress(options->progress_arg, result->nr_pages * CONTEXT_PAGE,
				  c->preamble->has_image_bytes_hint ?
				  c->preamble->image_bytes_hint : 0);
}

static int read_all(struct inherited *in, const struct context *c, struct context_reader *reader,
		    const struct restart_options *options, struct restart_result *result)
{
	char *buffer = malloc(CONTEXT_CHUNK_BYTES);
	struct context_item item;
	int err = buffer ? plan(in, c) : -ENOMEM, more = 0;

	if (err)
		report_errno(err, LABEL);
	while (!err && (more = context_read(reader, &item)) > 0 && item.nr_sharers) {
		err = take_chunk(in, reader, &item, buffer);
		count(&item, c, options, result);
	}
	free(buffer);
	if (!err)
		err = more < 0 ? more : settle_all(in, c);
	if (!err)
		context_unread(reader);
	return err;
}

int inherited_read(struct inherited **out, const struct context *context,
		   struct context_reader *reader, const struct restart_options *options,
		   struct restart_result *result)
{
	int err;

	*out = NULL;
	if (!(context_reader_features(reader) & CONTEXT_HAS_SHARED))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return report_errno(-ENOMEM, LABEL);
	err = read_all(*out, context, reader, options, result);
	if (err) {
		inherited_drop(*out);
		*out = NULL;
	}
	return err;
}

void inherited_drop(struct inherited *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->nr_pools; i++) {
		if (in->pool[i].at)
			munmap(in->pool[i].at, in->pool[i].length);
		free(in->pool[i].pages.run);
	}
	for (size_t i = 0; i < in->nr_units; i++)
		free(in->unit[i].pages.run);
	free(in->pool);
	free(in->unit);
	free(in);
}

/* ---- in a process ----------------------------------------------------------------------- */

/* Where what the unit takes of its pool is now. */
static struct range taken(const struct inherited *in, const struct unit *u)
{
	const struct pool *p = &in->pool[u->pool];
	uint64_t start = (uintptr_t)p->at + (u->start - p->start);
	uint64_t end = (uintptr_t)p->at + (u->end - p->start);

	return (struct range) {
		.start = start, .end = end - (uintptr_t)p->at < p->length ? end :
				       (uintptr_t)p->at + p->length,
	};
}

int inherited_ranges(const struct inherited *in, const Kcr__Process *p, struct ranges *ranges)
{
	int err = 0;

	for (size_t i = 0; in && !err && i < in->nr_units; i++)
		if (in->unit[i].pid == p->pid && in->unit[i].pages.count)
			err = ranges_add(ranges, taken(in, &in->unit[i]));
	return err;
}

uint64_t inherited_script_size(const struct inherited *in, const Kcr__Process *p)
{
	uint64_t count = p->mm ? p->mm->n_vma : 0;	/* protections */

	/* Between two runs of the one or the other there may be something to drop. */
	for (size_t i = 0; in && i < in->nr_units; i++)
		if (in->unit[i].pid == p->pid && in->unit[i].pages.count)
			count += in->unit[i].pages.count + in->pool[in->unit[i].pool].pages.count + 2;
	return in ? count * sizeof(struct restorer_op) : 0;
}

static void drop_pages(uint64_t start, uint64_t end, struct script *s)
{
	if (start < end)
		script_call(s, LABEL, SYS_madvise, start, end - start, MADV_DONTNEED, 0, 0, 0);
}

/* Drops the pages of the pool that are in the unit, but not the process's. */
static void drop_foreign(const struct run_list *all, const struct unit *u, struct script *s)
{
	const struct run_list *own = &u->pages;
	size_t k = 0;

	for (size_t i = 0; i < all->count; i++) {
		uint64_t at = all->run[i].address, end = end_of(&all->run[i]);

		at = at > u->start ? at : u->start;
		end = end < u->end ? end : u->end;
		while (at < end) {
			while (k < own->count && end_of(&own->run[k]) <= at)
				k++;
			if (k == own->count || own->run[k].address >= end) {
				drop_pages(at, end, s);
				break;
			}
			drop_pages(at, own->run[k].address, s);
			at = end_of(&own->run[k]);
		}
	}
}

bool inherited_script(const struct inherited *in, const Kcr__Process *p, const Kcr__Vma *vma,
		      int protection, struct script *s)
{
	const struct unit *u = may_share(vma) ? find_unit(in, p->pid, vma->start) : NULL;
	uint64_t length;
	struct range from;

	if (!u || !u->pages.count)
		return false;
	if (vma->start == u->start) {
		from = taken(in, u);
		script_call_expect(s, LABEL, u->start, SYS_mremap, from.start, from.end - from.start,
				   u->end - u->start, MREMAP_MAYMOVE | MREMAP_FIXED, u->start, 0);
		drop_foreign(&in->pool[u->pool].pages, u, s);
	}
	length = vma->end - vma->start;
	if (protection != (PROT_READ | PROT_WRITE))
		script_call(s, LABEL, SYS_mprotect, vma->start, length, protection, 0, 0, 0);
	return true;
}
