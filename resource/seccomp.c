// SPDX-License-Identifier: GPL-2.0
/*
 * Saving and installing seccomp filters, and strict mode.  See seccomp.h.
 *
 * A filter that asks another program (SECCOMP_RET_USER_NOTIF) is refused: the listener
 * is a descriptor that only its installation creates.
 */
#include "resource/seccomp.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/namespace.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "resource/identity.h"


/* ---- what was read ---------------------------------------------------------------- */

struct known {
	pid_t tid;
	int64_t start_time;		/* of this thread, as its ID may be used again */
	uint32_t *filter;		/* ids, the oldest first */
	size_t count;
};

/* Of one cr_checkpoint; filters and threads are only ever added. */
static struct {
	Kcr__Filter **filter;		/* id - 1 */
	size_t nr_filters;
	struct known *thread;
	size_t nr_threads;
	bool missed;
} known;

static int no_memory(pid_t tid)
{
	return report_errno(-ENOMEM, "seccomp filters of thread %d", tid);
}

static int64_t start_time(pid_t pid, pid_t tid)
{
	char name[40], stat[1024];

	snprintf(name, sizeof(name), "task/%d/stat", tid);
	return proc_read(pid, name, stat, sizeof(stat)) > 0 ? stat_number(stat, STAT_START_TIME) : 0;
}

/* NULL: not read, or it has more by now. */
static const struct known *find(pid_t pid, pid_t tid, const char *status)
{
	size_t count = status_number(status, "Seccomp_filters", 10, 0);
	int64_t start = start_time(pid, tid);

	for (size_t i = known.nr_threads; i-- > 0;)
		if (known.thread[i].tid == tid && known.thread[i].start_time == start)
			return known.thread[i].count == count ? &known.thread[i] : NULL;
	return NULL;
}

bool seccomp_is_unread(pid_t pid, pid_t tid, const char *status)
{
	return status_number(status, "Seccomp", 10, 0) == SECCOMP_MODE_FILTER &&
	       !find(pid, tid, status);
}

/* The id of this filter, which is added if it is new; 0: no memory. */
static uint32_t intern(const struct sock_filter *code, size_t length, uint32_t flags)
{
	Kcr__Filter **larger, *f;

	for (size_t i = 0; i < known.nr_filters; i++)
		if (known.filter[i]->program.len == length && known.filter[i]->flags == flags &&
		    !memcmp(known.filter[i]->program.data, code, length))
			return i + 1;
	larger = realloc(known.filter, (known.nr_filters + 1) * sizeof(*larger));
	if (!larger)
		return 0;
	known.filter = larger;
	f = malloc(sizeof(*f));
	if (!f)
		return 0;
	kcr__filter__init(f);
	f->program.data = malloc(length);
	if (!f->program.data) {
		free(f);
		return 0;
	}
	memcpy(f->program.data, code, length);
	f->program.len = length;
	f->has_flags = flags;
	f->flags = flags;
	known.filter[known.nr_filters] = f;
	return ++known.nr_filters;
}

/* Does it ask a listener, or compute an answer that may be that? */
static bool may_ask(const struct sock_filter *code, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (BPF_CLASS(code[i].code) == BPF_RET &&
		    (BPF_RVAL(code[i].code) == BPF_A ||
		     (code[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF))
			return true;
	return false;
}

static int unreadable(pid_t pid, int err)
{
	if (err == -EACCES)
		return report_fail(-EPERM, "process %d: its seccomp filters can be read only by root "
				   "outside of containers and of filters of its own: run "
				   "cr_checkpoint there", pid);
	if (err == -EIO || err == -EINVAL)
		return report_fail(-EOPNOTSUPP, "process %d has seccomp filters, which this kernel "
				   "does not show (CONFIG_CHECKPOINT_RESTORE)", pid);
	return report_errno(err, "process %d: reading its seccomp filters", pid);
}

/* The n-th filter of a thread, counted from the oldest: its id in *id; 1, 0: there is none. */
static int read_one(pid_t pid, pid_t tid, size_t n, uint32_t *id)
{
	struct sock_filter code[BPF_MAXINSNS];
	struct __ptrace_seccomp_metadata data = { .filter_off = n };
	long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)n, code);

	if (count < 0)
		return errno == ENOENT ? 0 : unreadable(pid, -errno);
	if (may_ask(code, count))
		return report_fail(-EOPNOTSUPP, "process %d has a seccomp filter that asks another "
				   "program, or may (SECCOMP_RET_USER_NOTIF), which cannot be "
				   "saved", pid);
	if (ptrace(PTRACE_SECCOMP_GET_METADATA, tid, (void *)sizeof(data), &data) < 0)
		return unreadable(pid, -errno);
	*id = intern(code, count * sizeof(*code), data.flags);
	return *id ? 1 : no_memory(tid);
}

int seccomp_read(pid_t pid, pid_t tid)
{
	struct known *larger = realloc(known.thread, (known.nr_threads + 1) * sizeof(*larger));
	struct known k = { .tid = tid, .start_time = start_time(pid, tid) };
	int more;

	if (!larger)
		return no_memory(tid);
	known.thread = larger;
	for (;;) {
		uint32_t id, *filter;

		more = read_one(pid, tid, k.count, &id);
		if (more <= 0)
			break;
		filter = realloc(k.filter, (k.count + 1) * sizeof(*filter));
		if (!filter) {
			more = no_memory(tid);
			break;
		}
		k.filter = filter;
		k.filter[k.count++] = id;
	}
	if (more < 0)
		free(k.filter);
	else
		known.thread[known.nr_threads++] = k;
	return more;
}

