// SPDX-License-Identifier: GPL-2.0
/*
 * Validates a context file's messages: every reference has a target, every
 * number is in its range and every count is what later code relies on.  What
 * only the kernel can check (existence of paths, permissions) is left to it.
 */
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "arch/address.h"
#include "arch/xstate.h"
#include "section.h"

#define PID_MAX			(1 << 22)
#define SIGNALS			64
#define SIGINFO_SIZE		128
#define VDSO_MAX		(64u << 10)
#define AFFINITY_MAX		8192
#define UTIL_MAX		1024
#define MDWE_MAX		3	/* both flags of PR_SET_MDWE */
#define CLOCK_MAX		(INT64_MAX / 2)	/* ns */
#define RECORD_PAGES		3	/* head and restart: libcr/record.h */
#define FAULT_MODES		(UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP)
#define VMA_KNOWN		((KCR_VMA_DROPPABLE << 1) - 1)

static bool valid_pid(int32_t pid)
{
	return pid > 0 && pid <= PID_MAX;
}

static bool file_exists(uint32_t id, size_t nr_files)
{
	return id && id <= nr_files;
}

/* ---- memory ------------------------------------------------------------------ */

static const char *check_vma(const Kcr__Vma *vma, uint64_t after, size_t nr_files)
{
	uint64_t page = CONTEXT_PAGE;

	if (vma->flags & ~VMA_KNOWN)
		return "memory area with unknown flags";
	if (vma->flags & KCR_VMA_HUGETLB) {
		page = vma->page_size;
		if (!vma->has_page_size || page < CONTEXT_PAGE || page & (page - 1))
			return "memory area with an impossible page size";
	}
	if (vma->start < after || vma->start >= vma->end || vma->end > ARCH_USER_END ||
	    vma->start % page || vma->end % page)
		return "memory area at an impossible address";
	if (vma->pkey >= ARCH_MEMORY_KEYS)
		return "memory area with an impossible protection key";
	if (vma->has_file_id && vma->file_id && !file_exists(vma->file_id, nr_files))
		return "memory area without its file";
	if (vma->has_offset &&
	    (vma->offset % CONTEXT_PAGE || vma->offset > INT64_MAX - (vma->end - vma->start)))
		return "memory area at an impossible file offset";
	return NULL;
}

/* Is all from `address` to `end` in areas? */
static bool is_in_areas(const Kcr__Mm *mm, uint64_t address, uint64_t end)
{
	size_t area = context_area(mm, address);

	if (area == SIZE_MAX)
		return false;
	while (mm->vma[area]->end < end) {
		if (++area >= mm->n_vma || mm->vma[area]->start != mm->vma[area - 1]->end)
			return false;
	}
	return true;
}

/* A restart writes to its first pages. */
static const char *check_record(const Kcr__Mm *mm, const Kcr__Record *record)
{
	if (record->address % CONTEXT_PAGE || record->address >= ARCH_USER_END ||
	    !is_in_areas(mm, record->address, record->address + RECORD_PAGES * CONTEXT_PAGE))
		return "record at an impossible address";
	if (record->restart_source && strlen(record->restart_source) >= KCR_PATH_MAX)
		return "record with an impossible path";
	return NULL;
}

/* Its ring is a mapping of its own, which a restart fills. */
static const char *check_aio(const Kcr__Mm *mm, const Kcr__AioContext *aio, uint64_t after)
{
	size_t area = context_area(mm, aio->id);
	uint64_t length = aio->event.len + CONTEXT_AIO_HEAD;
	const Kcr__Vma *vma;

	if (area == SIZE_MAX || aio->id < after)
		return "context of io_setup at an impossible address";
	vma = mm->vma[area];
	if (vma->start != aio->id || vma->end - vma->start != length || vma->file_id ||
	    !(vma->flags & KCR_VMA_SHARED) || vma->flags & KCR_VMA_HUGETLB)
		return "context of io_setup with a wrong ring";
	if (aio->nr_events < 2 || aio->event.len / CONTEXT_AIO_EVENT != aio->nr_events ||
	    aio->head >= aio->nr_events || aio->tail >= aio->nr_events)
		return "context of io_setup with an impossible number of events";
	return NULL;
}

