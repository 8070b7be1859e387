// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that sends its faults to a userfaultfd: which one it is, and which pages are
 * write-protected.  The module knows the former, /proc/PID/pagemap the latter.
 *
 * All of such memory must belong to a userfaultfd that is saved: one that another program has, or
 * that a forked child has inherited without an event, would be missing after a restart.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"

#define RUNS_AT_ONCE	256u
#define ENTRIES_AT_ONCE	4096u
#define IS_PROTECTED	(1ull << 57)	/* in /proc/PID/pagemap */
#define IS_GUARD	(1ull << 58)

const char *user_faults_refusal(uint64_t vma_flags, bool anonymous)
{
	if (!anonymous || vma_flags & (KCR_VMA_SHARED | KCR_VMA_HUGETLB))
		return "under control of userfaultfd, and is shared, of huge pages or of a file,";
	/* A restart would have to lock absent pages without their coming into being. */
	if (vma_flags & KCR_VMA_LOCKED && !(vma_flags & KCR_VMA_LOCKONFAULT))
		return "under control of userfaultfd and locked (mlock),";
	return NULL;
}

/* ---- pages ----------------------------------------------------------------------------- */

/* Reads entries of /proc/PID/pagemap. */
static int read_entries(int pagemap, uint64_t address, uint64_t *entry, size_t count)
{
	size_t length = count * sizeof(*entry);
	ssize_t n = pread(pagemap, entry, length, address / CONTEXT_PAGE * sizeof(*entry));

	if (n < 0)
		return -errno;
	return (size_t)n == length ? 0 : -EIO;
}

static size_t up_to(uint64_t address, uint64_t end)
{
	uint64_t count = (end - address) / CONTEXT_PAGE;

	return count < ENTRIES_AT_ONCE ? count : ENTRIES_AT_ONCE;
}

/* Counts one more page that is write-protected, or is not, as the one before or unlike it. */
static int count(Kcr__UserFaultRange *range, size_t *room, bool protected)
{
	uint64_t *larger;

	/* The first count is of those that are not. */
	while (!range->n_protect || range->n_protect % 2 == protected) {
		if (range->n_protect == *room) {
			*room = 2 * *room + 16;
			larger = reallocarray(range->protect, *room, sizeof(*larger));
			if (!larger)
				return -ENOMEM;
			range->protect = larger;
		}
		range->protect[range->n_protect++] = 0;
	}
	range->protect[range->n_protect - 1]++;
	return 0;
}

static int find_protected(int pagemap, Kcr__UserFaultRange *range)
{
	uint64_t entry[ENTRIES_AT_ONCE];
	size_t room = 0;
	int err = 0;

	for (uint64_t at = range->start; !err && at < range->end;) {
		size_t n = up_to(at, range->end);

		err = read_entries(pagemap, at, entry, n);
		for (size_t i = 0; i < n && !err; i++)
			err = count(range, &room, entry[i] & IS_PROTECTED);
		at += n * CONTEXT_PAGE;
	}
	/* What is not protected at the end need not be said. */
	if (range->n_protect % 2)
		range->n_protect--;
	return err;
}

/* Markers without a page: of write-protection and guard regions, else of UFFDIO_POISON. */
static int check_markers(int pagemap, pid_t pid, const struct kcr_run *run)
{
	uint64_t entry[ENTRIES_AT_ONCE], at = run->address & ~(uint64_t)(CONTEXT_PAGE - 1);
	uint64_t end = at + run->nr_pages * CONTEXT_PAGE;

	for (int err; at < end; at += up_to(at, end) * CONTEXT_PAGE) {
		size_t n = up_to(at, end);

		err = read_entries(pagemap, at, entry, n);
		if (err)
			return err;
		for (size_t i = 0; i < n; i++)
			if (!(entry[i] & (IS_PROTECTED | IS_GUARD)))
				return report_fail(-EOPNOTSUPP, "process %d: the page at %#llx is poisoned "
						   "(UFFDIO_POISON, or a fault of the machine's memory), "
						   "which cannot be saved", pid,
						   (unsigned long long)(at + i * CONTEXT_PAGE));
	}
	return 0;
}

static int check_pages(const struct checkpoint *c, pid_t pid, int pagemap, uint64_t start,
		       uint64_t end)
{
	struct kcr_run run[RUNS_AT_ONCE];
	struct kcr_scan scan = {
		.flags = KCR_SCAN_KEEP_ZERO | KCR_SCAN_MARKERS, .pid = pid, .end = end,
		.next = start, .max_pages = UINT64_MAX, .runs = (uintptr_t)run,
	};
	int err = 0;

	while (!err && scan.next < end) {
		scan.start = scan.next;
		scan.count = RUNS_AT_ONCE;
		err = device_scan(c->attempt.job, &scan);
		for (size_t i = 0; !err && i < scan.count; i++)
			if (run[i].address & KCR_RUN_MARKER)
				err = check_markers(pagemap, pid, &run[i]);
	}
	return err;
}

/* ---- ranges ------------------------------------------------------------------------------ */

