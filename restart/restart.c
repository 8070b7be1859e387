// SPDX-License-Identifier: GPL-2.0
/*
 * The order of a restart: check whether this machine can run the programs, open
 * all files, restore their contents, read the memory that processes have in common, create the
 * processes, wait until every thread has entered the module, fill their memory, and only then
 * let them run.  Until that last step closing the job undoes everything.
 */
#include "restart/restart.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "device/refused.h"
#include "proc/clock.h"
#include "proc/container.h"
#include "proc/handle.h"
#include "proc/namespace.h"
#include "report/code.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/mempolicy.h"
#include "resource/resource.h"
#include "resource/seccomp.h"
#include "restart/clocks.h"
#include "restart/duplicates.h"
#include "restart/handles.h"
#include "restart/ids.h"
#include "restart/inherited.h"
#include "restart/lazy.h"
#include "restart/memory.h"
#include "restart/process.h"
#include "restart/record.h"
#include "restart/skeleton.h"
#include "restart/suspend.h"
#include "restart/trust.h"
#include "restart/user_faults.h"

#define ENTER_TIMEOUT_MS	300000		/* in case a restart hangs */
#define HOLD_MS			5000		/* hold threads that a callback may wait for */
#define WAIT_MS			100		/* between checks of all processes */
#define END_MS			10000		/* for processes that are not our children yet */

static int check_architecture(const Kcr__Preamble *p)
{
	struct utsname name;

	uname(&name);
	if (strcmp(p->machine, name.machine))
		return report_fail(-CR_EBADARCH, "the context file is of a %s machine, this is %s: "
				   "restart it on a machine of its kind", p->machine, name.machine);
	return 0;
}

/* Before anything is created: could this machine run these programs? */
static int check_programs(const struct context *context, const struct kcr_info *info)
{
	const Kcr__Preamble *p = context->preamble;

	/* With a known layout thread_check() says what is missing. */
	if (!p->n_xstate_part && p->has_xstate_size && p->xstate_size > info->xstate_size)
		return report_fail(-CR_EBADARCH, "the saved programs use CPU registers that this "
				   "machine does not have (%u bytes of state, here %u): restart "
				   "on a machine of the same kind", p->xstate_size,
				   info->xstate_size);
	for (size_t i = 0; i < context->nr_processes; i++) {
		int err = process_check(context, context->process[i]);

		if (!err && seccomp_has(context->process[i]))
			err = seccomp_may_restore(context->process[i]);
		if (err)
			return err;
	}
	return family_check(context->process, context->nr_processes);
}

static size_t leader_index(const struct context *c)
{
	size_t root = 0;

	for (size_t i = 0; i < c->nr_processes; i++)
		if (c->process[i]->pid == c->preamble->target)
			return i;
	for (size_t i = 0; i < c->nr_processes && c->preamble->n_root; i++)
		if (c->process[i]->pid == c->preamble->root[0])
			root = i;
	return root;
}

/* Sets up *r; new_pid is shared by all processes. */
static int prepare(struct rebuild *r, const struct context *c,
		   const struct restart_options *options)
{
	size_t length = (c->nr_processes + 1) * sizeof(*r->new_pid);

	r->context = c;
	r->restore_ids = options->restore_pid;
	r->any_port = options->any_port;
	r->any_cpu = options->any_cpu;
	r->leaves = options->leaves;
	r->strict_files = options->strict_files;
	r->redirect = options->redirect;
	r->nr_redirects = options->nr_redirects;
	r->leader = c->nr_processes ? c->process[leader_index(c)]->pid : 0;
	r->source = options->source ?: "";
	r->requester = options->requester;
	r->lazy_socket = -1;
	r->relocate = options->relocate;
	r->file_fd = malloc((c->nr_files + 1) * sizeof(int));
	r->content_fd = malloc((c->nr_files + 1) * sizeof(int));
	r->new_pid = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!r->file_fd || !r->content_fd || r->new_pid == MAP_FAILED)
		return report_errno(-ENOMEM, "restart");
	for (size_t i = 0; i < c->nr_files; i++)
		r->file_fd[i] = r->content_fd[i] = -1;
	return 0;
}

