// SPDX-License-Identifier: GPL-2.0
/*
 * See user_faults.h.  The memory is registered before anything writes to it or near to it, and
 * filled by UFFDIO_COPY: that gives exactly the pages that it is told to, while a page that is
 * written to as the program would do it may become a huge one, with all pages around it.
 *
 * What the kernel writes to while threads enter must be there, or they would wait.  It is given as
 * a zero page, and is there already when its contents come.
 */
#include "restart/user_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "rebuild/restorer.h"
#include "resource/file.h"
#include "resource/redirect.h"
#include "restart/early_pages.h"
#include "restart/userfault.h"

/* ---- registering --------------------------------------------------------------------------- */

/* A zero page for each one in the range that the kernel writes to before it is filled. */
static void give_early(const struct early_pages *e, const Kcr__Mm *mm,
		       const Kcr__UserFaultRange *range, int fd, struct script *s)
{
	uint64_t at = early_pages_next(e, mm->pid, range->start);

	for (; at < range->end; at = early_pages_next(e, mm->pid, at + 1)) {
		struct uffdio_zeropage zero = { .range = { at, CONTEXT_PAGE } };

		script_call_try(s, "UFFDIO_ZEROPAGE", SYS_ioctl, fd, UFFDIO_ZEROPAGE,
				script_data(s, &zero, sizeof(zero)), 0, 0, 0);
	}
}

int user_faults_script(const struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	const Kcr__Mm *mm = p->mm;
	struct early_pages early;
	int err = mm->n_user_fault ? early_pages_find(&early, r->context, p) : 0;

	if (err || !mm->n_user_fault)
		return err;
	for (size_t i = 0; i < mm->n_user_fault; i++) {
		const Kcr__UserFaultRange *range = mm->user_fault[i];
		struct uffdio_register request = {
			.range = { range->start, range->end - range->start }, .mode = range->mode,
		};
		char label[RESTORER_LABEL];
		int fd = r->file_fd[range->file_id - 1];

		if (redirect_has(r, range->file_id))
			continue;
		snprintf(label, sizeof(label), "registering the memory at %" PRIx64
			 " with its userfaultfd", range->start);
		script_call(s, label, SYS_ioctl, fd, UFFDIO_REGISTER,
			    script_data(s, &request, sizeof(request)), 0, 0, 0);
		if (range->mode & UFFDIO_REGISTER_MODE_MISSING)
			give_early(&early, mm, range, fd, s);
	}
	early_pages_free(&early);
	return 0;
}

uint64_t user_faults_script_size(const struct context *c, const Kcr__Process *p)
{
	uint64_t calls = p->mm->n_user_fault;

	for (size_t i = 0; i < c->nr_processes && p->mm->n_user_fault; i++)
		if (c->process[i] == p || c->process[i]->mm_id == p->mm_id)
			calls += c->process[i]->n_thread;
	return calls * (sizeof(struct restorer_op) + 2 * sizeof(struct uffdio_register)) +
	       p->mm->n_user_fault * RESTORER_LABEL;
}

/* ---- once they have entered ------------------------------------------------------------------ */

struct user_faults {
	const struct rebuild *rebuild;
	size_t nr_files;
	int fd[];			/* [id - 1]; -1: no userfaultfd, or replaced (--redirect) */
};

static bool has_any(const struct context *c)
{
	for (size_t i = 0; i < c->nr_files; i++)
		if (c->file[i]->kind_case == KCR__FILE__KIND_USER_FAULT)
			return true;
	return false;
}

static int take(struct user_faults *u, struct rebuild *r)
{
	for (size_t i = 0; i < u->nr_files; i++) {
		const Kcr__File *file = r->context->file[i];
		int err;

		if (file->kind_case != KCR__FILE__KIND_USER_FAULT || r->giver_fd[i] < 0)
			continue;
		err = user_fault_bring(r, file);
		if (err)
			return err;
		u->fd[i] = fcntl(r->file_fd[i], F_DUPFD_CLOEXEC, 0);
		if (u->fd[i] < 0)
			return rebuild_error(file, -errno, "its descriptor");
	}
	return 0;
}

static int failed(const Kcr__Mm *mm, const Kcr__UserFaultRange *range, int err, const char *what)
{
	return report_errno(err, "process %d: %s the memory at %" PRIx64 " for its userfaultfd",
			    mm->pid, what, range->start);
}

/* Calls `step` for each range whose userfaultfd there is. */
static int each(const struct user_faults *u,
		int (*step)(const Kcr__Mm *mm, const Kcr__UserFaultRange *range, int fd))
{
	const struct context *c = u->rebuild->context;
	int err = 0;

	for (size_t i = 0; i < c->nr_processes; i++) {
		const Kcr__Mm *mm = c->process[i]->mm;

		for (size_t k = 0; mm && k < mm->n_user_fault && !err; k++) {
			int fd = u->fd[mm->user_fault[k]->file_id - 1];

			if (fd >= 0)
				err = step(mm, mm->user_fault[k], fd);
		}
	}
	return err;
}