static Kcr__Vma *mapping_at(const Kcr__Mm *mm, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < mm->n_vma; i++)
		if (mm->vma[i]->start == start && mm->vma[i]->end == end)
			return mm->vma[i];
	return NULL;
}

static int add(const struct checkpoint *c, Kcr__Mm *mm, uint32_t file_id,
	       const struct kcr_userfault_range *from)
{
	pid_t thread = scope_thread(&c->attempt.scope, mm->pid);
	Kcr__UserFaultRange *range = malloc(sizeof(*range));
	int pagemap, err;

	if (!range)
		return report_errno(-ENOMEM, "process %d: userfaultfds", mm->pid);
	kcr__user_fault_range__init(range);
	mm->user_fault[mm->n_user_fault++] = range;
	range->start = from->start;
	range->end = from->end;
	range->file_id = file_id;
	range->mode = from->mode;
	pagemap = proc_open(thread, "pagemap", O_RDONLY);
	err = pagemap < 0 ? pagemap : check_pages(c, mm->pid, pagemap, from->start, from->end);
	if (!err && from->mode & UFFDIO_REGISTER_MODE_WP)
		err = find_protected(pagemap, range);
	if (pagemap >= 0)
		close(pagemap);
	return err ? report_errno(err, "process %d: memory under control of userfaultfd", mm->pid) : 0;
}

/* Adds those that this userfaultfd gets faults from.  1: it works on this memory, 0, or -errno. */
static int describe_in(const struct checkpoint *c, Kcr__Mm *mm, uint32_t file_id, int fd)
{
	struct kcr_userfault_range *ranges;
	Kcr__UserFaultRange **larger;
	struct kcr_userfault found;
	int n = device_userfault(c->attempt.job, mm->pid, fd, &found, &ranges), err = 0;

	if (n < 0)
		return report_errno(n, "process %d: userfaultfds", mm->pid);
	larger = reallocarray(mm->user_fault, mm->n_user_fault + n + 1, sizeof(*larger));
	if (larger)
		mm->user_fault = larger;
	else
		err = report_errno(-ENOMEM, "process %d: userfaultfds", mm->pid);
	for (int i = 0; i < n && !err; i++) {
		const Kcr__Vma *vma = mapping_at(mm, ranges[i].start, ranges[i].end);

		/* Others are saved without it (--skip-unsupported). */
		if (vma && vma->flags & KCR_VMA_UFFD)
			err = add(c, mm, file_id, &ranges[i]);
	}
	free(ranges);
	return err ?: (int)found.own;
}

static int describe_file(struct checkpoint *c, uint32_t id)
{
	const struct description *d = &c->attempt.description;
	const struct file_probe *probe = file_table_probe(d->files, id);
	const Kcr__File *file = file_table_get(d->files, id);

	for (size_t i = 0; i < d->nr_processes; i++) {
		Kcr__Mm *mm = d->process[i]->mm;
		int own = mm ? describe_in(c, mm, id, probe->fd) : 0;

		if (own < 0)
			return own;
		if (own)
			file->user_fault->pid = mm->pid;
	}
	if (file->user_fault->pid)
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d, descriptor %d is a userfaultfd of the memory of a "
			   "process that has ended or is not saved, which cannot be saved", probe->pid,
			   probe->number);
}

static int compare(const void *a, const void *b)
{
	const Kcr__UserFaultRange *const *x = a, *const *y = b;

	return ((*x)->start > (*y)->start) - ((*x)->start < (*y)->start);
}

/* Does each mapping belong to one? */
static int check_mappings(const struct checkpoint *c, const Kcr__Mm *mm)
{
	size_t next = 0;

	for (size_t i = 0; i < mm->n_vma; i++) {
		Kcr__Vma *vma = mm->vma[i];

		if (!(vma->flags & KCR_VMA_UFFD))
			continue;
		if (next < mm->n_user_fault && mm->user_fault[next]->start == vma->start) {
			next++;
			continue;
		}
		if (!c->options->skip_unsupported)
			return report_fail(-EOPNOTSUPP, "process %d: the mapping %#llx-%#llx is under "
					   "control of userfaultfd of a program that is not saved, which "
					   "cannot be saved", mm->pid, (unsigned long long)vma->start,
					   (unsigned long long)vma->end);
		vma->flags &= ~KCR_VMA_UFFD;
	}
	return 0;
}

int user_faults_describe(struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	int err = 0;

	for (uint32_t id = 1; id <= file_table_count(d->files) && !err; id++)
		if (file_table_get(d->files, id)->kind_case == KCR__FILE__KIND_USER_FAULT)
			err = describe_file(c, id);
	for (size_t i = 0; i < d->nr_processes && !err; i++) {
		const Kcr__Mm *mm = d->process[i]->mm;

		if (mm && mm->n_user_fault)
			qsort(mm->user_fault, mm->n_user_fault, sizeof(*mm->user_fault), compare);
		if (mm)
			err = check_mappings(c, mm);
	}
	return err;
}
