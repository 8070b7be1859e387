// SPDX-License-Identifier: GPL-2.0
/*
 * HOLD; see hold.h.
 *
 * Probes at the beginning of functions through which kill(2) and its like pass once they
 * have been permitted look whether the receiver descends from the owner of a hold.  If so,
 * they note the signal and have the function return 0: the sender sees that the signal is
 * sent, and nothing of it has begun in the receiver.  It is sent when its time is over, by a
 * work.  What the kernel sends by itself is let through, likewise what the owner and its
 * descendants send.
 *
 * Who descends from the owner is decided by the chain of parents at that moment, so nothing
 * has to be followed; an owner that is a subreaper loses nobody.
 *
 * The probes are armed by the first HOLD and stay: arming patches code of the kernel.  In
 * them nothing is allocated, and they run in any context: holds are found under RCU,
 * entries are there beforehand, what sleeps is left to an irq_work.
 *
 * Locks: arming (mutex) guards the probes' registration; holds_lock (spin) changes of the
 * table; hold->lock (raw) what is held.  hold->lock is taken under any lock of a sender and
 * takes none.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>

#include "hold.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "policy.h"

#define HOLDS_BITS	10
#define MAX_DEPTH	1024	/* generations between a receiver and the owner */

/* A signal to a process. */
struct held {
	struct list_head node;		/* hold->held or hold->unused */
	struct pid *pid;		/* of the process, referenced while held */
	int signal;
	enum pid_type type;
	kuid_t sender;			/* as it says itself */
	kuid_t uid, euid;		/* the sender's own */
	bool may_always;		/* it may send to whatever the process becomes */
	struct kernel_siginfo info;
};

struct kcr_holder {
	struct hlist_node node;		/* in `holds`, by the owner's signal_struct */
	struct task_struct *owner;	/* referenced, with its signal_struct */
	const struct cred *cred;	/* the owner's at the first HOLD */
	raw_spinlock_t lock;
	u64 signals;
	unsigned long limit;		/* in jiffies */
	unsigned long first;		/* when the oldest held signal was sent */
	struct list_head held;		/* in the order of sending */
	struct list_head unused;
	struct irq_work begin;		/* starts `deliver` for the first held signal */
	struct delayed_work deliver;
	struct held entries[KCR_HOLD_MAX];
};

static DEFINE_HASHTABLE(holds, HOLDS_BITS);
static DEFINE_SPINLOCK(holds_lock);
static atomic_t nr_holds = ATOMIC_INIT(0);

/* ---- who is meant ---------------------------------------------------------------- */

static struct kcr_holder *hold_of(const struct signal_struct *owner)
{
	struct kcr_holder *hold;

	hash_for_each_possible_rcu(holds, hold, node, (unsigned long)owner,
				   lockdep_is_held(&holds_lock))
		if (hold->owner->signal == owner)
			return hold;
	return NULL;
}

/* The hold of the nearest ancestor that has one, or NULL.  RCU read lock held. */
static struct kcr_holder *hold_above(const struct task_struct *task)
{
	struct kcr_holder *hold = NULL;
	int depth;

	for (depth = 0; !hold && depth < MAX_DEPTH && task->pid > 1; depth++) {
		task = rcu_dereference(task->real_parent);
		hold = hold_of(task->signal);
	}
	return hold;
}

static bool descends_from(const struct task_struct *task, const struct kcr_holder *hold)
{
	const struct signal_struct *owner = hold->owner->signal;
	int depth;

	for (depth = 0; depth < MAX_DEPTH && task->pid > 1 && task->signal != owner; depth++)
		task = rcu_dereference(task->real_parent);
	return task->signal == owner;
}

/* May the owner send it signals itself, whatever it does with its IDs? */
static bool may_hold(const struct kcr_holder *hold, const struct task_struct *task)
{
	const struct cred *cred = __task_cred(task);

	if (hold->cred->user_ns == &init_user_ns &&
	    cap_raised(hold->cred->cap_effective, CAP_KILL))
		return true;
	return uid_eq(cred->uid, hold->cred->euid) && uid_eq(cred->euid, hold->cred->euid) &&
	       uid_eq(cred->suid, hold->cred->euid);
}

