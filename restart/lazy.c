// SPDX-License-Identifier: GPL-2.0
/*
 * Which memory is loaded lazily, and the preparations; see lazy.h.  lazy_serve.c has the threads
 * that load it.
 *
 * Only private memory without a file qualifies, in mappings of some size.  That the kernel
 * remembers where a mapping has been when the program moves it takes a page that has been there
 * once: one is written to and dropped when the mapping is made, or, where it cannot be written to,
 * its first chunk is loaded at once.
 */
#include "restart/lazy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/kcr.h>

#include "arch/address.h"
#include "report/report.h"
#include "resource/family.h"
#include "restart/early_pages.h"
#include "restart/elsewhere.h"
#include "restart/lazy_present.h"
#include "restart/lazy_serve.h"
#include "restart/process.h"
#include "restart/userfault.h"

/* A mapping that may be loaded lazily. */
struct range {
	size_t process;			/* index in the context */
	int32_t pid;
	uint64_t start, end;
	bool begun;			/* it has had a page */
	bool deferred;			/* some of it was not loaded at once */
};

/* A part of a range to which a huge page may reach from what was loaded, or written to, at once. */
struct reach {
	int32_t pid;
	uint64_t start, end;
};

struct lazy {
	struct lazy_server *server;
	struct deferred *deferred;
	struct elsewhere *elsewhere;	/* or NULL */
	struct range *range;		/* by PID and address */
	size_t nr_ranges;
	struct reach *reach;
	size_t nr_reaches;
	int socket[2];			/* ours and the processes' end; -1: closed */
	bool no_memory;			/* when chunks were noted */
	bool misplaced;			/* a chunk is elsewhere that cannot be deferred */
};

/* ---- what is lazy ---------------------------------------------------------------------- */

static bool has_guard(const Kcr__Mm *mm, const Kcr__Vma *vma)
{
	for (size_t i = 0; i < mm->n_guard; i++)
		if (mm->guard[i]->start < vma->end && vma->start < mm->guard[i]->end)
			return true;
	return false;
}

static bool is_lazy(const Kcr__Mm *mm, const Kcr__Vma *vma)
{
	return !vma->file_id && deferred_suits(vma->flags, vma->end - vma->start) &&
	       !has_guard(mm, vma);
}

bool lazy_begins(const struct rebuild *r, const Kcr__Mm *mm, const Kcr__Vma *vma)
{
	return r->lazy && vma->flags & KCR_VMA_WRITE && is_lazy(mm, vma);
}

static int by_address(const void *a, const void *b)
{
	const struct range *s = a, *t = b;

	if (s->pid != t->pid)
		return s->pid < t->pid ? -1 : 1;
	return s->start < t->start ? -1 : s->start > t->start;
}