/* With signals blocked, so that no temporary file (of a deleted one) is left behind. */
static int undisturbed(int (*step)(struct rebuild *r), struct rebuild *r)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	err = step(r);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* Opens files and takes their contents; at its end the old clocks go on. */
static int open_files(struct rebuild *r, struct context_reader *reader,
		      const struct restart_options *options, struct restart_result *result)
{
	struct context_item item;
	int err, more;

	ports_await(r);
	err = undisturbed(files_open, r);
	if (err)
		return err;
	while ((more = context_read(reader, &item)) > 0 && item.type == CONTEXT_CONTENT) {
		err = files_content(r, &item);
		if (err)
			return err;
		result->content_bytes += item.length;
	}
	if (more < 0)
		return more;
	context_unread(reader);
	return clocks_make(r->context, options->clocks) ?: undisturbed(files_complete, r) ?:
	       undisturbed(sysv_rebuild, r);
}

/*
 * Has process i entered?  0, -EAGAIN: not yet, -ECHILD: it died (no message:
 * see explain()).
 */
static int look(const struct rebuild *r, size_t i, unsigned int timeout_ms)
{
	pid_t pid = __atomic_load_n(&r->new_pid[i], __ATOMIC_ACQUIRE);
	int err;

	/* Its parent has not forked it yet. */
	if (!pid) {
		usleep(timeout_ms * 1000);
		return -EAGAIN;
	}
	err = device_wait(r->job, pid, timeout_ms);
	/* EINTR: we were stopped, frozen or traced. */
	return err == -ETIMEDOUT || err == -EINTR ? -EAGAIN : err;
}

/*
 * Processes wait for each other, so while waiting for one, check whether another
 * has died.
 */
static int wait_for_all(const struct rebuild *r, const struct restorer_status *status,
			struct restart_result *result)
{
	const struct context *c = r->context;
	uint64_t end = now_ns() + ENTER_TIMEOUT_MS * 1000000ull;
	size_t first = 0;

	while (first < c->nr_processes) {
		bool dead = c->process[first]->state == KCR__PROCESS__STATE__ZOMBIE;
		int err = dead ? 0 : look(r, first, WAIT_MS);

		if (r->lazy && lazy_collect(r->lazy))
			return report_error();

		for (size_t i = first + 1; err == -EAGAIN && i < c->nr_processes; i++)
			if (c->process[i]->state != KCR__PROCESS__STATE__ZOMBIE &&
			    look(r, i, 1) == -ECHILD)
				err = -ECHILD;
		if (err == -EAGAIN && (report_message() || status->written))
			err = -ECHILD;
		if (err == -EAGAIN && now_ns() > end)
			err = report_errno(-ETIMEDOUT, "the processes were not rebuilt in time");
		if (err == -EAGAIN)
			continue;
		if (err)
			return err;
		result->nr_processes++;
		result->nr_threads += c->process[first++]->n_thread;
	}
	return 0;
}

/* The clone of a thread (or of a process in the same memory) failed. */
static void explain_thread(const struct rebuild *r, pid_t pid, pid_t tid, int err)
{
	if (err == -EPERM)
		refused_clone(pid, r->restore_ids ? tid : 0);
	else if (err == -EEXIST)
		report_fail(-EBUSY, "process %d cannot be rebuilt: its thread ID %d is in use: end "
			    "that process, or use --no-restore-pid", pid, tid);
	else
		report_errno(err, "process %d cannot be rebuilt: its thread %d", pid, tid);
}

/*
 * Reports the cause: the message of the process that failed first, or the label
 * of one that had left cr_restart's memory and could write no more than that.
 */
