// SPDX-License-Identifier: GPL-2.0
/*
 * Writes the scripts of a process: the leader's replaces the memory, sets
 * what concerns the whole process and creates the other threads; every thread
 * then sets its own state and enters the module.  See process.h.
 */
#include "restart/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/rseq.h>
#include <linux/sched.h>

#include "arch/thread.h"
#include "rebuild/blob.h"
#include "report/report.h"
#include "resource/seccomp.h"
#include "resource/thread_folder.h"
#include "restart/aio_rings.h"
#include "restart/hole.h"
#include "restart/inherited.h"
#include "restart/address_space.h"
#include "restart/thread.h"
#include "restart/vdso.h"

#define THREAD_FLAGS	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
			 CLONE_SYSVSEM)
#define STACK_SIZE	4096u
#define FIXED_SIZE	(256u << 10)	/* code, limits, locks, what only a leader has */
#define RSEQ_LENGTH	32u
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE	27
#endif

/* glibc 2.35 and later register rseq for every thread; weak, as other C libraries do not. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct builder {
	const struct process_exit *how;
	const Kcr__Mm *mm;
	struct ranges busy;		/* our mappings, saved ones, blob */
	struct ranges kept;		/* of ours: what is not unmapped */
	struct vdso vdso;
	struct blob blob;
};

int process_check(const struct context *c, const Kcr__Process *p)
{
	int err;

	if (p->state == KCR__PROCESS__STATE__ZOMBIE)
		return 0;
	err = p->mm ? memory_check(p, p->mm) : 0;
	if (!err && p->mm)
		err = vdso_check(c, p);
	for (size_t i = 0; i < p->n_thread && !err; i++)
		err = thread_check(p->thread[i], c->preamble);
	return err;
}

/* The kernel must not write into our rseq area once it is unmapped. */
static int forget_rseq(void)
{
	unsigned long feature = getauxval(AT_RSEQ_FEATURE_SIZE);
	unsigned int length = feature > RSEQ_LENGTH ? (unsigned int)(feature + 31) & ~31u :
						     RSEQ_LENGTH;
	char *area;

	if (!&__rseq_size || !__rseq_size)
		return 0;
	area = arch_thread_pointer() + __rseq_offset;
	if (!syscall(SYS_rseq, area, RSEQ_LENGTH, RSEQ_FLAG_UNREGISTER, ARCH_RSEQ_SIGNATURE) ||
	    !syscall(SYS_rseq, area, length, RSEQ_FLAG_UNREGISTER, ARCH_RSEQ_SIGNATURE))
		return 0;
	return report_errno(-errno, "cannot unregister the restartable sequences area");
}

static uint64_t scripts_length(const struct context *c, const Kcr__Process *p)
{
	uint64_t length = STACK_SIZE + seccomp_script_size(c, p);

	length += (p->n_action + p->n_posix_lock + p->n_limit + p->n_timer * 3) *
		  (sizeof(struct restorer_op) + 128);
	for (size_t i = 0; i < p->n_pending; i++)
		length += p->pending[i].len + sizeof(struct restorer_op) + 64;
	for (size_t i = 0; i < p->n_thread; i++)
		length += thread_script_size(p->thread[i]) + STACK_SIZE;
	if (p->has_leader_exit_code)
		length += thread_script_size(p->thread[0]);
	return length + p->n_descriptor * sizeof(struct restorer_op);
}

static uint64_t blob_length(const struct builder *b)
{
	const struct context *c = b->how->rebuild->context;
	const Kcr__Process *p = b->how->process;
	uint64_t length = FIXED_SIZE + memory_script_size(b->how->rebuild, p, b->mm) +
			  scripts_length(c, p);

	for (size_t i = 0; i < c->nr_processes; i++)
		if (process_in_memory(b->how->process, c->process[i]))
			length += scripts_length(c, c->process[i]) +
				  b->how->process->n_descriptor * sizeof(struct restorer_op);
	return (length + 4095) & ~4095ull;
}