int user_faults_take(struct user_faults **out, struct rebuild *r)
{
	size_t count = r->context->nr_files;
	struct user_faults *u;
	int err;

	*out = NULL;
	if (!has_any(r->context))
		return 0;
	u = malloc(sizeof(*u) + count * sizeof(u->fd[0]));
	if (!u)
		return report_errno(-ENOMEM, "userfaultfds");
	*u = (struct user_faults){ .rebuild = r, .nr_files = count };
	for (size_t i = 0; i < count; i++)
		u->fd[i] = -1;
	err = take(u, r);
	if (err)
		user_faults_free(u);
	else
		*out = u;
	return err;
}

/* ---- filling ------------------------------------------------------------------------------ */

/* The range that `address` is in, or NULL; *end: up to where this is so. */
static const Kcr__UserFaultRange *find(const struct user_faults *u, const Kcr__Mm *mm,
				       uint64_t address, uint64_t *end)
{
	*end = UINT64_MAX;
	for (size_t i = 0; mm && i < mm->n_user_fault; i++) {
		const Kcr__UserFaultRange *range = mm->user_fault[i];

		if (u->fd[range->file_id - 1] < 0 || range->end <= address)
			continue;
		*end = range->start > address ? range->start : range->end;
		return range->start > address ? NULL : range;
	}
	return NULL;
}

/* As the program would write to them. */
static int write_pages(const struct user_faults *u, const Kcr__Mm *mm, struct kcr_run run,
		       const char *data)
{

	return device_store(u->rebuild->job, rebuild_pid(u->rebuild, mm->pid), data, &run, 1, NULL);
}

static int copy(const struct user_faults *u, const Kcr__Mm *mm, const Kcr__UserFaultRange *range,
		struct kcr_run run, const char *data)
{
	uint64_t length = run.nr_pages * CONTEXT_PAGE;

	for (uint64_t done = 0; done < length;) {
		int64_t n = userfault_copy(u->fd[range->file_id - 1], run.address + done, data + done,
					   length - done);

		/* The kernel has written to it already. */
		if (n == -EEXIST)
			n = write_pages(u, mm, (struct kcr_run){ run.address + done, 1 }, data + done) ?:
			    (int64_t)CONTEXT_PAGE;
		if (n < 0)
			return failed(mm, range, (int)n, "filling");
		done += n;
	}
	return 0;
}

static int store_run(const struct user_faults *u, const Kcr__Process *p, struct kcr_run run,
		     const char *data)
{
	while (run.nr_pages) {
		uint64_t end;
		const Kcr__UserFaultRange *range = find(u, p->mm, run.address, &end);
		struct kcr_run part = { run.address, (end - run.address) / CONTEXT_PAGE };
		int err;

		if (part.nr_pages > run.nr_pages)
			part.nr_pages = run.nr_pages;
		if (range)
			err = copy(u, p->mm, range, part, data);
		else
			err = write_pages(u, p->mm, part, data);
		if (err)
			return err;
		data += part.nr_pages * CONTEXT_PAGE;
		run.address += part.nr_pages * CONTEXT_PAGE;
		run.nr_pages -= part.nr_pages;
	}
	return 0;
}

/* Is the whole chunk elsewhere, as most are? */
static bool is_outside(const struct user_faults *u, const Kcr__Process *p,
		       const struct context_chunk *chunk)
{
	for (size_t i = 0; i < chunk->nr_runs; i++) {
		const struct kcr_run *run = &chunk->runs[i];
		uint64_t end;

		if (find(u, p->mm, run->address, &end) ||
		    end < run->address + run->nr_pages * CONTEXT_PAGE)
			return false;
	}
	return true;
}

int user_faults_store(const struct user_faults *u, const struct context_chunk *chunk)
{
	const Kcr__Process *p = context_process(u->rebuild->context, chunk->pid);
	const char *data = chunk->data;
	int err = 0;

	if (!p || is_outside(u, p, chunk))
		return device_store(u->rebuild->job, rebuild_pid(u->rebuild, chunk->pid), data,
				    chunk->runs, chunk->nr_runs, NULL);
	for (size_t i = 0; i < chunk->nr_runs && !err; i++) {
		err = store_run(u, p, chunk->runs[i], data);
		data += chunk->runs[i].nr_pages * CONTEXT_PAGE;
	}
	return err;
}

static int protect(const Kcr__Mm *mm, const Kcr__UserFaultRange *range, int fd)
{
	uint64_t at = range->start;
	int err = 0;

	for (size_t i = 0; i < range->n_protect && !err; i++) {
		uint64_t end = at + range->protect[i] * CONTEXT_PAGE;

		if (i % 2 && at < end)
			err = userfault_protect(fd, at, end);
		at = end;
	}
	return err ? failed(mm, range, err, "write-protecting") : 0;
}

int user_faults_protect(const struct user_faults *u)
{
	return u ? each(u, protect) : 0;
}

void user_faults_free(struct user_faults *u)
{
	for (size_t i = 0; u && i < u->nr_files; i++)
		if (u->fd[i] >= 0)
			close(u->fd[i]);
	free(u);
}