/* By the user IDs of the sender alone. */
static bool ids_allow(kuid_t uid, kuid_t euid, const struct cred *to)
{
	return uid_eq(euid, to->suid) || uid_eq(euid, to->uid) || uid_eq(uid, to->suid) ||
	       uid_eq(uid, to->uid);
}

/* May the current process send a signal to any?  What it says of itself in that does not count. */
static bool may_send_to_all(void)
{
	return current_user_ns() == &init_user_ns &&
	       cap_raised(current_cred()->cap_effective, CAP_KILL);
}

/* ---- holding ---------------------------------------------------------------------- */

/* Of the same sender: each may have other rights when it is delivered. */
static struct held *find_held(const struct kcr_holder *hold, const struct pid *pid, int signal)
{
	struct held *one;

	list_for_each_entry(one, &hold->held, node)
		if (one->pid == pid && one->signal == signal && uid_eq(one->uid, current_uid()) &&
		    uid_eq(one->euid, current_euid()))
			return one;
	return NULL;
}

static void note(struct kcr_holder *hold, struct held *one, int signal,
		 const struct kernel_siginfo *info, struct pid *pid, enum pid_type type)
{
	one->pid = get_pid(pid);
	one->signal = signal;
	one->type = type;
	one->sender = make_kuid(current_user_ns(), info->si_uid);
	one->uid = current_uid();
	one->euid = current_euid();
	one->may_always = false;
	one->info = *info;
	if (list_empty(&hold->held)) {
		hold->first = jiffies;
		irq_work_queue(&hold->begin);
	}
	list_move_tail(&one->node, &hold->held);
}

/* True: it is held.  Like the kernel, one standard signal is as good as several. */
static bool take(struct kcr_holder *hold, int signal, const struct kernel_siginfo *info,
		 struct task_struct *task, enum pid_type type)
{
	struct pid *pid = task_tgid(task);
	unsigned long flags;
	struct held *one = NULL;

	raw_spin_lock_irqsave(&hold->lock, flags);
	if (pid && hold->signals & sigmask(signal)) {
		one = find_held(hold, pid, signal);
		if (!one) {
			one = list_first_entry_or_null(&hold->unused, struct held, node);
			if (one)
				note(hold, one, signal, info, pid, type);
		}
		if (one)
			one->may_always |= may_send_to_all();
	}
	raw_spin_unlock_irqrestore(&hold->lock, flags);
	return one;
}

static bool hold_back(int signal, const struct kernel_siginfo *info, struct task_struct *task,
		      enum pid_type type)
{
	struct kcr_holder *hold;
	bool held = false;

	if (!atomic_read(&nr_holds) || type == PIDTYPE_PID || current->flags & PF_KTHREAD ||
	    signal < 1 || signal > 64 || !(sigmask(signal) & KCR_HOLD_SIGNALS))
		return false;
	/* The two marks of signals that the kernel itself sends are no addresses. */
	if ((unsigned long)info < PAGE_SIZE ||
	    (info->si_code != SI_USER && info->si_code != SI_QUEUE))
		return false;
	rcu_read_lock();
	hold = hold_above(task);
	/* Who has another right, that of the root of a user namespace, is not known later. */
	if (hold && may_hold(hold, task) && !descends_from(current, hold) &&
	    (may_send_to_all() || ids_allow(current_uid(), current_euid(), __task_cred(task))))
		held = take(hold, signal, info, task, type);
	rcu_read_unlock();
	return held;
}

/* ---- the probes --------------------------------------------------------------------- */

static DEFINE_MUTEX(arming);
static enum { UNTRIED, ARMED, IMPOSSIBLE } state;
static struct task_struct *tester;	/* sends a signal that only the probes are to see */
static bool test_seen;

static bool is_test(int signal)
{
	if (signal != SIGURG || READ_ONCE(tester) != current)
		return false;
	WRITE_ONCE(test_seen, true);
	return true;
}

