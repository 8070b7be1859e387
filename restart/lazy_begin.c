// SPDX-License-Identifier: GPL-2.0
/*
 * The skeleton of a lazy restart: which pages come later, and what is stored before
 * anything runs.  Later come those of private anonymous mappings without special properties,
 * if these are large.  Not the neighbourhood of what the kernel itself writes for a thread, as
 * that is there already, or is written by an exiting thread, which waits for no page.
 */
#include "restart/lazy_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"
#include "restart/process.h"

#define PAGE		((uint64_t)CONTEXT_PAGE)
#define HUGE		(2ull << 20)	/* one access may have made that much present */
#define FEW_PAGES	16u		/* with fewer in the image a mapping is not left out */

/* Mappings whose pages may not be missing when the program runs. */
#define AT_ONCE		(KCR_VMA_SHARED | KCR_VMA_GROWSDOWN | KCR_VMA_LOCKED | KCR_VMA_HUGETLB | \
			 KCR_VMA_WIPEONFORK | KCR_VMA_IO | KCR_VMA_UFFD | KCR_VMA_SPECIAL | \
			 KCR_VMA_VDSO | KCR_VMA_VVAR | KCR_VMA_SYSV | KCR_VMA_SHMEM | \
			 KCR_VMA_SEALED | KCR_VMA_DROPPABLE)

int lazy_check(const struct context_reader *reader, const struct kcr_info *info)
{
	struct stat st;

	if (fstat(context_reader_fd(reader), &st) || !S_ISREG(st.st_mode))
		return report_fail(-ESPIPE, "--lazy reads the image in any order, but it comes through a "
				   "pipe or socket: store it in a file first, or restart without --lazy");
	if (!(info->features & KCR_FEATURE_GUARD))
		return report_fail(-EOPNOTSUPP, "the loaded module is of an older version, without "
				   "--lazy: load the new one, or restart without --lazy");
	return faults_check();
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* Has the thread's neighbourhood stored at once; 0: it has no such address. */
static void keep_near(struct missing *m, uint64_t address)
{
	uint64_t start = address & ~(HUGE - 1);

	if (address)
		missing_drop(m, start, start + HUGE);
}

/* What the kernel writes for the threads of all processes in this memory. */
static void keep_for_threads(const struct context *c, const Kcr__Process *p, struct missing *m)
{
	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Process *q = c->process[i];

		if (q != p && !(process_is_sharer(q) && q->mm_id == p->mm_id))
			continue;
		for (size_t t = 0; t < q->n_thread; t++) {
			keep_near(m, q->thread[t]->rseq);
			keep_near(m, q->thread[t]->robust_list);
			keep_near(m, q->thread[t]->clear_child_tid);
		}
	}
}

/* Mappings as a whole: parts of them could not be moved together. */
static int choose_ranges(const struct context *c, const Kcr__Process *p, struct missing *m)
{
	int err = 0;

	for (size_t i = 0; i < p->mm->n_vma && !err; i++) {
		const Kcr__Vma *v = p->mm->vma[i];

		if (!v->file_id && !(v->flags & AT_ONCE) &&
		    missing_pages_in(m->index, m->pid, v->start, v->end) >= FEW_PAGES)
			err = missing_add(m, v->start, v->end);
	}
	if (!err)
		keep_for_threads(c, p, m);
	return err;
}

/* ---- processes ---------------------------------------------------------------------------- */

static int not_lazily(pid_t pid, int err)
{
	return report_errno(err, "process %d: its memory cannot be loaded lazily", pid);
}

/* What is stored at once is there: nothing waits for it. */
static int register_ranges(const struct space *s)
{
	int err = faults_begin(s->fd);

	for (size_t i = 0; i < s->missing.nr_segments && !err; i++)
		err = faults_register(s->fd, s->missing.segment[i].start, s->missing.segment[i].end);
	return err ? not_lazily(s->pid, err) : 0;
}

static int register_all(const struct lazy *l)
{
	int err = 0;

	for (size_t i = 0; i < l->nr_spaces && !err; i++)
		err = register_ranges(&l->space[i]);
	return err;
}

static int begin_space(struct lazy *l, const struct rebuild *r, size_t index)
{
	const Kcr__Process *p = r->context->process[index];
	struct space s = { .fd = lazy_offer_take(index), .pid = r->new_pid[index] };
	int err = missing_init(&s.missing, l->index, p->pid);

	if (!err)
		err = choose_ranges(r->context, p, &s.missing);
	if (!err && s.missing.left)
		err = s.fd < 0 ? -EBADF : lazy_add_space(l, &s);
	if (!err && s.missing.left)
		return 0;
	missing_free(&s.missing);
	if (s.fd >= 0)
		close(s.fd);
	return err ? not_lazily(s.pid, err) : 0;
}