/* Chooses the addresses of the blob and of a vdso that is in the way. */
static int choose_places(struct builder *b)
{
	struct ranges self = { 0 };
	uint64_t base, length = blob_length(b);
	int err = ranges_self(&self);

	if (!err)
		err = vdso_plan(&b->vdso, &self, b->how->rebuild->context, b->how->process);
	for (size_t i = 0; i < self.count && !err; i++)
		err = ranges_add(&b->busy, self.at[i]);
	for (size_t i = 0; i < b->mm->n_vma && !err; i++)
		err = ranges_add(&b->busy, (struct range){ .start = b->mm->vma[i]->start,
							   .end = b->mm->vma[i]->end });
	ranges_free(&self);
	if (!err)
		err = aio_rings_park(b->how->rebuild, b->mm, &b->busy);
	if (!err)
		err = hole_find(&b->busy, length, &base);
	if (!err)
		err = blob_map(&b->blob, base, length, b->how->status);
	if (!err)
		err = ranges_add(&b->busy, (struct range){ .start = base, .end = base + length });
	if (!err && vdso_length(&b->vdso))
		err = hole_find(&b->busy, vdso_length(&b->vdso), &b->vdso.hole);
	return err;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Everything except the blob, the live vdso and the memory that the process inherits. */
static int unmap_all(struct builder *b, struct script *s)
{
	struct ranges *kept = &b->kept;
	uint64_t from = 0;
	int err = inherited_ranges(b->how->rebuild->inherited, b->how->process, kept);

	if (!err)
		err = aio_rings_ranges(b->how->rebuild, b->mm, kept);
	if (!err)
		err = ranges_add(kept, (struct range){ .start = b->blob.base,
						       .end = b->blob.base + b->blob.length });
	if (!err && b->vdso.live.count)
		err = ranges_add(kept, (struct range){ .start = b->vdso.live_start,
						       .end = b->vdso.live_end });
	if (!err)
		err = ranges_add(kept, (struct range){ .start = HOLE_HIGHEST, .end = HOLE_HIGHEST });
	if (err)
		return err;
	qsort(kept->at, kept->count, sizeof(*kept->at), compare_ranges);
	for (size_t i = 0; i < kept->count; i++) {
		if (from < kept->at[i].start)
			script_call(s, "leaving the old address space", SYS_munmap, from,
				    kept->at[i].start - from, 0, 0, 0, 0);
		from = kept->at[i].end;
	}
	return 0;
}

static struct thread_exit thread_exit_of(const struct builder *b, const Kcr__Process *p,
					 const Kcr__Thread *t)
{
	struct rebuild *r = b->how->rebuild;
	struct thread_exit how = {
		.job = r->job,
		.exe_fd = p->mm && b->mm->exe_file_id ? r->file_fd[b->mm->exe_file_id - 1] : -1,
		.close_job = p == b->how->process || p->files_id != b->how->process->files_id,
		.unmap = p->mm,
		.leader = t == p->thread[0],
		.leaderless = t == p->thread[0] && p->has_leader_exit_code,
		.stopped = p->state == KCR__PROCESS__STATE__STOPPED && !b->how->cont,
		.stop_signal = p->stop_seen ? 0 : p->stop_signal,
		.nr_threads = (uint32_t)p->n_thread,
		/* Only 0 and 1 can be set; anything else becomes 0, which is stricter. */
		.dumpable = p->has_dumpable ? p->dumpable == 1 : -1,
		.preamble = r->context->preamble,
	};

	return how;
}

static int attributes_of_thread(const struct builder *b, const Kcr__Process *p,
				const Kcr__Thread *t, struct script *s)
{
	int err = 0;

	for (size_t i = 0; attributes[i] && !err; i++)
		if (attributes[i]->script_thread)
			err = attributes[i]->script_thread(b->how->rebuild, p, t, s);
	return err;
}

static int attributes_of_process(const struct builder *b, const Kcr__Process *p, struct script *s)
{
	int err = 0;

	for (size_t i = 0; attributes[i] && !err; i++)
		if (attributes[i]->script)
			err = attributes[i]->script(b->how->rebuild, p, s);
	return err;
}

static int attributes_last(const struct builder *b, const Kcr__Process *p, struct script *s)
{
	int err = 0;

	for (size_t i = 0; attributes[i] && !err; i++)
		if (attributes[i]->script_last)
			err = attributes[i]->script_last(b->how->rebuild, p, s);
	return err;
}

/* Writes the script of another thread: its address, or 0 with *err. */
static uint64_t other_thread(struct builder *b, const Kcr__Process *p, const Kcr__Thread *t,
			     int *err)
{
	struct thread_exit how = thread_exit_of(b, p, t);
	struct script *s = script_new(&b->blob);
	uint64_t at = 0;

	*err = s ? attributes_of_thread(b, p, t, s) : -ENOMEM;
	if (!*err)
		*err = thread_script(t, &how, &b->blob, s);
	if (!*err)
		at = script_finish(s);
	if (!*err && !at)
		*err = b->blob.error;
	script_free(s);
	return at;
}

/* Adds the clone of a thread, or of a process in the same memory, that runs `script`. */
static int script_child(struct builder *b, struct script *s, int32_t saved_tid, uint64_t script,
			uint64_t flags, uint32_t exit_signal)
{
	int32_t tid = b->how->rebuild->restore_ids ? saved_tid : 0;
	uint64_t stack = blob_reserve(&b->blob, STACK_SIZE, 16), top;

	if (!stack)
		return b->blob.error;
	top = stack + STACK_SIZE - 8;	/* the restorer pops its script from here */
	*(uint64_t *)(uintptr_t)top = script;
	if (b->how->module_clones) {
		struct kcr_clone clone = {
			.size = sizeof(clone), .clone_flags = flags, .stack = top, .tid = tid,
			.exit_signal = exit_signal,
		};

		script_clone(s, saved_tid, tid, SYS_ioctl, (uint64_t)b->how->rebuild->job,
			     KCR_IOC_CLONE, script_data(s, &clone, sizeof(clone)));
	} else {
		struct clone_args clone = {
			.flags = flags, .stack = stack, .stack_size = STACK_SIZE - 8,
			.exit_signal = exit_signal,
			.set_tid = script_data(s, &tid, sizeof(tid)), .set_tid_size = tid ? 1 : 0,
		};

		if (!tid)
			clone.set_tid = 0;
		script_clone(s, saved_tid, tid, SYS_clone3,
			     script_data(s, &clone, sizeof(clone)), sizeof(clone), 0);
	}
	return b->blob.error;
}

static int make_thread(struct builder *b, const Kcr__Process *p, const Kcr__Thread *t,
		       uint64_t script, struct script *s)
{
	uint64_t flags = thread_folder_has(t) ? THREAD_FLAGS & ~CLONE_FS : THREAD_FLAGS;
	int err;

	thread_folder_enter(p, t, s);
	err = script_child(b, s, t->tid, script, flags, 0);
	thread_folder_leave(p, t, s);
	return err;
}

static int make_threads(struct builder *b, const Kcr__Process *p, struct script *s)
{
	int err = 0;

	for (size_t i = !p->has_leader_exit_code; i < p->n_thread && !err; i++) {
		uint64_t script = other_thread(b, p, p->thread[i], &err);

		if (!err)
			err = make_thread(b, p, p->thread[i], script, s);
	}
	return err;
}

static void close_files(const struct rebuild *r, int exe_fd, struct script *s)
{
	int keep[2] = { r->job, exe_fd }, from = r->high_fd;

	if (exe_fd >= 0 && exe_fd < r->job) {
		keep[0] = exe_fd;
		keep[1] = r->job;
	}
	for (int i = 0; i < 2; i++) {
		if (keep[i] < from)
			continue;
		if (keep[i] > from)
			script_call(s, "closing files", SYS_close_range, from, keep[i] - 1,
				    0, 0, 0, 0);
		from = keep[i] + 1;
	}
	script_call(s, "closing files", SYS_close_range, from, ~0u, 0, 0, 0, 0);
}

/* The leader creates the threads, then finishes. */
static int finish_leader(struct builder *b, const Kcr__Process *p, bool close, struct script *s)
{
	struct thread_exit leave = thread_exit_of(b, p, p->thread[0]);
	Kcr__Thread ended = KCR__THREAD__INIT;
	int err = make_threads(b, p, s);

	/* Of a leader that has exited only its name and what all threads share are saved. */
	ended.tid = p->pid;
	ended.name = p->name;
	if (!err)
		err = attributes_of_thread(b, p, p->has_leader_exit_code ? &ended : p->thread[0], s);
	if (!err)
		err = attributes_last(b, p, s);
	if (err)
		return err;
	if (close)
		close_files(b->how->rebuild, leave.exe_fd, s);
	files_script(b->how->rebuild, p, s);
	if (!p->has_leader_exit_code)
		return thread_script(p->thread[0], &leave, &b->blob, s);
	thread_script_end(p->leader_exit_code, s);
	return b->blob.error;
}

/* ---- processes in the same memory (CLONE_VM without CLONE_THREAD) ------------- */

static uint64_t sharer_flags(const Kcr__Process *p, const Kcr__Process *q)
{
	return CLONE_VM | (q->files_id == p->files_id ? CLONE_FILES : 0) |
	       (q->fs_id == p->fs_id ? CLONE_FS : 0) |
	       (q->sighand_id == p->sighand_id ? CLONE_SIGHAND : 0);
}

static const Kcr__Descriptor *descriptor(const Kcr__Process *p, int fd)
{
	for (size_t i = 0; i < p->n_descriptor; i++)
		if (p->descriptor[i]->fd == fd)
			return p->descriptor[i];
	return NULL;
}

/*
 * Turns the copy of its creator's file descriptors into its own.  Those that are the same stay: they
 * are installed.
 */
static int sharer_files(struct builder *b, const Kcr__Process *q, struct script *s)
{
	struct rebuild *r = b->how->rebuild;
	const Kcr__Process *p = b->how->process;

	for (size_t i = 0; i < p->n_descriptor; i++)
		if (!descriptor(q, p->descriptor[i]->fd))
			script_call(s, "close", SYS_close, p->descriptor[i]->fd, 0, 0, 0, 0, 0);
	for (size_t i = 0; i < q->n_descriptor; i++) {
		const Kcr__Descriptor *d = q->descriptor[i], *same = descriptor(p, d->fd);
		int fd = r->file_fd[d->file_id - 1];
		int err = user_fault_bring(r, context_file(r->context, d->file_id));

		if (err)
			return err;
		if (fd >= 0 && same && same->file_id == d->file_id)
			script_call(s, "fcntl", SYS_fcntl, d->fd, F_SETFD, d->cloexec ? FD_CLOEXEC : 0,
				    0, 0, 0);
		else if (fd >= 0)
			script_call(s, "dup3", SYS_dup3, fd, d->fd, d->cloexec ? O_CLOEXEC : 0,
				    0, 0, 0);
	}
	return 0;
}

static int sharer_script(struct builder *b, const Kcr__Process *q, struct script *s)
{
	const Kcr__Process *p = b->how->process;
	uint64_t flags = sharer_flags(p, q);
	int err = 0;

	if (q->pgid != p->pgid)
		script_call(s, "setpgid", SYS_setpgid, 0, 0, 0, 0, 0, 0);
	if (!(flags & CLONE_FILES))
		err = sharer_files(b, q, s);
	if (!err && !(flags & CLONE_SIGHAND))
		err = attributes_of_process(b, q, s);
	return err ? err : finish_leader(b, q, !(flags & CLONE_FILES), s);
}

/*
 * Processes in this one's memory cannot be forked: its leader creates them like
 * threads.  Their PIDs must be known beforehand.
 */
static int make_sharers(struct builder *b, struct script *s)
{
	const struct context *c = b->how->rebuild->context;
	const Kcr__Process *p = b->how->process;
	int err = 0;

	for (size_t i = 0; i < c->nr_processes && !err; i++) {
		const Kcr__Process *q = c->process[i];
		uint64_t flags = sharer_flags(p, q), at = 0;
		struct script *own;

		if (!process_in_memory(p, q))
			continue;
		if (!b->how->rebuild->restore_ids || !b->how->module_clones)
			return report_fail(-EOPNOTSUPP, "process %d shares its memory with process "
					   "%d, which takes %s", q->pid, p->pid,
					   b->how->module_clones ?
					   "its old ID: leave --no-restore-pid out" :
					   "a kernel where the module can make it");
		own = script_new(&b->blob);
		err = own ? sharer_script(b, q, own) : -ENOMEM;
		if (!err)
			at = script_finish(own);
		script_free(own);
		thread_folder_enter(p, q, s);
		if (!err)
			err = at ? script_child(b, s, q->pid, at, flags, q->exit_signal) :
				   b->blob.error;
		thread_folder_leave(p, q, s);
	}
	return err;
}

static int leader_script(struct builder *b, struct script *s)
{
	const Kcr__Process *p = b->how->process;
	int err = unmap_all(b, s);

	if (!err)
		err = vdso_script(&b->vdso, b->mm, &b->kept, s);
	if (!err)
		err = memory_script(b->how->rebuild, p, b->mm, s);
	if (!err)
		err = attributes_of_process(b, p, s);
	if (!err)
		err = make_sharers(b, s);
	return err ? err : finish_leader(b, p, true, s);
}

int process_become(const struct process_exit *how)
{
	struct builder b = { .how = how, .mm = how->process->mm };
	struct script *s;
	uint64_t script = 0, stack = 0;
	int err = aio_rings_make(how->rebuild, how->process);

	if (!err)
		err = choose_places(&b);
	if (err)
		return err;
	s = script_new(&b.blob);
	err = s ? leader_script(&b, s) : -ENOMEM;
	if (!err) {
		stack = blob_reserve(&b.blob, STACK_SIZE, 16);
		script = script_finish(s);
		err = b.blob.error;
	}
	if (!err)
		err = forget_rseq();
	if (err)
		return report_errno(err, "process %d: writing its script", how->process->pid);
	blob_run(&b.blob, script, stack + STACK_SIZE);
}

/* Only the calls themselves show what the kernel admits: deadlines of several threads count together. */
void process_warn(const struct restorer_status *status)
{
	uint32_t count = status->nr_noted < RESTORER_NOTES ? status->nr_noted : RESTORER_NOTES;

	for (uint32_t i = 0, first; i < count; i++) {
		for (first = 0; status->noted[first] != status->noted[i]; first++)
			;
		if (first == i)
			report_warn("process %d: its scheduling policy or priority cannot be set here: it "
				    "runs on without", status->noted[i]);
	}
}