static const char *check_contexts(const Kcr__Mm *mm)
{
	const char *wrong = NULL;
	uint64_t after = 0;
	size_t i;

	for (i = 0; i < mm->n_aio && !wrong; i++) {
		wrong = check_aio(mm, mm->aio[i], after);
		after = mm->aio[i]->id + 1;
	}
	return wrong;
}

static const char *check_faulting(const Kcr__Mm *mm, const Kcr__UserFaultRange *range)
{
	size_t area = context_area(mm, range->start);
	const Kcr__Vma *vma = area == SIZE_MAX ? NULL : mm->vma[area];
	uint64_t left = (range->end - range->start) / CONTEXT_PAGE;

	if (!vma || vma->start != range->start || vma->end != range->end ||
	    !(vma->flags & KCR_VMA_UFFD) || vma->file_id ||
	    vma->flags & (KCR_VMA_SHARED | KCR_VMA_HUGETLB))
		return "userfaultfd of a wrong memory area";
	if (!(range->mode & FAULT_MODES) || range->mode & ~FAULT_MODES)
		return "userfaultfd with an unknown mode";
	if (range->n_protect && !(range->mode & UFFDIO_REGISTER_MODE_WP))
		return "userfaultfd with write-protection that it does not do";
	for (size_t i = 0; i < range->n_protect; i++) {
		if (range->protect[i] > left)
			return "userfaultfd with write-protection beyond its memory area";
		left -= range->protect[i];
	}
	return NULL;
}

static const char *check_policy(const Kcr__MemoryPolicy *policy, bool of_mapping)
{
	if (policy->n_nodes > KCR_POLICY_NODES / 64)
		return "memory policy with impossible nodes";
	return (policy->start < policy->end) == of_mapping ? NULL : "memory policy of wrong memory";
}

static const char *check_mm(const Kcr__Mm *mm, size_t nr_files)
{
	const char *wrong = NULL;
	uint64_t after = 0;
	size_t i;

	for (i = 0; i < mm->n_vma && !wrong; i++) {
		wrong = check_vma(mm->vma[i], after, nr_files);
		after = mm->vma[i]->end;
	}
	for (i = 0; i < mm->n_record && !wrong; i++)
		wrong = check_record(mm, mm->record[i]);
	for (i = 0; i < mm->n_user_fault && !wrong; i++)
		wrong = check_faulting(mm, mm->user_fault[i]);
	for (i = 0; i < mm->n_policy && !wrong; i++)
		wrong = check_policy(mm->policy[i], true);
	if (!wrong)
		wrong = check_contexts(mm);
	if (wrong)
		return wrong;
	if (mm->has_exe_file_id && mm->exe_file_id && !file_exists(mm->exe_file_id, nr_files))
		return "address space without its executable";
	if (mm->keys >> ARCH_MEMORY_KEYS || mm->keys & 1 || mm->execute_key >= ARCH_MEMORY_KEYS)
		return "address space with impossible protection keys";
	if (mm->has_auxv && (mm->auxv.len > KCR_AUXV_WORDS * 8 || mm->auxv.len % 16))
		return "auxiliary vector of an impossible length";
	if (mm->has_vdso_text && mm->vdso_text.len > VDSO_MAX)
		return "vdso of an impossible length";
	if (mm->has_vdso && mm->vdso >= ARCH_USER_END)
		return "vdso at an impossible address";
	return NULL;
}

/* ---- threads ----------------------------------------------------------------- */

static const char *check_xstate(const ProtobufCBinaryData *xstate, const Kcr__Preamble *preamble)
{
	if (!arch_xstate_has_length(xstate->len) ||
	    (preamble->has_xstate_size && xstate->len > preamble->xstate_size))
		return "processor state of an impossible length";
	if (!arch_xstate_has_form(xstate->data))
		return "processor state in an unknown form";
	if (preamble->has_xfeatures &&
	    arch_xstate_features(xstate->data, xstate->len) & ~preamble->xfeatures)
		return "processor state with unexpected features";
	return NULL;
}

const char *check_xstate_part(const Kcr__XstatePart *part)
{
	return arch_xstate_has_part(part->bit, part->offset, part->length) ? NULL :
	       "processor state in an impossible layout";
}

static const char *check_pending(size_t count, const ProtobufCBinaryData *pending)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (pending[i].len != SIGINFO_SIZE)
			return "pending signal of an impossible length";
	return NULL;
}

