// SPDX-License-Identifier: GPL-2.0
/*
 * Records the state of the stopped processes: one Process message each, the
 * files they share, and the regions of memory to save.  Resources that have a
 * file of their own in resource/ are left to it.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/duplicates.h"
#include "device/device.h"
#include "proc/clock.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/reopen.h"
#include "resource/seccomp.h"

#define STATUS_SIZE	(512u << 10)

static int no_memory(pid_t pid)
{
	return report_errno(-ENOMEM, "process %d", pid);
}

/* ---- processes ------------------------------------------------------------------ */

static int describe_actions(struct checkpoint *c, Kcr__Process *p)
{
	const size_t n = 64;
	struct kcr_sigactions actions;
	int err = device_sigactions(c->attempt.job, p->pid, &actions);

	if (err)
		return err;
	p->action = calloc(n, sizeof(*p->action));
	for (size_t i = 0; p->action && i < n; i++) {
		Kcr__SigAction *a = malloc(sizeof(*a));

		if (!a)
			break;
		kcr__sig_action__init(a);
		a->handler = actions.action[i][0];
		a->flags = actions.action[i][1];
		a->restorer = actions.action[i][2];
		a->mask = actions.action[i][3];
		p->action[p->n_action++] = a;
	}
	return p->n_action == n ? 0 : no_memory(p->pid);
}