static int on_send(struct kprobe *probe, struct pt_regs *regs)
{
	int signal = (int)regs_get_kernel_argument(regs, 0);

	if (!is_test(signal) &&
	    !hold_back(signal, (const struct kernel_siginfo *)regs_get_kernel_argument(regs, 1),
		       (struct task_struct *)regs_get_kernel_argument(regs, 2),
		       (enum pid_type)regs_get_kernel_argument(regs, 3)))
		return 0;
	/*
	 * Jumps to a function that returns 0.  Not to one of ours: a thread that is preempted on
	 * its way would find the module unloaded.
	 */
	instruction_pointer_set(regs, (unsigned long)noop_fsync);
	return 1;
}
NOKPROBE_SYMBOL(on_send);

/* Its being there has ftrace treat the probe as what it is, one that changes where a call goes. */
static void after_send(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(after_send);

#define PROBE(function) \
	{ .symbol_name = (function), .pre_handler = on_send, .post_handler = after_send }

/*
 * All have the same arguments and result.  The compiler may have put one into its callers: then
 * another is called from there.
 */
static struct probe {
	struct kprobe kprobe;
	bool registered;
} probes[] = {
	{ .kprobe = PROBE("do_send_sig_info") },
	{ .kprobe = PROBE("send_signal_locked") },	/* 5.19 */
	{ .kprobe = PROBE("send_signal") },
};

static void remove_probes(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (probes[i].registered)
			unregister_kprobe(&probes[i].kprobe);
		probes[i].registered = false;
	}
}

/* Only by ftrace, which changes the way of a call as for a live patch. */
static void add_probes(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		struct kprobe *kprobe = &probes[i].kprobe;

		if (register_kprobe(kprobe))
			continue;
		probes[i].registered = true;
		if (!(kprobe->flags & KPROBE_FLAG_FTRACE)) {
			remove_probes();
			return;
		}
	}
}

/* Is a signal that is sent as by kill(2) seen?  Programs ignore this one if they get it. */
static bool is_seen(void)
{
	WRITE_ONCE(test_seen, false);
	WRITE_ONCE(tester, current);
	kill_pid(task_tgid(current), SIGURG, 1);
	WRITE_ONCE(tester, NULL);
	return READ_ONCE(test_seen);
}

/* Tried once: patching code is not to be had for the asking. */
static int arm(void)
{
	int ret;

	mutex_lock(&arming);
	if (state == UNTRIED) {
		add_probes();
		state = is_seen() ? ARMED : IMPOSSIBLE;
		if (state == IMPOSSIBLE)
			remove_probes();
	}
	ret = state == ARMED ? 0 : -EOPNOTSUPP;
	mutex_unlock(&arming);
	return ret;
}

bool kcr_hold_works(void)
{
	return IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) && kcr_have_send_sig_info();
}

/* ---- delivering ----------------------------------------------------------------------- */

/*
 * The owner could have kept it until the process is a program of another user: would the sender
 * be allowed to send it now, as by kill(2)?  RCU read lock held.
 */
static bool may_send(const struct held *one, const struct task_struct *task)
{
	return one->may_always || ids_allow(one->uid, one->euid, __task_cred(task));
}

/* The kernel takes the sender's user ID for one of the current user namespace. */
static void send(struct held *one)
{
	struct task_struct *task;

	one->info.si_uid = from_kuid_munged(&init_user_ns, one->sender);
	rcu_read_lock();
	task = pid_task(one->pid, PIDTYPE_TGID);
	if (task && may_send(one, task))
		kcr_send_sig_info(one->signal, &one->info, task, one->type);
	rcu_read_unlock();
}

/* By a kernel thread, whose signals are not held. */
static void deliver(struct work_struct *work)
{
	struct kcr_holder *hold = container_of(to_delayed_work(work), struct kcr_holder, deliver);
	struct held *one;
	LIST_HEAD(due);

	raw_spin_lock_irq(&hold->lock);
	list_splice_init(&hold->held, &due);
	raw_spin_unlock_irq(&hold->lock);
	list_for_each_entry(one, &due, node) {
		send(one);
		put_pid(one->pid);
		cond_resched();
	}
	raw_spin_lock_irq(&hold->lock);
	list_splice(&due, &hold->unused);
	raw_spin_unlock_irq(&hold->lock);
}

/* How long until what is held is to be delivered, in jiffies.  hold->lock held. */
static unsigned long time_left(const struct kcr_holder *hold)
{
	unsigned long last = hold->first + msecs_to_jiffies(KCR_HOLD_MAX_MS);
	unsigned long due = jiffies + hold->limit;

	if (time_after(due, last))
		due = last;
	return time_after(due, jiffies) ? due - jiffies : 0;
}