/* System calls take -1 as "leave this ID unchanged". */
static const char *check_credentials(const Kcr__Credentials *c)
{
	const uint32_t id[] = { c->uid, c->euid, c->suid, c->fsuid, c->gid, c->egid, c->sgid,
				c->fsgid };
	size_t i;

	for (i = 0; i < sizeof(id) / sizeof(*id); i++)
		if (id[i] == UINT32_MAX)
			return "impossible user or group";
	for (i = 0; i < c->n_group; i++)
		if (c->group[i] == UINT32_MAX)
			return "impossible user or group";
	return NULL;
}

const char *check_clocks(const Kcr__Clocks *clocks)
{
	return clocks->monotonic_ns > CLOCK_MAX || clocks->boottime_ns > CLOCK_MAX ?
	       "clock at an impossible time" : NULL;
}

static const char *check_sched(const Kcr__Sched *sched)
{
	if (sched->has_affinity && sched->affinity.len > AFFINITY_MAX)
		return "thread with an impossible affinity";
	return sched->util_min > UTIL_MAX || sched->util_max > UTIL_MAX ?
	       "thread with an impossible utilization" : NULL;
}

static const char *check_thread(const Kcr__Thread *thread, const Kcr__Preamble *preamble)
{
	if (!valid_pid(thread->tid))
		return "impossible thread number";
	if ((thread->has_tsc && thread->tsc != PR_TSC_SIGSEGV && thread->tsc != PR_TSC_ENABLE) ||
	    thread->mce_kill > PR_MCE_KILL_DEFAULT)
		return "thread with unknown settings";
	if (thread->n_reg != KCR_NR_REGS)
		return "thread with a wrong number of registers";
	if ((thread->restart &&
	     (thread->restart->kind > KCR_RESTART_FUTEX || thread->restart->n_data > 4)) ||
	    thread->interrupt > KCR_INTERRUPT_ALWAYS)
		return "thread in an unknown system call";
	return (thread->sched ? check_sched(thread->sched) : NULL) ?:
	       (thread->credentials ? check_credentials(thread->credentials) : NULL) ?:
	       (thread->policy ? check_policy(thread->policy, false) : NULL) ?:
	       check_seccomp(thread, preamble) ?:
	       check_pending(thread->n_pending, thread->pending) ?:
	       check_xstate(&thread->xstate, preamble);
}

/* ---- processes --------------------------------------------------------------- */