static int begin_spaces(struct lazy *l, const struct rebuild *r)
{
	int err = 0;

	for (size_t i = 0; i < r->context->nr_processes && !err; i++)
		if (r->context->process[i]->mm)
			err = begin_space(l, r, i);
	return err;
}

/* ---- pages that are stored at once ---------------------------------------------------------- */

struct storing {
	const struct rebuild *rebuild;
	struct lazy *lazy;
	char *pages;			/* CONTEXT_CHUNK_BYTES */
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	size_t nr_runs;
	uint64_t nr_pages;
};

static const struct missing *missing_of(const struct lazy *l, int32_t pid)
{
	for (size_t i = 0; i < l->nr_spaces; i++)
		if (l->space[i].missing.pid == pid)
			return &l->space[i].missing;
	return NULL;
}

static void add_page(struct storing *s, uint64_t address, const char *page)
{
	struct kcr_run *last = s->nr_runs ? &s->run[s->nr_runs - 1] : NULL;

	memcpy(s->pages + s->nr_pages++ * PAGE, page, PAGE);
	if (last && last->address + last->nr_pages * PAGE == address)
		last->nr_pages++;
	else
		s->run[s->nr_runs++] = (struct kcr_run){ .address = address, .nr_pages = 1 };
}

/*
 * From page k of a piece on: how many are for now, after *later that are not; the address
 * space has `m`, or NULL: nothing of it comes later.
 */
static uint64_t for_now(const struct missing *m, const struct index_piece *p, uint64_t k,
			uint64_t *later)
{
	uint64_t rest = p->nr_pages - k, address, skip = rest;

	*later = m ? missing_place(m, p, p->address + k * PAGE, rest, &address, &skip) : 0;
	return *later ? 0 : skip;
}

/* Takes the pages for now out of a chunk's pages; NULL: only finds out whether there are any. */
static bool take_pages(struct storing *s, size_t chunk, const char *pages)
{
	const struct page_index *x = s->lazy->index;
	const struct missing *m = missing_of(s->lazy, page_index_chunk(x, chunk)->pid);
	uint64_t now, later;
	size_t count;
	const uint32_t *piece = page_index_of_chunk(x, chunk, &count);
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const struct index_piece *p = page_index_piece(x, piece[i]);

		for (uint64_t k = 0; k < p->nr_pages; k += later + now) {
			now = for_now(m, p, k, &later);
			any |= now;
			for (uint64_t n = k; pages && n < k + now; n++)
				add_page(s, p->address + n * PAGE, pages + (p->offset + n) * PAGE);
		}
	}
	return any;
}

static int store_chunk(struct storing *s, size_t chunk)
{
	int32_t pid = page_index_chunk(s->lazy->index, chunk)->pid;
	const char *pages;
	uint64_t sum;
	int err = 0;

	if (!take_pages(s, chunk, NULL))
		return 0;
	pages = lazy_chunk(s->lazy, chunk, &err);
	if (!pages)
		return err;
	s->nr_runs = s->nr_pages = 0;
	take_pages(s, chunk, pages);
	return device_store(s->rebuild->job, rebuild_pid(s->rebuild, pid), s->pages, s->run,
			    s->nr_runs, &sum);
}

static int store_all(struct lazy *l, const struct rebuild *r, struct restart_result *result)
{
	struct storing *s = calloc(1, sizeof(*s));
	int err = 0;

	if (s)
		*s = (struct storing){
			.rebuild = r, .lazy = l, .pages = malloc(CONTEXT_CHUNK_BYTES),
		};
	if (!s || !s->pages)
		err = report_errno(-ENOMEM, "restart");
	for (size_t i = 0; i < page_index_chunks(l->index) && !err; i++) {
		result->nr_pages += page_index_chunk(l->index, i)->needed;
		err = store_chunk(s, i);
	}
	if (s)
		free(s->pages);
	free(s);
	return err;
}

int lazy_begin(struct lazy **out, struct rebuild *r, struct context_reader *reader,
	       const struct restart_options *options, struct restart_result *result)
{
	struct lazy *l = *out = lazy_new();
	int err;

	if (!l)
		return report_errno(-ENOMEM, "restart");
	err = page_index_read(&l->index, reader, options->chain);
	if (!err)
		err = begin_spaces(l, r);
	if (!err)
		err = store_all(l, r, result);
	if (!err)
		err = register_all(l);
	lazy_offers_end();
	return err;
}
