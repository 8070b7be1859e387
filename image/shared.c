// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are stored once for several processes: what SHARED sections say of the memory
 * section after them.
 *
 * Before the first process is made, a restart puts such pages where all processes inherit
 * them.  So they come before all other pages, in mappings that can be made that early and
 * moved into place: private ones without a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"
#include "report/report.h"

/* A stack grows by itself, and code is not made writable for this. */
#define NOT_SHARING	(KCR_VMA_SHARED | KCR_VMA_EXEC | KCR_VMA_GROWSDOWN | KCR_VMA_DONTFORK | \
			 KCR_VMA_WIPEONFORK | KCR_VMA_HUGETLB | KCR_VMA_IO | KCR_VMA_UFFD | \
			 KCR_VMA_VDSO | KCR_VMA_VVAR | KCR_VMA_SPECIAL | KCR_VMA_SYSV | \
			 KCR_VMA_SHMEM | KCR_VMA_SEALED | KCR_VMA_DROPPABLE)

/* Without protection it is address space, not memory. */
#define MEMORY		(KCR_VMA_READ | KCR_VMA_WRITE)
/* A restart has all of it twice for a while; there are terabytes of shadow memory. */
#define MOST_SHARING	(64ull << 30)

bool context_may_share(uint64_t vma_flags, uint64_t length)
{
	return !(vma_flags & NOT_SHARING) && (vma_flags & MEMORY) && length <= MOST_SHARING;
}

/* ---- validation -------------------------------------------------------------------- */

#define NO_KIND		UINT64_MAX

/* The kind of the mappings, one after the other, that all of the run is in; or NO_KIND. */
static uint64_t kind_at(const Kcr__Mm *mm, const struct kcr_run *run)
{
	uint64_t at = run->address, end = at + run->nr_pages * CONTEXT_PAGE, kind = NO_KIND;

	for (size_t i = context_area(mm, at); at < end; i++) {
		const Kcr__Vma *vma = i < mm->n_vma ? mm->vma[i] : NULL;

		if (!vma || vma->start > at || vma->file_id ||
		    !context_may_share(vma->flags, vma->end - vma->start) ||
		    (kind != NO_KIND && kind != (vma->flags & CONTEXT_SHARING_KIND)))
			return NO_KIND;
		kind = vma->flags & CONTEXT_SHARING_KIND;
		at = vma->end;
	}
	return kind;
}

/* Are the pages of the runs among those of the item? */
static bool are_pages_of(const struct context_item *item, const struct context_sharer *sharer)
{
	size_t k = 0;

	for (size_t i = 0; i < sharer->nr_runs; i++) {
		uint64_t at = sharer->runs[i].address;
		uint64_t end = at + sharer->runs[i].nr_pages * CONTEXT_PAGE;

		while (at < end) {
			const struct kcr_run *run = &item->runs[k];

			if (k == item->nr_runs || run->address > at)
				return false;
			if (run->address + run->nr_pages * CONTEXT_PAGE > at)
				at = run->address + run->nr_pages * CONTEXT_PAGE;
			else
				k++;
		}
	}
	return true;
}

static const char *check_sharer(const struct context *c, const Kcr__Mm *owner,
				const struct context_sharer *sharer)
{
	const Kcr__Process *p = context_process(c, sharer->pid);

	if (!p || !p->mm || p->mm == owner)
		return "pages shared by an impossible process";
	for (size_t i = 0; i < sharer->nr_runs; i++) {
		uint64_t kind = kind_at(p->mm, &sharer->runs[i]);

		if (kind == NO_KIND || kind != kind_at(owner, &sharer->runs[i]))
			return "shared pages outside of a mapping that can be shared";
	}
	return NULL;
}

/* After check_memory(). */
const char *check_sharers(const struct context *c, const struct context_item *item)
{
	const Kcr__Process *owner = item->nr_sharers ? context_process(c, item->pid) : NULL;
	const char *wrong = NULL;

	for (size_t i = 0; owner && !wrong && i < item->nr_runs; i++)
		if (kind_at(owner->mm, &item->runs[i]) == NO_KIND)
			wrong = "shared pages outside of a mapping that can be shared";
	for (size_t i = 0; !wrong && i < item->nr_sharers; i++)
		wrong = check_sharer(c, owner->mm, &item->sharer[i]);
	return wrong;
}

/* ---- reading ----------------------------------------------------------------------- */

void reader_drop_sharers(struct context_reader *r)
{
	for (size_t i = 0; i < r->nr_sharers; i++)
		free((void *)r->sharer[i].runs);
	r->nr_sharers = 0;
}

/* Arrays double; they are not larger than what was read. */
static int keep(struct context_reader *r, const struct context_item *item)
{
	size_t n = r->nr_sharers;
	struct kcr_run *runs;

	if (!(n & (n - 1))) {
		struct context_sharer *larger = reallocarray(r->sharer, n ? 2 * n : 1,
							     sizeof(*larger));

		if (!larger)
			return reader_no_memory(r);
		r->sharer = larger;
	}
	runs = malloc(item->nr_runs * sizeof(*runs));
	if (!runs)
		return reader_no_memory(r);
	memcpy(runs, item->runs, item->nr_runs * sizeof(*runs));
	r->sharer[r->nr_sharers++] = (struct context_sharer) {
		.pid = item->pid, .runs = runs, .nr_runs = item->nr_runs,
	};
	return 0;
}

int reader_take_sharer(struct context_reader *r)
{
	struct context_item item = { .type = CONTEXT_SHARED };
	int err = reader_take_runs(r, &item, 0);

	if (err)
		return err;
	if (r->unshared)
		return reader_damaged(r, "shared pages after others");
	if (r->nr_sharers && r->sharer[r->nr_sharers - 1].pid >= item.pid)
		return reader_damaged(r, "processes that share pages are not in order");
	return keep(r, &item);
}

int reader_settle_sharers(struct context_reader *r, struct context_item *item)
{
	const char *wrong;

	r->unshared |= !r->nr_sharers;
	item->sharer = r->sharer;
	item->nr_sharers = r->nr_sharers;
	for (size_t i = 0; i < r->nr_sharers; i++)
		if (!are_pages_of(item, &r->sharer[i]))
			return reader_damaged(r, "shared pages that are not there");
	wrong = r->context ? check_sharers(r->context, item) : NULL;
	return wrong ? reader_damaged(r, wrong) : 0;
}
