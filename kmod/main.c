// SPDX-License-Identifier: GPL-2.0
/*
 * The module and its device.  Each open of /dev/kcr makes a job (kmod/job.h),
 * each ioctl is one function of the file that its declaration names.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "fork.h"
#include "job.h"
#include "lookup.h"
#include "park.h"
#include "policy.h"
#include "request.h"

long kcr_ioc_info(struct kcr_job *job, void *request)
{
	struct kcr_info *info = request;

	info->abi = KCR_ABI_VERSION;
	info->features = kcr_have_clone() ? KCR_FEATURE_SNAPSHOT | KCR_FEATURE_CLONE : 0;
	info->xstate_size = kcr_xstate_size();
	return 0;
}

enum caller {
	OWNER,		/* the process that opened the job, under job->lock */
	ANYBODY,	/* half-made processes too, beside the owner: the command locks */
};

/*
 * The request that `run` gets is the module's copy, made once; what it leaves
 * there goes back to the caller of an ioctl with results.  See request.h.
 */
static const struct command {
	unsigned int number;
	u32 flags;		/* that a request may have */
	enum caller caller;
	long (*run)(struct kcr_job *job, void *request);
} commands[] = {
	{ KCR_IOC_INFO, 0, ANYBODY, kcr_ioc_info },
	{ KCR_IOC_ADD, 0, OWNER, kcr_ioc_add },
	{ KCR_IOC_PARK, 0, OWNER, kcr_ioc_park },
	{ KCR_IOC_LIST, 0, OWNER, kcr_ioc_list },
	{ KCR_IOC_THREADS, 0, OWNER, kcr_ioc_threads },
	{ KCR_IOC_SIGNALS, 0, OWNER, kcr_ioc_signals },
	{ KCR_IOC_SIGACTIONS, 0, OWNER, kcr_ioc_sigactions },
	{ KCR_IOC_TIMERS, 0, OWNER, kcr_ioc_timers },
	{ KCR_IOC_MM, 0, OWNER, kcr_ioc_mm },
	{ KCR_IOC_VMAS, 0, OWNER, kcr_ioc_vmas },
	{ KCR_IOC_MAPPED_FILE, KCR_FILE_EXE, ANYBODY, kcr_ioc_mapped_file },
	{ KCR_IOC_DESCRIPTOR, KCR_DESCRIPTOR_CLOEXEC, OWNER, kcr_ioc_descriptor },
	{ KCR_IOC_SCAN, KCR_SCAN_SNAPSHOT | KCR_SCAN_PRIVATE | KCR_SCAN_DIRTY | KCR_SCAN_ALL |
			KCR_SCAN_KEEP_ZERO, OWNER, kcr_ioc_scan },
	{ KCR_IOC_WRITE, KCR_PAGES_SNAPSHOT, OWNER, kcr_ioc_write },
	{ KCR_IOC_READ, KCR_PAGES_SNAPSHOT, OWNER, kcr_ioc_read },
	{ KCR_IOC_SNAPSHOT, 0, OWNER, kcr_ioc_snapshot },
	{ KCR_IOC_RELEASE, KCR_RELEASE_HOLD, OWNER, kcr_ioc_release },
	{ KCR_IOC_NOTIFY, 0, OWNER, kcr_ioc_notify },
	{ KCR_IOC_CANCEL, KCR_CANCEL_KILL, OWNER, kcr_ioc_cancel },
	{ KCR_IOC_FINISH, 0, OWNER, kcr_ioc_finish },
	{ KCR_IOC_CLIENT, KCR_CLIENT_RESTARTED, ANYBODY, kcr_ioc_client },
	{ KCR_IOC_CLONE, 0, ANYBODY, kcr_ioc_clone },
	{ KCR_IOC_ENTER, KCR_ENTER_STOPPED | KCR_ENTER_HELD | KCR_ENTER_LEADERLESS, ANYBODY,
	  kcr_ioc_enter },
	{ KCR_IOC_WAIT, 0, ANYBODY, kcr_ioc_wait },
	{ KCR_IOC_FILL, 0, OWNER, kcr_ioc_fill },
	{ KCR_IOC_STORE, 0, OWNER, kcr_ioc_store },
	{ KCR_IOC_RESUME, KCR_RESUME_HOLD, OWNER, kcr_ioc_resume },
};

long kcr_job_run_locked(struct kcr_job *job, long (*run)(struct kcr_job *job, void *request),
			void *request)
{
	long ret;

	/* Half-made processes have the descriptor too, and others could take it from them. */
	if (task_tgid(current) != job->owner)
		return -EPERM;
	if (mutex_lock_killable(&job->lock))
		return -EINTR;
	ret = READ_ONCE(job->dead) ? -ECANCELED : run(job, request);
	mutex_unlock(&job->lock);
	return ret;
}

static long run_command(struct kcr_job *job, const struct command *command, void __user *argp)
{
	void *request = kcr_request_get(command->number, command->flags, argp);
	long ret;

	if (IS_ERR(request))
		return PTR_ERR(request);
	if (command->caller == OWNER)
		ret = kcr_job_run_locked(job, command->run, request);
	else
		ret = command->run(job, request);
	return kcr_request_put(command->number, request, argp, ret);
}

static long kcr_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].number == number)
			return run_command(file->private_data, &commands[i], (void __user *)arg);
	return -ENOTTY;
}

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

/*
 * Half-made processes inherit the descriptor: only the owner's close counts.
 * A fork of the owner's that fails closes the child's table in the owner's name.
 */
static int kcr_flush(struct file *file, fl_owner_t id)
{
	struct kcr_job *job = file->private_data;

	if (current->tgid == job->owner_tgid && id == job->owner_files)
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
	.mode = 0600,		/* who else may open it is for the administrator to say */
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
		return ret;
	ret = misc_register(&kcr_device);
	if (ret)
		goto err_fork;
	return 0;

err_fork:
	kcr_fork_exit();
	return ret;
}

static void __exit kcr_exit(void)
{
	misc_deregister(&kcr_device);
	kcr_parked_cancel_all();
	kcr_job_wait_none();
	kcr_fork_exit();
	/* A work that dropped the last job may still be on its way out of our code. */
	synchronize_rcu_tasks();
}

module_init(kcr_init);
module_exit(kcr_exit);
MODULE_DESCRIPTION("Checkpoint and restart of running programs");
MODULE_LICENSE("GPL");