bool seccomp_has_missed(void)
{
	bool missed = known.missed;

	known.missed = false;
	return missed;
}

void seccomp_list(Kcr__Preamble *preamble)
{
	preamble->filter = known.filter;
	preamble->n_filter = known.nr_filters;
}

/* ---- save --------------------------------------------------------------------- */

static const char *what(uint64_t mode)
{
	return mode == SECCOMP_MODE_STRICT ? "strict seccomp mode" : "seccomp filters";
}

/* CAP_SYS_ADMIN of the machine, not that of a user namespace. */
static bool is_root(void)
{
	return have_capability(CAP_SYS_ADMIN) && namespace_is_first("user");
}

static int refuse(pid_t pid, uint64_t mode)
{
	return report_fail(-EPERM, "process %d has %s, which only root of the machine can save: run "
			   "cr_checkpoint as root, outside of containers", pid, what(mode));
}

static int check(const struct process_probe *probe)
{
	uint64_t mode = status_number(probe->status, "Seccomp", 10, 0);

	return !mode || is_root() ? 0 : refuse(probe->pid, mode);
}

static int save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	const char *status = probe_thread_status(probe, t->tid);
	const struct known *k;

	if (!status)
		return -EIO;
	t->seccomp = status_number(status, "Seccomp", 10, 0);
	t->has_seccomp = t->seccomp;
	if (t->seccomp && !is_root())		/* the first thread may have none */
		return refuse(probe->pid, t->seccomp);
	if (t->seccomp != SECCOMP_MODE_FILTER)
		return 0;
	k = find(probe->pid, t->tid, status);
	if (!k) {
		known.missed = true;
		return report_fail(-EAGAIN, "process %d has new threads with seccomp filters all the "
				   "time: try again", probe->pid);
	}
	t->filter = malloc(k->count * sizeof(*t->filter));
	if (!t->filter)
		return no_memory(t->tid);
	memcpy(t->filter, k->filter, k->count * sizeof(*t->filter));
	t->n_filter = k->count;
	return 0;
}

/* ---- rebuild ------------------------------------------------------------------ */

bool seccomp_has(const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_thread; i++)
		if (p->thread[i]->seccomp)
			return true;
	return false;
}

int seccomp_may_restore(const Kcr__Process *p)
{
	if (is_root() && identity_may_be_anyone())
		return 0;
	return report_fail(-EPERM, "process %d has seccomp filters, which only root of the machine can "
			   "restore: restart it as root, outside of containers, and a user's image "
			   "with --trust", p->pid);
}

/* How many filters, the oldest ones, have all threads in common? */
static size_t nr_common(const Kcr__Process *p)
{
	const Kcr__Thread *first = p->n_thread ? p->thread[0] : NULL;
	size_t common = first ? first->n_filter : 0;

	for (size_t i = 1; i < p->n_thread; i++) {
		const Kcr__Thread *t = p->thread[i];
		size_t same = 0;

		while (same < common && same < t->n_filter && t->filter[same] == first->filter[same])
			same++;
		common = same;
	}
	return common;
}

static void install(const struct rebuild *r, uint32_t id, struct script *s)
{
	const Kcr__Filter *f = r->context->preamble->filter[id - 1];
	struct sock_fprog program = {
		.len = f->program.len / sizeof(*program.filter),
		.filter = (void *)(uintptr_t)script_data(s, f->program.data, f->program.len),
	};

	script_call(s, "seccomp", SYS_seccomp, SECCOMP_SET_MODE_FILTER, f->flags,
		    script_data(s, &program, sizeof(program)), 0, 0, 0);
}

/*
 * Before the threads are created, which get them from the first one: TSYNC works only
 * among threads that share their filters.
 */
static int script_common(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	size_t common = nr_common(p);

	for (size_t i = 0; i < common; i++)
		install(r, p->thread[0]->filter[i], s);
	return 0;
}

static int script_own(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
		      struct script *s)
{
	for (size_t i = nr_common(p); i < t->n_filter; i++)
		install(r, t->filter[i], s);
	if (t->seccomp == SECCOMP_MODE_STRICT)
		script_call(s, "prctl(PR_SET_SECCOMP)", SYS_prctl, PR_SET_SECCOMP,
			    SECCOMP_MODE_STRICT, 0, 0, 0, 0);
	return 0;
}

uint64_t seccomp_script_size(const struct context *c, const Kcr__Process *p)
{
	uint64_t size = 0;

	for (size_t i = 0; i < p->n_thread; i++)
		for (size_t f = 0; f < p->thread[i]->n_filter; f++)
			size += c->preamble->filter[p->thread[i]->filter[f] - 1]->program.len + 256;
	return size;
}

const struct attribute attribute_seccomp = {
	.name = "seccomp",
	.check = check,
	.save_thread = save_thread,
	.script = script_common,
	.script_thread = script_own,
};