static int compare_int(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts the numbers; true if one occurs twice. */
static bool has_duplicates(int32_t *numbers, size_t count)
{
	size_t i;

	qsort(numbers, count, sizeof(*numbers), compare_int);
	for (i = 1; i < count; i++)
		if (numbers[i] == numbers[i - 1])
			return true;
	return false;
}

static const char *check_descriptors(const Kcr__Process *p, size_t nr_files)
{
	int32_t *fds;
	size_t i;
	bool twice;

	if (!p->n_descriptor)
		return NULL;
	fds = malloc(p->n_descriptor * sizeof(*fds));
	if (!fds)
		return "not enough memory to check it";
	for (i = 0; i < p->n_descriptor; i++)
		fds[i] = p->descriptor[i]->fd;
	twice = has_duplicates(fds, p->n_descriptor);
	free(fds);
	if (twice)
		return "descriptor described twice";
	for (i = 0; i < p->n_descriptor; i++) {
		if (p->descriptor[i]->fd < 0 || p->descriptor[i]->fd >= CONTEXT_FD_MAX)
			return "impossible descriptor number";
		if (!file_exists(p->descriptor[i]->file_id, nr_files))
			return "descriptor without its file";
	}
	return NULL;
}

static const char *check_timers(const Kcr__Process *p)
{
	size_t i;

	for (i = 0; i < p->n_timer; i++) {
		const Kcr__Timer *timer = p->timer[i];

		if (timer->kind > KCR_TIMER_POSIX || timer->id < 0 ||
		    (timer->kind == KCR_TIMER_ITIMER && timer->id > 2))
			return "timer of an unknown kind";
	}
	return NULL;
}

/* A status of wait(2), with a signal that ends a process if it is one of that. */
static bool is_end(uint32_t status)
{
	switch (status & 0x7f) {
	case 0:
		return !(status & ~CONTEXT_EXIT_STATUS);
	case SIGSTOP: case SIGTSTP: case SIGTTIN: case SIGTTOU:
	case SIGCONT: case SIGCHLD: case SIGURG: case SIGWINCH:
		return false;
	default:
		return (status & 0x7f) <= SIGNALS && status <= 0xff;
	}
}

static const char *check_zombie(const Kcr__Process *p)
{
	if (p->n_thread || p->mm || p->n_descriptor || p->n_timer)
		return "zombie with threads or memory";
	return is_end(p->exit_code) ? NULL : "impossible exit status";
}

static const char *check_live(const Kcr__Process *p, const Kcr__Preamble *preamble,
			      size_t nr_files)
{
	const char *wrong = NULL;
	size_t i;

	if (!p->n_thread || (p->thread[0]->tid == p->pid) == p->has_leader_exit_code)
		return "process without its first thread";
	if (p->leader_exit_code & ~CONTEXT_EXIT_STATUS)
		return "impossible exit status";
	if (!p->has_mm_id || !p->has_files_id || !p->has_fs_id || !p->has_sighand_id)
		return "process without memory or files";
	if (p->mm && (p->mm->id != p->mm_id || p->mm->pid != p->pid))
		return "process with another one's address space";
	if (p->has_clocks && (!p->clocks || p->clocks > preamble->n_clocks))
		return "process with unknown clocks";
	if (p->autogroup_nice < -20 || p->autogroup_nice > 19)
		return "process with an impossible priority";
	if (p->mdwe > MDWE_MAX || (p->tracer && p->tracer != -1 && !valid_pid(p->tracer)))
		return "process with unknown settings";
	if (p->n_action && p->n_action != SIGNALS)
		return "process with a wrong number of signal handlers";
	for (i = 0; i < p->n_thread && !wrong; i++)
		wrong = check_thread(p->thread[i], preamble);
	if (!wrong && p->mm)
		wrong = check_mm(p->mm, nr_files);
	if (!wrong && p->credentials)
		wrong = check_credentials(p->credentials);
	return wrong ?: check_descriptors(p, nr_files) ?: check_timers(p) ?:
	       check_pending(p->n_pending, p->pending);
}

const char *check_process(const Kcr__Process *p, const Kcr__Preamble *preamble, size_t nr_files)
{
	if (!valid_pid(p->pid) || p->ppid < 0 || p->pgid < 0 || p->sid < 0)
		return "impossible process number";
	if (p->has_stop_signal && p->stop_signal > SIGNALS)
		return "impossible stop signal";
	if (p->has_exit_signal && p->exit_signal > SIGNALS)
		return "impossible exit signal";
	switch (p->state) {
	case KCR__PROCESS__STATE__ZOMBIE:
		return check_zombie(p);
	case KCR__PROCESS__STATE__RUNNING:
	case KCR__PROCESS__STATE__STOPPED:
		return check_live(p, preamble, nr_files);
	default:
		return "process in an unknown state";
	}
}

/* ---- relations ---------------------------------------------------------------- */

static bool is_live(const Kcr__Process *p)
{
	return p->state != KCR__PROCESS__STATE__ZOMBIE;
}

/* PIDs and thread IDs are unique in the whole file. */
static const char *check_numbers(const struct context *c)
{
	size_t count = c->nr_processes, used = 0, i, k;
	int32_t *numbers;
	bool twice;

	for (i = 0; i < c->nr_processes; i++)
		count += c->process[i]->n_thread;
	numbers = malloc(count * sizeof(*numbers) + 1);
	if (!numbers)
		return "not enough memory to check it";
	for (i = 0; i < c->nr_processes; i++) {
		numbers[used++] = c->process[i]->pid;
		/* The leader's thread ID is the PID. */
		for (k = !c->process[i]->has_leader_exit_code; k < c->process[i]->n_thread; k++)
			numbers[used++] = c->process[i]->thread[k]->tid;
	}
	twice = has_duplicates(numbers, used);
	free(numbers);
	return twice ? "process or thread described twice" : NULL;
}

/*
 * Follows parents until one is outside or known to lead outside; a chain longer
 * than the number of processes is a cycle.
 */
static size_t parent(const struct context *c, size_t index)
{
	return context_find(c, c->by_pid[index]->ppid);
}

static bool parents_end(const struct context *c)
{
	bool *ends = calloc(c->nr_processes, sizeof(*ends));	/* by index of by_pid */
	bool good = ends;
	size_t i, at;

	for (i = 0; i < c->nr_processes && good; i++) {
		size_t steps = 0;

		for (at = i; at != SIZE_MAX && !ends[at] && steps <= c->nr_processes; steps++)
			at = parent(c, at);
		good = steps <= c->nr_processes;
		for (at = i; good && steps; steps--) {
			ends[at] = true;
			at = parent(c, at);
		}
	}
	free(ends);
	return good;
}

static const char *check_parents(const struct context *c)
{
	size_t i;

	if (!parents_end(c))
		return "processes that are each other's parents";
	for (i = 0; i < c->preamble->n_root; i++) {
		const Kcr__Process *root = context_process(c, c->preamble->root[i]);

		if (!root || context_process(c, root->ppid))
			return "wrong list of topmost processes";
	}
	return NULL;
}

/* A kind of object that processes share: its ID, and whether a process describes it. */
struct sharing {
	uint32_t (*id)(const Kcr__Process *p);
	bool (*described)(const Kcr__Process *p);
	bool required;		/* the first must describe it … */
	bool alone;		/* … and no other may */
	const char *wrong;
};

static uint32_t mm_id(const Kcr__Process *p) { return p->mm_id; }
static uint32_t files_id(const Kcr__Process *p) { return p->files_id; }
static uint32_t sighand_id(const Kcr__Process *p) { return p->sighand_id; }
static bool has_mm(const Kcr__Process *p) { return p->mm; }
static bool has_descriptors(const Kcr__Process *p) { return p->n_descriptor; }
static bool has_actions(const Kcr__Process *p) { return p->n_action; }

struct user {
	uint32_t id;
	size_t index;
};

static int compare_user(const void *a, const void *b)
{
	const struct user *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* Is each object described by the first process that has it? */
static const char *check_sharing(const struct context *c, const struct sharing *kind,
				 struct user *users)
{
	size_t count = 0, i;

	for (i = 0; i < c->nr_processes; i++)
		if (is_live(c->process[i]))
			users[count++] = (struct user){ kind->id(c->process[i]), i };
	qsort(users, count, sizeof(*users), compare_user);
	for (i = 0; i < count; i++) {
		bool first = !i || users[i].id != users[i - 1].id;
		bool described = kind->described(c->process[users[i].index]);

		if (first ? kind->required && !described : kind->alone && described)
			return kind->wrong;
	}
	return NULL;
}

static const char *check_shared(const struct context *c)
{
	static const struct sharing kinds[] = {
		{ mm_id, has_mm, true, true, "address space not described exactly once" },
		{ files_id, has_descriptors, false, true, "shared descriptors described twice" },
		{ sighand_id, has_actions, true, false, "process without signal handlers" },
	};
	struct user *users = calloc(c->nr_processes, sizeof(*users));
	const char *wrong = users ? NULL : "not enough memory to check it";
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !wrong; i++)
		wrong = check_sharing(c, &kinds[i], users);
	free(users);
	return wrong;
}

const char *check_context(const struct context *c)
{
	if (!c->nr_processes)
		return "it holds no process";
	return check_references(c) ?: check_numbers(c) ?: check_parents(c) ?: check_shared(c) ?:
	       check_sysv(c);
}

/* ---- sections ------------------------------------------------------------------ */

const char *check_memory(const struct context *c, const struct context_item *item)
{
	const Kcr__Process *p = context_process(c, item->pid);
	const Kcr__Mm *mm = p ? p->mm : NULL;
	size_t i;

	if (!mm)
		return "memory of an unknown process";
	for (i = 0; i < item->nr_runs; i++) {
		const struct kcr_run *run = &item->runs[i];

		if (!is_in_areas(mm, run->address, run->address + run->nr_pages * CONTEXT_PAGE))
			return "memory outside the process's areas";
	}
	return NULL;
}

const char *check_originals(const struct context *c, const struct context_item *item)
{
	for (uint64_t i = 0; i < item->nr_pages; i++) {
		const struct context_original *o = &item->original[i];
		const Kcr__Process *p = context_process(c, o->pid);

		/* What its userfaultfd has to give cannot be read before the program runs. */
		if (!p || !p->mm || p->mm->n_user_fault || o->reserved || o->address % CONTEXT_PAGE ||
		    context_area(p->mm, o->address) == SIZE_MAX)
			return "duplicates of a page that cannot be";
	}
	return NULL;
}

const char *check_content(const struct context *c, const struct context_item *item)
{
	return file_exists(item->file_id, c->nr_files) ? NULL : "contents of an unknown file";
}
