// SPDX-License-Identifier: GPL-2.0
/*
 * Copying the content of pages: WRITE and READ from a process or a
 * snapshot, FILL and STORE into a process that is being restarted.
 *
 * Pages are taken in batches, across runs, and written or read by the file
 * without a bounce buffer.  mmap_lock of the process is only held while a
 * batch is taken, the file's position lock during the whole call.  A page that
 * others may write to meanwhile (shared memory, or any of a process that shares
 * all of it with one that runs) is copied first, so that the checksum is that of
 * the bytes moved.
 */
#include <linux/bvec.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/xxhash.h>

#include "compat/fileio.h"
#include "compat/mm.h"
#include "ioctl.h"
#include "job.h"

#define BATCH		512u	/* pages */
#define RUNS		256u	/* runs copied from the caller at a time */

/* Of a job, under its lock: to make one for each chunk would take longer than to copy a page. */
struct kcr_mover {
	struct mm_struct *mm;
	struct file *file;	/* or NULL: `buffer` */
	u8 __user *buffer;
	loff_t pos;
	bool into;		/* the process is written to */
	bool steady;		/* nobody writes to anonymous memory meanwhile */
	const struct kcr_run __user *next_runs;
	u32 runs_left;		/* not yet copied */
	u32 nr_runs;		/* copied … */
	u32 run;		/* … and the current one */
	u32 nr_pages;		/* in the batch */
	u64 bytes;
	bool sums;		/* `sum` is wanted */
	struct xxh64_state sum;
	struct page *copies[BATCH];	/* of those that may change, allocated when needed */
	/* What follows is not zero at first. */
	struct kcr_run runs[RUNS];
	struct page *pages[BATCH];	/* taken */
	struct bio_vec bvec[BATCH];	/* to move: pages or copies */
};

static bool run_is_valid(const struct kcr_run *run)
{
	return PAGE_ALIGNED(run->address) && run->address < TASK_SIZE_MAX &&
	       run->nr_pages <= (TASK_SIZE_MAX - run->address) >> PAGE_SHIFT;
}

/* The current run, NULL after the last one, or ERR_PTR. */
static struct kcr_run *current_run(struct kcr_mover *m)
{
	u32 i;

	for (;;) {
		while (m->run < m->nr_runs && !m->runs[m->run].nr_pages)
			m->run++;
		if (m->run < m->nr_runs)
			return &m->runs[m->run];
		if (!m->runs_left)
			return NULL;
		if (fatal_signal_pending(current))
			return ERR_PTR(-EINTR);
		cond_resched();		/* there may be many empty runs */
		m->nr_runs = min(m->runs_left, RUNS);
		if (copy_from_user(m->runs, m->next_runs, m->nr_runs * sizeof(*m->runs)))
			return ERR_PTR(-EFAULT);
		for (i = 0; i < m->nr_runs; i++)
			if (!run_is_valid(&m->runs[i]))
				return ERR_PTR(-EINVAL);
		m->next_runs += m->nr_runs;
		m->runs_left -= m->nr_runs;
		m->run = 0;
	}
}

static long take(struct kcr_mover *m, struct kcr_run *run)
{
	unsigned long nr = min_t(u64, run->nr_pages, BATCH - m->nr_pages);
	struct page **pages = m->pages + m->nr_pages;
	long taken;

	taken = mmap_read_lock_killable(m->mm);
	if (taken)
		return taken;
	if (!kcr_mm_has_owner(m->mm))	/* its last process has been killed */
		taken = -ESRCH;
	else if (m->into)
		taken = kcr_pin_pages(m->mm, run->address, nr, pages);
	else
		taken = kcr_get_pages(m->mm, run->address, nr, pages);
	mmap_read_unlock(m->mm);
	return taken ?: -EFAULT;
}

