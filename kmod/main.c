// SPDX-License-Identifier: GPL-2.0
/*
 * The module and its device.  Each open of /dev/kcr makes a job (kmod/job.h),
 * each ioctl is one function of the file that its declaration names.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "fork.h"
#include "job.h"
#include "lookup.h"
#include "park.h"

int kcr_request_get(void *request, size_t size, u32 known_flags, const void __user *argp)
{
	const u32 *head = request;

	if (copy_from_user(request, argp, size))
		return -EFAULT;
	if (head[0] != size || head[1] & ~known_flags)
		return -EINVAL;
	return 0;
}

long kcr_ioc_info(struct kcr_job *job, void __user *argp)
{
	struct kcr_info info;
	int ret = kcr_request_get(&info, sizeof(info), 0, argp);

	if (ret)
		return ret;
	info.abi = KCR_ABI_VERSION;
	info.features = kcr_have_clone() ? KCR_FEATURE_SNAPSHOT | KCR_FEATURE_CLONE : 0;
	info.xstate_size = kcr_xstate_size();
	return copy_to_user(argp, &info, sizeof(info)) ? -EFAULT : 0;
}

/* Half-made processes ask for files of their own while the owner is in WAIT. */
static long mapped_file(struct kcr_job *job, void __user *argp)
{
	struct kcr_mapped_file request;
	long ret = kcr_request_get(&request, sizeof(request), KCR_FILE_EXE, argp);

	if (ret)
		return ret;
	if (!request.pid)
		return kcr_ioc_mapped_file(job, argp);
	if (task_tgid(current) != job->owner)
		return -EPERM;
	if (mutex_lock_killable(&job->lock))
		return -EINTR;
	ret = READ_ONCE(job->dead) ? -ECANCELED : kcr_ioc_mapped_file(job, argp);
	mutex_unlock(&job->lock);
	return ret;
}

static long write_pages(struct kcr_job *job, void __user *argp)
{
	return kcr_ioc_pages(job, KCR_IOC_WRITE, argp);
}

static long read_pages(struct kcr_job *job, void __user *argp)
{
	return kcr_ioc_pages(job, KCR_IOC_READ, argp);
}

static long fill_pages(struct kcr_job *job, void __user *argp)
{
	return kcr_ioc_pages(job, KCR_IOC_FILL, argp);
}

static long store_pages(struct kcr_job *job, void __user *argp)
{
	return kcr_ioc_pages(job, KCR_IOC_STORE, argp);
}

struct command {
	unsigned int number;
	bool unlocked;		/* also called by half-made processes, beside the owner */
	long (*run)(struct kcr_job *job, void __user *argp);
};

static const struct command commands[] = {
	{ KCR_IOC_INFO, true, kcr_ioc_info },
	{ KCR_IOC_ADD, false, kcr_ioc_add },
	{ KCR_IOC_PARK, false, kcr_ioc_park },
	{ KCR_IOC_LIST, false, kcr_ioc_list },
	{ KCR_IOC_THREADS, false, kcr_ioc_threads },
	{ KCR_IOC_SIGNALS, false, kcr_ioc_signals },
	{ KCR_IOC_SIGACTIONS, false, kcr_ioc_sigactions },
	{ KCR_IOC_TIMERS, false, kcr_ioc_timers },
	{ KCR_IOC_MM, false, kcr_ioc_mm },
	{ KCR_IOC_VMAS, false, kcr_ioc_vmas },
	{ KCR_IOC_MAPPED_FILE, true, mapped_file },
	{ KCR_IOC_DESCRIPTOR, false, kcr_ioc_descriptor },
	{ KCR_IOC_SCAN, false, kcr_ioc_scan },
	{ KCR_IOC_WRITE, false, write_pages },
	{ KCR_IOC_READ, false, read_pages },
	{ KCR_IOC_SNAPSHOT, false, kcr_ioc_snapshot },
	{ KCR_IOC_RELEASE, false, kcr_ioc_release },
	{ KCR_IOC_NOTIFY, false, kcr_ioc_notify },
	{ KCR_IOC_CANCEL, false, kcr_ioc_cancel },
	{ KCR_IOC_FINISH, false, kcr_ioc_finish },
	{ KCR_IOC_CLIENT, true, kcr_ioc_client },
	{ KCR_IOC_CLONE, true, kcr_ioc_clone },
	{ KCR_IOC_ENTER, true, kcr_ioc_enter },
	{ KCR_IOC_WAIT, true, kcr_ioc_wait },
	{ KCR_IOC_FILL, false, fill_pages },
	{ KCR_IOC_STORE, false, store_pages },
	{ KCR_IOC_RESUME, false, kcr_ioc_resume },
};

static long run_locked(struct kcr_job *job, const struct command *command, void __user *argp)
{
	long ret;

	/* Half-made processes have the descriptor too, and others could take it from them. */
	if (task_tgid(current) != job->owner)
		return -EPERM;
	if (mutex_lock_killable(&job->lock))
		return -EINTR;
	ret = READ_ONCE(job->dead) ? -ECANCELED : command->run(job, argp);
	mutex_unlock(&job->lock);
	return ret;
}

static long kcr_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	struct kcr_job *job = file->private_data;
	void __user *argp = (void __user *)arg;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].number != number)
			continue;
		return commands[i].unlocked ? commands[i].run(job, argp)
					    : run_locked(job, &commands[i], argp);
	}
	return -ENOTTY;
}

static int kcr_open(struct inode *inode, struct file *file)
{
	struct kcr_job *job = kcr_job_new();

	if (!job)
		return -ENOMEM;
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
	.mode = 0666,		/* what a caller may do is decided per process */
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
