// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_DESCRIPTOR: a duplicate of a member's open file.  pidfd_getfd(2)
 * asks the group leader, whose table is gone once it has ended while other
 * threads run on; this asks any thread that still has one.  It can also tell
 * whether exec closes it, which nothing else does for certain.
 *
 * The caller has shown at ADD that it may trace the owner of the member's
 * address space.  A thread that has another one by now (exec) is not asked:
 * task_lock holds mm and files together.
 */
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "job.h"

struct wanted {
	unsigned int number;
	struct files_struct *files;
	struct file *file;
	bool cloexec;
};

/* Under the table's lock; the first one from `number` on is all there is to see. */
static int take(const void *arg, struct file *file, unsigned int number)
{
	struct wanted *wanted = (struct wanted *)arg;

	if (number == wanted->number) {
		wanted->file = get_file(file);
		wanted->cloexec = test_bit(number, files_fdtable(wanted->files)->close_on_exec);
	}
	return 1;
}

/* -EBADF: no such descriptor; -ESRCH: no thread has a table any more. */
static struct file *find_file(struct kcr_member *member, unsigned int number, bool *cloexec)
{
	struct wanted wanted = { .number = number };
	struct task_struct *task;
	bool found = false;

	rcu_read_lock();
	for_each_thread(member->leader, task) {
		task_lock(task);
		if (task->files && task->mm == member->mm) {
			found = true;
			wanted.files = task->files;
			iterate_fd(task->files, number, take, &wanted);
		}
		task_unlock(task);
		if (found)
			break;
	}
	rcu_read_unlock();
	*cloexec = wanted.cloexec;
	return wanted.file ?: ERR_PTR(found ? -EBADF : -ESRCH);
}

long kcr_ioc_descriptor(struct kcr_job *job, void __user *argp)
{
	struct kcr_descriptor request;
	struct kcr_member *member;
	struct file *file;
	bool cloexec;
	int ret;

	lockdep_assert_held(&job->lock);
	ret = kcr_request_get(&request, sizeof(request), KCR_DESCRIPTOR_CLOEXEC, argp);
	if (ret)
		return ret;
	if (request.fd < 0)
		return -EBADF;
	member = kcr_job_find(job, request.pid);
	if (!member)
		return -ESRCH;
	file = find_file(member, request.fd, &cloexec);
	if (IS_ERR(file))
		return PTR_ERR(file);
	if (request.flags & KCR_DESCRIPTOR_CLOEXEC) {
		fput(file);
		return cloexec;
	}
	ret = get_unused_fd_flags(O_CLOEXEC);
	if (ret < 0)
		fput(file);
	else
		fd_install(ret, file);
	return ret;
}
