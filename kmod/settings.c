// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_SETTINGS: what prctl(2) and arch_prctl(2) have set of a process at rest and the kernel
 * tells only to some or to nobody.
 *
 * Whom a process lets trace it (PR_SET_PTRACER) is in a list of Yama's, which it reads under RCU
 * whenever somebody is to be traced.  Where the members of its entries are is asked of BTF, once;
 * the tasks that they name are compared with those of the job, which has references to them, and
 * never followed.
 */
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "arch/x86/registers.h"
#include "btf.h"
#include "compat/settings.h"
#include "ioctl.h"
#include "lookup.h"
#include "park.h"

enum { TRACER, TRACEE, INVALID, NODE };

static struct kcr_btf_member in_relation[] = {
	[TRACER] = { "tracer", "task_struct", sizeof(void *) },
	[TRACEE] = { "tracee", "task_struct", sizeof(void *) },
	[INVALID] = { "invalid", NULL, sizeof(bool) },
	[NODE] = { "node", "list_head", sizeof(struct list_head) },
};

static struct kcr_btf_wanted wanted[] = {
	{ "ptrace_relation", in_relation, ARRAY_SIZE(in_relation) },
};

static struct kcr_btf_search places = { wanted, ARRAY_SIZE(wanted) };

/* ---- tracers ------------------------------------------------------------------------ */

static const void *task_of(const void *relation, int member)
{
	return READ_ONCE(*(const void *const *)kcr_btf_at(relation, &in_relation[member]));
}

static bool is_valid_for(const void *relation, const struct task_struct *leader)
{
	return task_of(relation, TRACEE) == leader &&
	       !READ_ONCE(*(const bool *)kcr_btf_at(relation, &in_relation[INVALID]));
}

/* *tracer: for comparison only; NULL: anybody. */
static bool find_tracer(const struct task_struct *leader, const void **tracer)
{
	const struct list_head *list = kcr_ptracer_relations(), *node;
	bool found = false;

	if (!list || kcr_btf_search(&places))
		return false;
	rcu_read_lock();
	for (node = rcu_dereference(list_next_rcu(list)); node != list && !found;
	     node = rcu_dereference(list_next_rcu(node))) {
		const void *relation = (const void *)node - in_relation[NODE].offset;

		found = is_valid_for(relation, leader);
		if (found)
			*tracer = task_of(relation, TRACER);
	}
	rcu_read_unlock();
	return found;
}

/* The thread of the job that this is, or NULL. */
static struct task_struct *find_task(struct kcr_job *job, const void *task)
{
	struct kcr_member *member;
	struct kcr_parked *parked;

	kcr_for_each_member(member, job) {
		if (member->leader == task)
			return member->leader;
		list_for_each_entry(parked, &member->threads, node)
			if (parked->task == task)
				return parked->task;
		cond_resched();
	}
	return NULL;
}

/*
 * Is it the caller, or what the caller descends from?  libcr and the ranks of MPI jobs let their
 * requester trace them, for this once.
 */
static bool is_requester(const void *tracer)
{
	const struct task_struct *task;
	bool found = false;

	rcu_read_lock();
	for (task = current; task->pid && !found; task = rcu_dereference(task->real_parent))
		found = READ_ONCE(task->group_leader) == tracer;
	rcu_read_unlock();
	return found;
}

static void tell_tracer(struct kcr_job *job, const struct kcr_member *member,
			struct kcr_settings *out)
{
	const void *tracer = NULL;
	struct task_struct *task;

	out->tracing = KCR_TRACER_NONE;
	out->tracer = 0;
	if (!find_tracer(member->leader, &tracer))
		return;
	task = tracer ? find_task(job, tracer) : NULL;
	if (!tracer) {
		out->tracing = KCR_TRACER_ANY;
	} else if (task) {
		/* Of whichever thread it is, all of its process may. */
		out->tracing = KCR_TRACER_ONE;
		out->tracer = task_tgid_vnr(task);
	} else if (!is_requester(tracer)) {
		out->tracing = KCR_TRACER_OTHER;
	}
}

/* ---- threads ------------------------------------------------------------------------ */

static u32 read_speculation(struct task_struct *task)
{
	u32 state = 0;

	if (task_spec_ssb_disable(task))
		state |= KCR_SETTING_STORE_OFF;
	if (task_spec_ssb_force_disable(task))
		state |= KCR_SETTING_STORE_FORCED;
	if (task_spec_ssb_noexec(task))
		state |= KCR_SETTING_STORE_NOEXEC;
	if (task_spec_ib_disable(task))
		state |= KCR_SETTING_BRANCH_OFF;
	if (task_spec_ib_force_disable(task))
		state |= KCR_SETTING_BRANCH_FORCED;
	if (kcr_flushes_cache(task))
		state |= KCR_SETTING_FLUSH;
	return state;
}

static struct kcr_setting read_thread(struct task_struct *task)
{
	return (struct kcr_setting){
		.tid = task_pid_vnr(task),
		.state = read_speculation(task) |
			 (kcr_cpuid_is_off(task) ? KCR_SETTING_NO_CPUID : 0),
		.timer_slack_ns = READ_ONCE(task->timer_slack_ns),
		.dispatch = kcr_task_dispatch(task),
	};
}

/* The list does not change while the job is parked and we hold job->lock. */
static int read_threads(struct kcr_member *member, struct kcr_settings *request)
{
	struct kcr_setting __user *to = u64_to_user_ptr(request->settings);
	struct kcr_parked *parked;
	u32 nr = 0;

	list_for_each_entry(parked, &member->threads, node) {
		struct kcr_setting setting = read_thread(parked->task);

		if (nr < request->count && copy_to_user(to + nr, &setting, sizeof(setting)))
			return -EFAULT;
		nr++;
		cond_resched();
	}
	if (nr > request->count) {
		request->count = nr;
		return -ENOSPC;
	}
	request->count = nr;
	return 0;
}

long kcr_ioc_settings(struct kcr_job *job, void *request)
{
	struct kcr_settings *settings = request;
	struct kcr_member *member = kcr_job_find(job, settings->pid);

	if (!member)
		return -ESRCH;
	tell_tracer(job, member, settings);
	settings->pad = 0;
	settings->state = kcr_mm_settings(member->mm) |
			  (kcr_has_amx(member->leader) ? KCR_SETTINGS_AMX : 0);
	return read_threads(member, settings);
}