static void begin(struct irq_work *work)
{
	struct kcr_holder *hold = container_of(work, struct kcr_holder, begin);
	unsigned long flags, delay;

	raw_spin_lock_irqsave(&hold->lock, flags);
	delay = time_left(hold);
	raw_spin_unlock_irqrestore(&hold->lock, flags);
	schedule_delayed_work(&hold->deliver, delay);
}

/* ---- HOLD ------------------------------------------------------------------------------ */

static struct kcr_holder *new_hold(void)
{
	struct kcr_holder *hold = kvzalloc(sizeof(*hold), GFP_KERNEL_ACCOUNT);
	size_t i;

	if (!hold)
		return NULL;
	hold->owner = get_task_struct(current->group_leader);
	hold->cred = get_current_cred();
	raw_spin_lock_init(&hold->lock);
	INIT_LIST_HEAD(&hold->held);
	INIT_LIST_HEAD(&hold->unused);
	for (i = 0; i < KCR_HOLD_MAX; i++)
		list_add_tail(&hold->entries[i].node, &hold->unused);
	init_irq_work(&hold->begin, begin);
	INIT_DELAYED_WORK(&hold->deliver, deliver);
	return hold;
}

static void free_hold(struct kcr_holder *hold)
{
	put_cred(hold->cred);
	put_task_struct(hold->owner);
	kvfree(hold);
}

/* -EEXIST: another job of this process has one. */
static int publish(struct kcr_holder *hold)
{
	int ret = 0;

	spin_lock(&holds_lock);
	if (hold_of(hold->owner->signal))
		ret = -EEXIST;
	else
		hash_add_rcu(holds, &hold->node, (unsigned long)hold->owner->signal);
	spin_unlock(&holds_lock);
	if (!ret)
		atomic_inc(&nr_holds);
	return ret;
}

static int get_hold(struct kcr_job *job)
{
	struct kcr_holder *hold;
	int ret = kcr_policy_hold() ?: arm();

	if (ret)
		return ret;
	hold = new_hold();
	if (!hold)
		return -ENOMEM;
	ret = publish(hold);
	if (ret)
		free_hold(hold);
	else
		job->holder = hold;
	return ret;
}

/* What is held is delivered within the new limit, and if that is 0 now.  Returns what was held. */
static u64 set(struct kcr_holder *hold, u64 signals, u32 limit_ms)
{
	unsigned long delay;
	struct held *one;
	u64 held = 0;

	raw_spin_lock_irq(&hold->lock);
	hold->signals = signals;
	hold->limit = msecs_to_jiffies(limit_ms);
	list_for_each_entry(one, &hold->held, node)
		held |= sigmask(one->signal);
	delay = time_left(hold);
	raw_spin_unlock_irq(&hold->lock);
	if (held)
		mod_delayed_work(system_wq, &hold->deliver, delay);
	if (!limit_ms)
		flush_delayed_work(&hold->deliver);
	return held;
}

long kcr_ioc_hold(struct kcr_job *job, void *request)
{
	struct kcr_hold *req = request;
	int ret;

	if (req->signals & ~KCR_HOLD_SIGNALS || req->limit_ms > KCR_HOLD_MAX_MS)
		return -EINVAL;
	req->held = 0;
	if (!job->holder && !req->signals)
		return 0;
	ret = job->holder ? 0 : get_hold(job);
	if (ret)
		return ret;
	req->held = set(job->holder, req->signals, req->limit_ms);
	return 0;
}

void kcr_hold_end(struct kcr_job *job)
{
	struct kcr_holder *hold = job->holder;

	lockdep_assert_held(&job->lock);
	if (!hold)
		return;
	job->holder = NULL;
	spin_lock(&holds_lock);
	hash_del_rcu(&hold->node);
	spin_unlock(&holds_lock);
	atomic_dec(&nr_holds);
	synchronize_rcu();
	irq_work_sync(&hold->begin);
	set(hold, 0, 0);
	cancel_delayed_work_sync(&hold->deliver);
	free_hold(hold);
}

void kcr_hold_exit(void)
{
	remove_probes();
}