/* Takes the pages of the next batch; nr_pages 0: there are no more. */
static int take_batch(struct kcr_mover *m)
{
	while (m->nr_pages < BATCH) {
		struct kcr_run *run = current_run(m);
		long taken;

		if (IS_ERR_OR_NULL(run))
			return PTR_ERR_OR_ZERO(run);
		taken = take(m, run);
		if (taken < 0)
			return taken;
		m->nr_pages += taken;
		run->address += taken * PAGE_SIZE;
		run->nr_pages -= taken;
	}
	return 0;
}

static void drop_batch(struct kcr_mover *m)
{
	u32 i;

	if (m->into)
		unpin_user_pages_dirty_lock(m->pages, m->nr_pages, true);
	else
		for (i = 0; i < m->nr_pages; i++)
			put_page(m->pages[i]);
	m->nr_pages = 0;
}

/* The page itself, or a copy of it if it may change at any time. */
static struct page *stable_page(struct kcr_mover *m, u32 i)
{
	struct page *page = m->pages[i];

	if (m->into || (m->steady && PageAnon(page)))
		return page;
	if (!m->copies[i])
		m->copies[i] = alloc_page(GFP_KERNEL_ACCOUNT);
	if (m->copies[i])
		copy_page(page_address(m->copies[i]), page_address(page));
	return m->copies[i];
}

static int prepare_batch(struct kcr_mover *m)
{
	u32 i;

	for (i = 0; i < m->nr_pages; i++) {
		struct page *page = stable_page(m, i);

		if (!page)
			return -ENOMEM;
		m->bvec[i].bv_page = page;
		m->bvec[i].bv_len = PAGE_SIZE;
		m->bvec[i].bv_offset = 0;
	}
	return 0;
}

static void sum_batch(struct kcr_mover *m)
{
	u32 i;

	if (!m->sums)
		return;
	for (i = 0; i < m->nr_pages; i++)
		xxh64_update(&m->sum, page_address(m->bvec[i].bv_page), PAGE_SIZE);
}

