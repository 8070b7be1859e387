// SPDX-License-Identifier: GPL-2.0
/*
 * The module and its device.  Each open of /dev/kcr creates a job (kmod/job.h),
 * which takes commands (kmod/ioctl.h).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "fork.h"
#include "hold.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "park.h"
#include "policy.h"
#include "track.h"

#ifdef CONFIG_PREEMPT_RT
#error "kcr takes spinlocks in tracepoints, which PREEMPT_RT does not allow"
#endif

static int kcr_open(struct inode *inode, struct file *file)
{
	struct kcr_job *job;
	int ret = kcr_policy_open();

	if (ret)
		return ret;
	job = kcr_job_new();
	if (IS_ERR(job))
		return PTR_ERR(job);
	file->private_data = job;
	return 0;
}

/* Does a thread of the process use this descriptor table? */
static bool uses_table(struct pid *process, fl_owner_t table)
{
	struct task_struct *leader, *task;
	bool uses = false;

	rcu_read_lock();
	leader = pid_task(process, PIDTYPE_TGID);
	if (leader) {
		for_each_thread(leader, task) {
			task_lock(task);
			uses = task->files == table;
			task_unlock(task);
			if (uses)
				break;
		}
	}
	rcu_read_unlock();
	return uses;
}

/*
 * Half-restored processes inherit the descriptor: only a close in a table of the
 * owner's counts, by whatever process shares it.  When a fork of the owner fails,
 * the child's table is closed in the owner's context: that table is none of them.
 */
static int kcr_flush(struct file *file, fl_owner_t id)
{
	struct kcr_job *job = file->private_data;

	if ((current->tgid == job->owner_tgid && current->flags & PF_EXITING) ||
	    uses_table(job->owner, id))
		kcr_job_end(job);
	return 0;
}

static int kcr_release(struct inode *inode, struct file *file)
{
	struct kcr_job *job = file->private_data;

	kcr_job_end(job);
	kcr_job_put(job);
	return 0;
}

static const struct file_operations kcr_fops = {
	.owner = THIS_MODULE,
	.open = kcr_open,
	.flush = kcr_flush,
	.release = kcr_release,
	.unlocked_ioctl = kcr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice kcr_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kcr",
	.fops = &kcr_fops,
	.mode = 0600,		/* the administrator may allow others */
};

static int __init kcr_init(void)
{
	int ret;

	ret = kcr_lookup_init();
	if (ret)
		return ret;
	ret = kcr_member_init();
	if (ret)
		return ret;
	ret = kcr_fork_init();
	if (ret)
		goto err_member;
	ret = misc_register(&kcr_device);
	if (ret)
		goto err_fork;
	return 0;

err_fork:
	kcr_fork_exit();
err_member:
	kcr_member_exit();
	return ret;
}

static void __exit kcr_exit(void)
{
	misc_deregister(&kcr_device);
	kcr_parked_cancel_all();
	kcr_job_wait_none();
	kcr_hold_exit();
	kcr_track_exit();
	kcr_fork_exit();
	kcr_member_exit();
	/* A work that dropped the last job, or a sender whose signal was held, may be in our code. */
	synchronize_rcu_tasks();
}

module_init(kcr_init);
module_exit(kcr_exit);
MODULE_DESCRIPTION("Checkpoint and restart of running programs");
MODULE_LICENSE("GPL");