static int explain(int err, const struct rebuild *r, const struct restorer_status *status)
{
	if (status->written) {
		int result = (int)status->result;

		report_clear();
		if (result == -EDQUOT)
			refused_process(status->pid, result);
		else if (status->result >= 0)	/* no error, but not what was asked for */
			report_fail(-EIO, "process %d cannot be rebuilt: %s gave %lld instead of what "
				    "was saved", status->pid, status->label,
				    (long long)status->result);
		else if (status->tid)
			explain_thread(r, status->pid, status->tid, result);
		report_errno(result == -EEXIST ? -EBUSY : result, "process %d cannot be rebuilt: %s",
			     status->pid, status->label);
	}
	report_errno(err, "a process could not be rebuilt");
	return report_error() ?: err;	/* 0: killed while it wrote its message */
}

static void signal_all(const struct rebuild *r, const int *handle, int signal)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		handle_signal(handle[i], signal);
}

static int make_processes(struct rebuild *r, const struct restart_options *options,
			  bool module_clones, struct restart_result *result)
{
	struct restorer_status *status = mmap(NULL, sizeof(*status), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (status == MAP_FAILED)
		return report_errno(-errno, "restart");
	err = skeleton_make(r, options, status, module_clones);
	if (!err)
		err = wait_for_all(r, status, result);
	suspend_end();
	if (err)
		err = explain(err, r, status);
	else
		process_warn(status);
	munmap(status, sizeof(*status));
	return err;
}

static bool has_clients(const struct context *c)
{
	for (size_t i = 0; i < c->nr_files; i++)
		if (c->file[i]->kind_case == KCR__FILE__KIND_CLIENT)
			return true;
	return false;
}

/* As device_finish(), but goes on if we are stopped, frozen or traced meanwhile. */
static int finish_patiently(const struct rebuild *r, unsigned int timeout_ms, int *code, pid_t *pid)
{
	int err = device_finish(r->job, timeout_ms, code, pid);

	while (err == -EINTR) {
		report_clear();
		err = device_finish(r->job, timeout_ms, code, pid);
	}
	return err;
}

/*
 * Waits for callbacks (libcr) while the other threads are held: at most HOLD_MS,
 * as a callback may need a lock that one of these has.
 */
static int finish_callbacks(const struct rebuild *r, const int *handle)
{
	pid_t pid;
	int code, err = finish_patiently(r, HOLD_MS, &code, &pid);

	if (err == -ETIMEDOUT) {
		report_clear();
		err = device_resume(r->job, 0, NULL);
		if (!err)
			err = finish_patiently(r, 0, &code, &pid);
	}
	if (err || !code)
		return err;
	signal_all(r, handle, SIGKILL);
	return report_fail(-CR_ERSTRTABRT, "process %d ended the restart in a callback (error %d)",
			   pid, code);
}

/* Stops those that were stopped before they ran their callbacks, or about to stop. */
static void stop_again(const struct rebuild *r, const int *handle)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		if (r->context->process[i]->stop_after)
			handle_signal(handle[i], SIGSTOP);
}

static bool needs_handles(const struct context *c, int signal)
{
	for (size_t i = 0; i < c->nr_processes; i++)
		if (c->process[i]->stop_after)
			return true;
	return signal || has_clients(c);
}

/*
 * Lets them run, with a signal if wanted: it is pending until the threads leave the module,
 * and is the first they get.
 */
static int let_go(const struct rebuild *r, const int *handle, const struct restart_options *options)
{
	const int signal = options->signal;
	bool hold = has_clients(r->context);
	int err;

	if (!hold && signal != SIGCONT)
		stop_again(r, handle);
	/* SIGKILL would end their sleep in ENTER before all can run. */
	if (signal && signal != SIGKILL && !hold)
		signal_all(r, handle, signal);
	err = device_resume(r->job, (hold ? KCR_RESUME_HOLD : 0) | (r->lazy ? KCR_RESUME_GUARD : 0),
			    NULL);
	if (!err && r->lazy) {
		mempolicy_adopt(r, r->leader);	/* for all that is loaded: its threads begin with that */
		err = lazy_start(r->lazy, options->loaded);
		mempolicy_adopt(r, 0);
	}
	if (err)
		return report_errno(err, "the rebuilt processes could not be resumed");
	if (hold) {
		err = finish_callbacks(r, handle);
		if (!err && signal != SIGCONT)
			stop_again(r, handle);
		if (!err && signal && signal != SIGKILL)
			signal_all(r, handle, signal);
		/* Fails if nothing is held any more: ignored. */
		if (!err)
			device_resume(r->job, 0, NULL);
		if (!err)
			report_clear();
	}
	if (!err && signal == SIGKILL)
		signal_all(r, handle, SIGKILL);
	return err;
}