/* The command line, arguments separated by spaces. */
static char *command_line(pid_t thread)
{
	char text[1024];
	ssize_t length = proc_read(thread, "cmdline", text, sizeof(text));

	while (length > 0 && !text[length - 1])
		length--;
	if (length <= 0)
		return NULL;
	for (ssize_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = ' ';
	text[length] = '\0';
	return strdup(text);
}

static Kcr__Process *new_process(struct description *d, const struct scope_process *from)
{
	Kcr__Process *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	kcr__process__init(p);
	p->pid = from->pid;
	p->ppid = from->ppid;
	p->pgid = from->pgid;
	p->sid = from->sid;
	p->has_exit_signal = true;
	p->exit_signal = from->exit_signal;
	p->name = strndup(from->name, 15);
	d->process[d->nr_processes++] = p;
	return p;
}

static void set_state(const struct kcr_process *m, Kcr__Process *p)
{
	p->state = m->flags & KCR_PROCESS_STOPPED ? KCR__PROCESS__STATE__STOPPED :
						    KCR__PROCESS__STATE__RUNNING;
	p->has_stop_signal = m->flags & KCR_PROCESS_STOPPED;
	p->stop_signal = m->stop_signal;
	p->has_stop_seen = m->flags & KCR_PROCESS_STOPPED;
	p->stop_seen = m->flags & KCR_PROCESS_STOP_SEEN;
	p->exit_signal = m->exit_signal;
	p->has_mm_id = p->has_files_id = p->has_fs_id = p->has_sighand_id = true;
	p->mm_id = m->mm_id;
	p->files_id = m->files_id;
	p->fs_id = m->fs_id;
	p->sighand_id = m->sighand_id;
	p->has_dumpable = p->has_subreaper = true;
	p->dumpable = m->dumpable;
	p->subreaper = m->flags & KCR_PROCESS_SUBREAPER;
	p->has_leader_exit_code = m->flags & KCR_PROCESS_LEADERLESS;
	p->leader_exit_code = m->leader_exit;
}

/* File descriptors and memory, described with the first process that has them. */
static int describe_shared(struct checkpoint *c, size_t index, Kcr__Process *p)
{
	const struct kcr_process *m = &c->attempt.members.process[index];
	struct description *d = &c->attempt.description;
	bool own_mm = true, own_files = true;

	for (size_t i = 0; i < index; i++) {
		const struct kcr_process *other = &c->attempt.members.process[i];

		if (other->files_id == m->files_id && other->mm_id != m->mm_id)
			return refuse_shared_table(m->pid, other->pid);
		if (other->fs_id == m->fs_id && other->mm_id != m->mm_id)
			return refuse_shared_folder(m->pid, other->pid);
		own_mm &= other->mm_id != m->mm_id;
		own_files &= other->files_id != m->files_id;
	}
	if (own_files) {
		int err = describe_descriptors(c, d->files, p->pid, p);

		if (err)
			return err;
	}
	if (!own_mm)
		return 0;
	p->mm = malloc(sizeof(*p->mm));
	if (!p->mm)
		return no_memory(p->pid);
	kcr__mm__init(p->mm);
	return describe_mm(c, m, p->mm, &d->space[d->nr_spaces++]);
}

static int describe_member(struct checkpoint *c, size_t index, Kcr__Process *p)
{
	pid_t thread = scope_thread(&c->attempt.scope, p->pid);
	int err = refuse_launcher(c, p->pid, thread) ?:
		  refuse_own_spaces(scope_find(&c->attempt.scope, p->pid));

	if (err)
		return err;
	set_state(&c->attempt.members.process[index], p);
	if (p->leader_exit_code & ~CONTEXT_EXIT_STATUS)
		return report_fail(-EOPNOTSUPP, "process %d: its first thread was killed while "
				   "others run, which a restart cannot repeat", p->pid);
	p->has_stop_after = p->stop_after = clients_was_stopped(c, p->pid);
	p->command = command_line(thread);
	err = clocks_describe(&c->attempt.description, thread, p);
	return err ? err : describe_shared(c, index, p);
}

static int describe_attributes(struct checkpoint *c, const struct process_probe *probe,
			       Kcr__Process *p)
{
	struct expiry expiry;
	int err = expiry_begin(probe, &expiry);

	if (!err)
		err = describe_threads(c, probe, p);
	if (!err)
		err = describe_settings(c, p);
	if (!err)
		err = describe_undos(c, p);
	if (!err)
		err = describe_mempolicies(c, p);
	if (!err)
		err = describe_actions(c, p);
	for (size_t i = 0; !err && attributes[i]; i++)
		if (attributes[i]->save)
			err = attributes[i]->save(probe, p);
	if (!err)
		err = expiry_settle(probe, p, &expiry);
	expiry_end(&expiry);
	return err;
}

/* Threads, signals, timers and the other attributes of a running process. */
static int describe_running(struct checkpoint *c, const struct kcr_process *member,
			    Kcr__Process *p, char *status)
{
	char stat[1024];
	struct process_probe probe = {
		.job = c->attempt.job, .pid = p->pid,
		.thread = scope_thread(&c->attempt.scope, p->pid), .info = member,
		.status = status, .stat = stat,
	};
	int err;

	if (proc_read(probe.thread, "status", status, STATUS_SIZE) <= 0 ||
	    proc_read(p->pid, "stat", stat, sizeof(stat)) <= 0)
		return report_fail(-ESRCH, "process %d ended during the checkpoint", p->pid);
	err = describe_attributes(c, &probe, p);
	if (!err)
		describe_within_vdso(p);
	return err;
}

/* Then the kernel says 0, as for another user's process. */
static bool hides_status(const struct scope_process *from)
{
	char link[64];

	return !from->exit_code && proc_link(from->pid, "ns/user", link, sizeof(link)) == -EACCES;
}

/* Only its parent can see a zombie: without the parent it is left out. */
static int describe_zombie(struct checkpoint *c, const struct scope_process *from)
{
	const struct scope_process *parent = scope_find(&c->attempt.scope, from->ppid);
	Kcr__Process *p;

	if (!parent || parent->zombie || is_excluded(c, parent->pid)) {
		report_warn("process %d (%s) has ended and its parent is not saved: left out",
			    from->pid, from->name);
		return 0;
	}
	if (hides_status(from) && !c->options->skip_unsupported)
		return report_fail(-EOPNOTSUPP, "process %d (%s) has ended, and only root may see with which "
				   "status: let its parent wait for it, or run cr_checkpoint as root",
				   from->pid, from->name);
	p = new_process(&c->attempt.description, from);
	if (!p)
		return no_memory(from->pid);
	p->state = KCR__PROCESS__STATE__ZOMBIE;
	p->has_exit_code = true;
	p->exit_code = from->exit_code;
	return 0;
}

/* Index of a member; members.count: no member, but a zombie or excluded. */
static size_t member_of(const struct checkpoint *c, pid_t pid)
{
	size_t i = 0;

	while (i < c->attempt.members.count && c->attempt.members.process[i].pid != pid)
		i++;
	return i;
}

static int describe_process(struct checkpoint *c, const struct scope_process *from)
{
	size_t index = member_of(c, from->pid);
	Kcr__Process *p;

	if (from->zombie)
		return describe_zombie(c, from);
	if (index == c->attempt.members.count)
		return 0;
	p = new_process(&c->attempt.description, from);
	return p ? describe_member(c, index, p) : no_memory(from->pid);
}

/* ---- the description -------------------------------------------------------------- */

int describe_host(struct checkpoint *c)
{
	Kcr__Preamble *p = &c->attempt.description.preamble;
	struct utsname host;
	char boot_id[64];

	kcr__preamble__init(p);
	uname(&host);
	p->kcr_version = strdup(KCR_VERSION);
	p->machine = strdup(host.machine);
	p->kernel_release = strdup(host.release);
	p->kernel_version = strdup(host.version);
	p->host = strdup(host.nodename);
	if (proc_read(PROC_ROOT, "sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) > 0) {
		boot_id[strcspn(boot_id, "\n")] = '\0';
		p->boot_id = strdup(boot_id);
	}
	p->target = c->options->target;
	p->scope = c->options->scope;
	p->requester = getpid();
	p->has_namespaces = c->options->namespaces;
	p->namespaces = c->options->namespaces;
	p->has_xfeatures = p->has_xstate_size = p->has_monotonic_ns = true;
	p->has_image_bytes_hint = true;
	p->xstate_size = c->attempt.info.xstate_size;
	p->image_bytes_hint = c->expected_bytes;
	increment_describe(c->increment, p);
	if (describe_xstate(p))
		return -ENOMEM;
	if (!p->kcr_version || !p->machine || !p->kernel_release || !p->kernel_version || !p->host)
		return report_errno(-ENOMEM, "context file");
	return 0;
}

static int find_roots(struct description *d)
{
	Kcr__Preamble *preamble = &d->preamble;

	preamble->root = calloc(d->nr_processes + 1, sizeof(*preamble->root));
	if (!preamble->root)
		return report_errno(-ENOMEM, "context file");
	for (size_t i = 0; i < d->nr_processes; i++) {
		bool inside = false;

		for (size_t k = 0; k < d->nr_processes; k++)
			inside |= d->process[k]->pid == d->process[i]->ppid;
		if (!inside)
			preamble->root[preamble->n_root++] = d->process[i]->pid;
	}
	return 0;
}

/* A restart creates the one from within the other, which must have its filters first. */
static int check_filtered(const struct description *d)
{
	for (size_t i = 0; i < d->nr_processes; i++)
		for (size_t k = 0; seccomp_has(d->process[i]) && k < d->nr_processes; k++)
			if (k != i && d->process[k]->n_thread &&
			    d->process[k]->mm_id == d->process[i]->mm_id)
				return report_fail(-EOPNOTSUPP, "process %d has seccomp filters and shares "
						   "its memory with process %d, which cannot be saved",
						   d->process[i]->pid, d->process[k]->pid);
	return 0;
}

/* Fills in what depends on all processes. */
static int complete(struct description *d)
{
	int err = 0;

	for (size_t i = 0; !err && i < d->nr_processes; i++)
		if (d->process[i]->n_descriptor)
			err = file_table_posix_locks(d->files, d->process[i]);
	if (!err)
		err = check_filtered(d);
	if (!err)
		err = family_check(d->process, d->nr_processes);
	if (!err)
		err = sharers_check(d->files, d->process, d->nr_processes);
	if (!err)
		err = io_uring_check(d->files, d->process, d->nr_processes);
	if (!err)
		err = socket_memories_check(d->files, d->process, d->nr_processes);
	if (!err)
		err = timers_check(d->process, d->nr_processes);
	if (!err)
		err = find_roots(d);
	if (err)
		return err;
	owners_warn(d->files, d->process, d->nr_processes);
	own_proc_warn(d->files, d->process, d->nr_processes);
	pidfd_warn(d->files, d->process, d->nr_processes);
	segments_warn(d->files, d->process, d->nr_processes);
	seccomp_list(&d->preamble);
	d->preamble.time_sec = time(NULL);
	d->time_ns = clock_ns(CLOCK_BOOTTIME);
	clocks_read(d);
	d->preamble.nr_processes = d->nr_processes;
	d->preamble.nr_files = file_table_count(d->files);
	return 0;
}

/*
 * After the contents of files, as some signals announce them: data that arrive from
 * outside in between may be announced twice (SIGIO), but are never lost unannounced.
 */
static int describe_all_running(struct checkpoint *c, char *status)
{
	const struct description *d = &c->attempt.description;
	const struct members *members = &c->attempt.members;
	int err = 0;

	for (size_t i = 0; !err && i < d->nr_processes; i++) {
		size_t index = member_of(c, d->process[i]->pid);

		if (index < members->count &&
		    d->process[i]->state != KCR__PROCESS__STATE__ZOMBIE)
			err = describe_running(c, &members->process[index], d->process[i], status);
	}
	return err;
}

/* ---- this program, if a program of the checkpoint has started it ------------------------ */

static bool reaps_by_itself(const Kcr__Process *parent)
{
	const Kcr__SigAction *action = parent->action[SIGCHLD - 1];

	return action->handler == (uintptr_t)SIG_IGN || action->flags & SA_NOCLDWAIT;
}

static int queue_sigchld(Kcr__Process *parent, const Kcr__Process *child)
{
	ProtobufCBinaryData *larger;
	siginfo_t info = {
		.si_signo = SIGCHLD, .si_code = CLD_EXITED, .si_pid = child->pid,
		.si_uid = getuid(),
	};

	larger = realloc(parent->pending, (parent->n_pending + 1) * sizeof(*larger));
	if (!larger)
		return no_memory(parent->pid);
	parent->pending = larger;
	larger[parent->n_pending].data = malloc(sizeof(info));
	if (!larger[parent->n_pending].data)
		return no_memory(parent->pid);
	memcpy(larger[parent->n_pending].data, &info, sizeof(info));
	larger[parent->n_pending++].len = sizeof(info);
	return 0;
}

/*
 * A program that has itself saved by running this tool waits for it: after a restart
 * it finds a child that has exited with status 0.  libcr, which asks for others, does
 * not wait then.
 */
static int describe_tool(struct checkpoint *c)
{
	struct description *d = &c->attempt.description;
	struct scope_process self;
	Kcr__Process *parent = NULL, *p;

	for (size_t i = 0; i < d->nr_processes; i++)
		if (d->process[i]->pid == getppid())
			parent = d->process[i];
	if (!parent || !parent->n_action || c->options->requester || reaps_by_itself(parent) ||
	    scope_look(getpid(), &self))
		return 0;
	p = new_process(d, &self);
	if (!p)
		return no_memory(self.pid);
	p->state = KCR__PROCESS__STATE__ZOMBIE;
	p->has_exit_code = true;
	return queue_sigchld(parent, p);
}

static int check_reopen(const struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	enum reopen_rule rule = c->options->must_reopen ? REOPEN_REFUSE : REOPEN_WARN;
	int err = reopen_files(d->files, rule);

	for (size_t i = 0; !err && i < d->nr_processes; i++)
		err = reopen_folder(d->process[i], rule);
	return err;
}

int describe(struct checkpoint *c)
{
	struct description *d = &c->attempt.description;
	const struct scope *scope = &c->attempt.scope;
	char *status = malloc(STATUS_SIZE);
	int err = 0;

	d->files = file_table_new(c->options->skip_unsupported);
	d->process = calloc(scope->count + 2, sizeof(*d->process));
	d->space = calloc(c->attempt.members.count + 1, sizeof(*d->space));
	if (!d->files || !d->process || !d->space || !status)
		err = report_errno(-ENOMEM, "description of the processes");
	else
		file_table_use_job(d->files, c->attempt.job);
	c->result->nr_threads = 0;
	for (size_t i = 0; !err && i < scope->count; i++)
		err = describe_process(c, &scope->process[i]);
	if (!err)
		err = file_table_save(d->files);
	if (!err)
		err = user_faults_describe(c);
	if (!err)
		err = describe_all_running(c, status);
	if (!err)
		err = sysv_describe(d->process, d->nr_processes);
	if (!err)
		undos_warn(c);
	if (!err)
		err = describe_tool(c);
	if (!err)
		err = complete(d);
	if (!err)
		err = check_reopen(c);
	c->result->nr_processes = d->nr_processes;
	free(status);
	return err;
}

/* A restart has to read back what it has filled in, which is not for the memory of userfaultfds. */
static bool looks_for_duplicates(const struct checkpoint *c, uint64_t features)
{
	return c->options->dedup && !(features & CONTEXT_HAS_USERFAULT) &&
	       c->attempt.info.features & KCR_FEATURE_READ_BACK;
}

int describe_write(struct checkpoint *c)
{
	struct description *d = &c->attempt.description;
	struct context_writer *w = c->attempt.writer;
	uint64_t features = context_needs(d->process, d->nr_processes);
	int err;

	if (c->attempt.family)
		features |= CONTEXT_HAS_SHARED;
	if (c->options->postponed)
		features |= CONTEXT_HAS_ELSEWHERE;
	for (uint32_t id = 1; id <= file_table_count(d->files); id++)
		features |= context_file_needs(file_table_get(d->files, id));
	if (looks_for_duplicates(c, features)) {
		c->attempt.duplicates = duplicates_new();
		if (!c->attempt.duplicates)
			return report_errno(-ENOMEM, "pages that are equal");
		features |= CONTEXT_HAS_DUPLICATES;
	}
	context_writer_require(w, features);
	err = context_write_message(w, CONTEXT_PREAMBLE, &d->preamble.base);
	for (uint32_t id = 1; !err && id <= file_table_count(d->files); id++)
		err = context_write_message(w, CONTEXT_FILE, &file_table_get(d->files, id)->base);
	for (size_t i = 0; !err && i < d->nr_processes; i++)
		err = context_write_message(w, CONTEXT_PROCESS, &d->process[i]->base);
	d->written = true;
	return err;
}

void describe_free(struct description *d)
{
	Kcr__Preamble *p = &d->preamble;

	for (size_t i = 0; i < d->nr_processes; i++)
		kcr__process__free_unpacked(d->process[i], NULL);
	for (size_t i = 0; i < d->nr_spaces; i++) {
		free(d->space[i].region);
		free(d->space[i].shared);
		changes_free(&d->space[i].changes);
	}
	free(d->process);
	free(d->space);
	mapped_free(d);
	file_table_free(d->files);
	clocks_free(d);
	free(p->root);
	free(p->kcr_version);
	free(p->machine);
	free(p->kernel_release);
	free(p->kernel_version);
	free(p->host);
	free(p->boot_id);
	if (p->n_xstate_part)
		free(p->xstate_part[0]);
	free(p->xstate_part);
}