static int add_ranges(struct lazy *l, const struct context *c, size_t index)
{
	const Kcr__Process *p = c->process[index];
	struct range *more;

	if (!p->mm || process_is_sharer(p) || p->state == KCR__PROCESS__STATE__ZOMBIE)
		return 0;
	more = reallocarray(l->range, l->nr_ranges + p->mm->n_vma + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->range = more;
	for (size_t i = 0; i < p->mm->n_vma; i++)
		if (is_lazy(p->mm, p->mm->vma[i]))
			l->range[l->nr_ranges++] = (struct range){
				.process = index, .pid = p->pid, .start = p->mm->vma[i]->start,
				.end = p->mm->vma[i]->end,
				.begun = p->mm->vma[i]->flags & KCR_VMA_WRITE,
			};
	return 0;
}

/* The first range of the process that ends above the address, or NULL. */
static struct range *next_range(const struct lazy *l, int32_t pid, uint64_t address)
{
	size_t low = 0, high = l->nr_ranges;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct range *r = &l->range[middle];

		if (r->pid < pid || (r->pid == pid && r->end <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->nr_ranges && l->range[low].pid == pid ? &l->range[low] : NULL;
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* Calls `each` for every range that needs pages of the chunk.  Are all of these in ranges? */
static bool for_ranges(const struct lazy *l, const struct context_chunk *chunk,
		       void (*each)(struct range *range, void *arg), void *arg)
{
	bool all = true;

	for (size_t i = 0; i < chunk->nr_needed_runs; i++) {
		uint64_t at = chunk->needed[i].address;
		uint64_t end = at + chunk->needed[i].nr_pages * CONTEXT_PAGE;

		while (at < end) {
			struct range *range = next_range(l, chunk->pid, at);

			all &= range && range->start <= at;
			if (!range || range->start >= end)
				break;
			each(range, arg);
			at = range->end;
		}
	}
	return all;
}

static void note_begun(struct range *range, void *arg)
{
	bool *all = arg;

	*all &= range->begun;
}

static void begin(struct range *range, void *arg)
{
	(void)arg;
	range->begun = true;
}

static void defer(struct range *range, void *arg)
{
	(void)arg;
	range->deferred = true;
}

static void add_reach(struct lazy *l, int32_t pid, uint64_t start, uint64_t end)
{
	struct reach *last = l->nr_reaches ? &l->reach[l->nr_reaches - 1] : NULL;
	struct reach *more;

	if (last && last->pid == pid && last->start <= start && start <= last->end) {
		last->end = end > last->end ? end : last->end;
		return;
	}
	more = reallocarray(l->reach, l->nr_reaches + 1, sizeof(*more));
	if (!more) {
		l->no_memory = true;
		return;
	}
	more[l->nr_reaches++] = (struct reach){ pid, start, end };
	l->reach = more;
}

/* What is filled with a run, in ranges. */
static void note_reach(struct lazy *l, int32_t pid, const struct kcr_run *run)
{
	uint64_t at = run->address & ~(uint64_t)(ARCH_HUGE_PAGE - 1);
	uint64_t end = run->address + run->nr_pages * CONTEXT_PAGE;
	const struct range *range;

	end = (end + ARCH_HUGE_PAGE - 1) & ~(uint64_t)(ARCH_HUGE_PAGE - 1);
	for (; (range = next_range(l, pid, at)) && range->start < end; at = range->end)
		add_reach(l, pid, at > range->start ? at : range->start,
			  end < range->end ? end : range->end);
}

/* What the kernel has written to by then. */
static int note_early(struct lazy *l, const struct context *c)
{
	struct early_pages early;
	int err = early_pages_find(&early, c, NULL);

	for (size_t i = 0; i < early.count; i++) {
		const struct kcr_run run = { .address = early.at[i].address, .nr_pages = 1 };

		note_reach(l, early.at[i].pid, &run);
	}
	early_pages_free(&early);
	return err;
}

bool lazy_defer(void *lazy, const struct context_chunk *chunk)
{
	struct lazy *l = lazy;
	bool begun = true;

	if (!l->no_memory && for_ranges(l, chunk, note_begun, &begun) && begun) {
		l->no_memory = deferred_add(l->deferred, chunk);
		for_ranges(l, chunk, defer, NULL);
		return true;
	}
	/* It cannot be filled now, and lazy_arm() refuses to go on. */
	if (chunk->elsewhere)
		return l->misplaced = true;
	for_ranges(l, chunk, begin, NULL);
	/* Of an older file, more may be filled than is needed. */
	for (size_t i = 0; i < chunk->nr_runs; i++)
		note_reach(l, chunk->pid, &chunk->runs[i]);
	return false;
}

/* ---- preparations ----------------------------------------------------------------------- */

int lazy_check_host(const struct kcr_info *info)
{
	if (!(info->features & KCR_FEATURE_GUARD))
		return report_fail(-EOPNOTSUPP, "--lazy needs Linux 5.16 with userfaultfd(2): leave it out");
	return userfault_check();
}

int lazy_check(struct context_reader *reader, const struct kcr_info *info)
{
	struct stat st;

	if (fstat(context_reader_fd(reader), &st) || !S_ISREG(st.st_mode))
		return report_fail(-ESPIPE, "--lazy needs the context file in a file, not in a pipe: save "
				   "it first, or leave --lazy out");
	if (context_reader_features(reader) & (CONTEXT_HAS_SHARED | CONTEXT_HAS_DUPLICATES))
		return report_fail(-EOPNOTSUPP, "--lazy: the context file has pages that stand for several "
				   "(cr_checkpoint --dedup) and are needed at once: leave --lazy out");
	return lazy_check_host(info);
}

static void close_sockets(struct lazy *l)
{
	for (int i = 0; i < 2; i++)
		if (l->socket[i] >= 0)
			close(l->socket[i]);
	l->socket[0] = l->socket[1] = -1;
}

static void lazy_free(struct lazy *l)
{
	if (!l)
		return;
	close_sockets(l);
	lazy_server_free(l->server);
	deferred_free(l->deferred);
	elsewhere_free(l->elsewhere);
	free(l->range);
	free(l->reach);
	free(l);
}

static int prepare(struct lazy *l, struct rebuild *r, struct context_reader *reader,
		   const struct chain *chain, struct elsewhere *elsewhere)
{
	int err = 0;

	l->elsewhere = elsewhere;
	l->socket[0] = l->socket[1] = -1;
	for (size_t i = 0; !err && i < r->context->nr_processes; i++)
		err = add_ranges(l, r->context, i);
	if (!err && l->nr_ranges)
		qsort(l->range, l->nr_ranges, sizeof(*l->range), by_address);
	if (!err)
		err = note_early(l, r->context);
	if (!err && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, l->socket))
		err = -errno;
	if (err)
		return report_errno(err, "--lazy");
	err = deferred_new(&l->deferred, reader, r->source, chain, elsewhere);
	return err ? err : lazy_server_new(&l->server, r->job, l->deferred);
}

int lazy_new(struct lazy **out, struct rebuild *r, struct context_reader *reader,
	     const struct chain *chain, struct elsewhere *elsewhere)
{
	struct lazy *l = calloc(1, sizeof(*l));
	int err = l ? prepare(l, r, reader, chain, elsewhere) : report_errno(-ENOMEM, "--lazy");

	if (err) {
		lazy_free(l);
		return err;
	}
	r->lazy_socket = l->socket[1];
	*out = l;
	return 0;
}

int lazy_offer(const struct rebuild *r, size_t index)
{
	int err = 0;

	if (!r->lazy)
		return 0;
	for (size_t i = 0; i < r->lazy->nr_ranges; i++)
		if (r->lazy->range[i].process == index) {
			err = userfault_send(r->lazy_socket, index);
			break;
		}
	close_sockets(r->lazy);
	return err;
}

int lazy_collect(struct lazy *l)
{
	size_t index;
	int fd, err;

	for (;;) {
		fd = userfault_receive(l->socket[0], &index);
		if (fd == -EAGAIN)
			return 0;
		err = fd < 0 ? fd : lazy_server_add(l->server, fd, index);
		if (err)
			return report_errno(err, "--lazy");
	}
}

/* Each target has its ranges from now on. */
static int arm(struct lazy *l)
{
	int err = 0;

	for (size_t i = 0; !err && i < l->nr_ranges; i++) {
		const struct range *range = &l->range[i];

		if (range->deferred)
			err = lazy_server_arm(l->server, range->process, range->pid, range->start,
					      range->end);
		if (err)
			report_errno(err, "process %d: its memory cannot be loaded lazily", range->pid);
	}
	return err;
}

int lazy_arm(struct lazy *l, const struct rebuild *r)
{
	int err = lazy_collect(l);

	close_sockets(l);
	if (!err && (l->no_memory || deferred_finish(l->deferred)))
		err = report_errno(-ENOMEM, "--lazy");
	if (!err && l->misplaced)
		err = report_fail(-EINVAL, "the context file leaves memory elsewhere that is needed at once");
	/* Better known before it is too late to do without. */
	if (!err)
		err = deferred_try(l->deferred);
	if (!err)
		err = arm(l);
	/* The kernel makes no more huge pages there of its own accord. */
	for (size_t i = 0; !err && i < l->nr_reaches; i++)
		err = lazy_fill_present(r, l->deferred, l->reach[i].pid, l->reach[i].start,
					l->reach[i].end);
	return err;
}

int lazy_start(struct lazy *l, void (*loaded)(void))
{
	return lazy_server_start(l->server, loaded);
}

uint64_t lazy_pages(const struct lazy *l)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < deferred_count(l->deferred); i++)
		pages += deferred_at(l->deferred, i)->nr_pages;
	return pages;
}

void lazy_drop(struct lazy *l)
{
	lazy_server_stop(l->server);
	lazy_free(l);
}

int restart_wait(struct lazy *l)
{
	int err;

	if (!l)
		return 0;
	err = lazy_server_wait(l->server);
	lazy_free(l);
	return err;
}