/* The new ID of the group; 0: the leader had no terminal, or no saved group was in front. */
static pid_t foreground_group(const struct rebuild *r, const Kcr__Process *leader)
{
	for (size_t i = 0; leader->has_tty_foreground && i < r->context->nr_processes; i++)
		if (r->context->process[i]->pgid == leader->tty_foreground)
			return getpgid(r->new_pid[i]);
	return 0;
}

/* What can be known without making anything. */
static int check_all(struct rebuild *r, enum restart_clocks clocks)
{
	int err = ids_check(r) ?: clocks_make(r->context, clocks);

	clocks_end();
	return err ?: files_check(r) ?: sysv_could_rebuild(r);
}

/* What was read, once it was. */
static void fill_in(const struct context *c, const struct context_reader *reader,
		    struct restart_result *result)
{
	const Kcr__Preamble *p = c->preamble;
	Kcr__Ancestor self = KCR__ANCESTOR__INIT;

	context_reader_identity(reader, &self);
	for (size_t i = 0; i < p->n_ancestor; i++)
		result->image[i].id = p->ancestor[i]->id;
	result->image[p->n_ancestor].id = self.id;
	result->nr_images = p->n_ancestor + 1;
	result->bytes = context_reader_bytes(reader);
	result->nr_files = c->nr_files;
	for (size_t i = 0; i < c->nr_processes; i++)
		result->nr_mappings += c->process[i]->mm ? c->process[i]->mm->n_vma : 0;
}

/* All have entered: what only cr_restart holds until now goes to their memory. */
static int fill(struct rebuild *r, struct context_reader *reader,
		const struct restart_options *options, struct restart_result *result)
{
	struct user_faults *faults;
	int err = user_faults_take(&faults, r);

	files_close(r);			/* from here on only the programs hold them */
	if (!err)
		err = memory_fill(r, faults, reader, options, result);
	mempolicy_adopt(r, 0);
	if (!err)
		err = user_faults_protect(faults);
	user_faults_free(faults);
	return err;
}

static int rebuild_all(struct rebuild *r, struct context_reader *reader, bool module_clones,
		       const struct restart_options *options, struct restart_result *result)
{
	uint64_t start = now_ns(), opened, made, filled;
	int *handle = NULL;
	size_t leader = leader_index(r->context);
	int err = ids_await(r) ?: open_files(r, reader, options, result);

	if (err)
		return err;
	err = inherited_read(&r->inherited, r->context, reader, options, result);
	if (err)
		return err;
	opened = now_ns();
	if (options->lazy)
		err = lazy_new(&r->lazy, r, reader, options->chain, options->elsewhere);
	if (!err)
		err = make_processes(r, options, module_clones, result);
	clocks_end();
	inherited_drop(r->inherited);
	r->inherited = NULL;
	if (err)
		return err;
	made = now_ns();
	err = fill(r, reader, options, result);
	filled = now_ns();
	if (!err)
		err = record_restart(r);
	if (!err && needs_handles(r->context, options->signal))
		err = handles_open(r, &handle);
	if (err)
		return err;
	report_relay();
	result->leader = r->new_pid[leader];
	/* What may fail comes first: the commit may be the end of the processes where they were. */
	if (r->lazy)
		err = lazy_arm(r->lazy, r);
	if (!err && options->commit)
		err = options->commit(result->leader,
				      foreground_group(r, r->context->process[leader]));
	if (!err)
		err = let_go(r, handle, options);
	if (handle)
		handles_close(handle, r->context->nr_processes);
	if (err)
		return err;
	result->open_ns = opened - start;
	result->skeleton_ns = made - opened;
	result->fill_ns = filled - made;
	result->resume_ns = now_ns() - filled;
	fill_in(r->context, reader, result);
	result->nr_deferred = r->lazy ? lazy_pages(r->lazy) : 0;
	return 0;
}