/* Count what the file system returns: not all of them advance the iterator. */
static int move_file(struct kcr_mover *m)
{
	size_t len = (size_t)m->nr_pages * PAGE_SIZE, done = 0;
	struct iov_iter iter;
	ssize_t n;

	while (done < len) {
		iov_iter_bvec(&iter, m->into ? KCR_ITER_DEST : KCR_ITER_SOURCE,
			      m->bvec, m->nr_pages, len);
		iov_iter_advance(&iter, done);
		if (m->into)
			n = vfs_iter_read(m->file, &iter, &m->pos, 0);
		else
			n = kcr_file_write(m->file, &iter, &m->pos);
		if (n == -ERESTARTSYS || n == -ERESTARTNOINTR ||
		    n == -ERESTARTNOHAND || n == -ERESTART_RESTARTBLOCK)
			return -EINTR;
		if (n < 0)
			return n;
		if (!n)
			return m->into ? -ENODATA : -EIO;
		done += n;
		m->bytes += n;
		if (done < len && fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

static int move_buffer(struct kcr_mover *m)
{
	unsigned long left;
	u32 i;

	for (i = 0; i < m->nr_pages; i++) {
		void *data = page_address(m->bvec[i].bv_page);

		if (m->into)
			left = copy_from_user(data, m->buffer + m->bytes, PAGE_SIZE);
		else
			left = copy_to_user(m->buffer + m->bytes, data, PAGE_SIZE);
		if (left)
			return -EFAULT;
		m->bytes += PAGE_SIZE;
	}
	return 0;
}

/* From a process the checksum comes first and leaves the data in the cache. */
static int move_batch(struct kcr_mover *m)
{
	int err;

	err = prepare_batch(m);
	if (err)
		return err;
	if (!m->into)
		sum_batch(m);
	err = m->file ? move_file(m) : move_buffer(m);
	if (!err && m->into)
		sum_batch(m);
	return err;
}

static int move_all(struct kcr_mover *m)
{
	int err;

	do {
		err = take_batch(m);
		if (!err && !m->nr_pages)
			return 0;
		if (!err)
			err = move_batch(m);
		drop_batch(m);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	} while (!err);
	return err;
}

/* A file's position is shared: one mover at a time, as in read(2) and write(2). */
static int move_at_position(struct kcr_mover *m, int fd)
{
	bool lock;
	int err;

	m->file = fget(fd);
	if (!m->file)
		return -EBADF;
	lock = m->file->f_mode & FMODE_ATOMIC_POS;
	if (lock && mutex_lock_killable(&m->file->f_pos_lock)) {
		fput(m->file);
		return -EINTR;
	}
	m->pos = m->file->f_pos;
	err = move_all(m);
	if (!(m->file->f_mode & FMODE_STREAM))
		m->file->f_pos = m->pos;
	if (lock)
		mutex_unlock(&m->file->f_pos_lock);
	fput(m->file);
	return err;
}

/* The job's, ready for the request; NULL: no memory. */
static struct kcr_mover *mover_get(struct kcr_job *job, const struct kcr_pages *req, bool into)
{
	struct kcr_mover *m = job->mover;

	lockdep_assert_held(&job->lock);
	if (!m)
		m = job->mover = kvmalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return NULL;
	memset(m, 0, offsetof(struct kcr_mover, runs));
	m->into = into;
	m->next_runs = u64_to_user_ptr(req->runs);
	m->runs_left = req->count;
	m->buffer = u64_to_user_ptr(req->buffer);
	m->sums = !(req->flags & KCR_PAGES_NO_SUM);
	xxh64_reset(&m->sum, 0);
	return m;
}

static void drop_copies(struct kcr_mover *m)
{
	u32 i;

	for (i = 0; i < BATCH; i++)
		if (m->copies[i])
			__free_page(m->copies[i]);
}

void kcr_mover_free(struct kcr_job *job)
{
	kvfree(job->mover);
}

/* Sets m->mm: one with a users reference, or ERR_PTR. */
static void take_mm(struct kcr_mover *m, struct kcr_job *job, const struct kcr_pages *req, bool file)
{
	bool snapshot = req->flags & KCR_PAGES_SNAPSHOT;

	m->steady = true;
	/* Whoever may STORE there may read, too. */
	if (m->into || (job->restart && !file && !snapshot)) {
		m->mm = kcr_restart_mm(job, req->pid);
		return;
	}
	m->mm = kcr_job_mm(job, req->pid, snapshot);
	if (!snapshot && !IS_ERR(m->mm))
		m->steady = !kcr_member_shares_mm(kcr_job_find(job, req->pid));
}

/* To or from the request's file, or else its buffer. */
static long move_pages(struct kcr_job *job, struct kcr_pages *req, bool into, bool file)
{
	struct kcr_mover *m = mover_get(job, req, into);
	long err;

	if (!m)
		return -ENOMEM;
	take_mm(m, job, req, file);
	if (IS_ERR(m->mm)) {
		err = PTR_ERR(m->mm);
	} else {
		/* What is read of it and was not there is the caller's. */
		if (req->flags & KCR_PAGES_SNAPSHOT)
			kcr_mm_set_owner(m->mm, current);
		err = file ? move_at_position(m, req->fd) : move_all(m);
		if (req->flags & KCR_PAGES_SNAPSHOT)
			kcr_mm_set_owner(m->mm, NULL);
		mmput(m->mm);
		req->bytes = m->bytes;
		req->sum = m->sums ? xxh64_digest(&m->sum) : 0;
	}
	drop_copies(m);
	return err;
}

long kcr_ioc_write(struct kcr_job *job, void *request)
{
	return move_pages(job, request, false, true);
}

long kcr_ioc_read(struct kcr_job *job, void *request)
{
	return move_pages(job, request, false, false);
}

long kcr_ioc_fill(struct kcr_job *job, void *request)
{
	return move_pages(job, request, true, true);
}

long kcr_ioc_store(struct kcr_job *job, void *request)
{
	return move_pages(job, request, true, false);
}