static void finish(struct rebuild *r)
{
	clocks_end();
	files_close(r);
	if (r->new_pid && r->new_pid != MAP_FAILED)
		munmap(r->new_pid, (r->context->nr_processes + 1) * sizeof(*r->new_pid));
}

/*
 * Waits for the end of the new processes only: cr_restart may have inherited other
 * children by exec.  Children of a process that has exited become ours.
 */
static void reap_all(const struct rebuild *r)
{
	uint64_t end = now_ns() + END_MS * 1000000ull;

	for (size_t i = 0; i < r->context->nr_processes; i++) {
		pid_t pid = r->new_pid[i];

		/* A sharer's PID is set before it exists. */
		if (!pid || process_is_sharer(r->context->process[i]))
			continue;
		while (waitpid(pid, NULL, __WALL) < 0 && !kill(pid, 0) && now_ns() < end)
			usleep(1000);
	}
}

/*
 * It was saved from outside of its container, and may not be in one now.  What --pid-namespace
 * makes is one too, of which only the IDs matter.
 */
static void warn_of_container(const Kcr__Preamble *p, bool own_pids)
{
	const char *kind = p->namespaces & CLONE_NEWPID ? "pid" : "user";
	int namespaces = p->namespaces & (own_pids ? ~(CLONE_NEWPID | CLONE_NEWNS) : ~0);
	char what[96];

	if (namespaces &&
	    (!(p->namespaces & (CLONE_NEWPID | CLONE_NEWUSER)) || namespace_is_first(kind)))
		report_warn("the program was in a container (%s), and is restarted outside: see "
			    "--inside%s", container_names(p->namespaces, what, sizeof(what)),
			    own_pids ? "" : " and --pid-namespace");
}

int restart_run(struct context_reader *reader, const struct context *context,
		const struct restart_options *options, struct restart_result *result)
{
	struct rebuild r = { 0 };
	enum identity_rule rule = IDENTITY_CALLER;
	struct kcr_info info;
	int err, subreaper = 0;

	memset(result, 0, sizeof(*result));
	prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
	err = check_architecture(context->preamble);
	if (!err)
		err = trust_decide(context_reader_fd(reader), context, options->trust, &rule);
	if (!err)
		err = trust_chain(context_reader_fd(reader), options->chain, options->trust);
	if (!err && (!options->join || options->own_pids))
		warn_of_container(context->preamble, options->own_pids);
	if (!err && options->join)
		err = options->join(options->join_arg);
	/* The container may be the user's own, and give privileges. */
	if (!err && options->join && !options->own_pids && rule == IDENTITY_CALLER && identity_is_privileged())
		rule = IDENTITY_SAVED;
	if (!err)
		err = identity_begin(rule);
	if (!err)
		err = report_share();
	if (err)
		return err;
	r.job = device_open(&info);
	if (r.job < 0)
		return r.job;
	err = check_programs(context, &info) ?: duplicates_check(reader, &info);
	if (!err && options->lazy)
		err = lazy_check(reader, &info);
	if (!err)
		err = prepare(&r, context, options);
	if (!err && options->check_only)
		err = check_all(&r, options->clocks);
	else if (!err)
		err = rebuild_all(&r, reader, info.features & KCR_FEATURE_CLONE, options, result);
	/* Closing the job kills what is not running by now. */
	if (!r.lazy)
		close(r.job);
	else if (err)
		lazy_drop(r.lazy);
	else
		result->lazy = r.lazy;
	if (err && r.new_pid && r.new_pid != MAP_FAILED) {
		reap_all(&r);
		sysv_drop();
	}
	/* skeleton_make() made us a subreaper; the programs' orphans are not for us. */
	prctl(PR_SET_CHILD_SUBREAPER, subreaper);
	report_relay();
	if (r.context)
		finish(&r);
	return err;
}
