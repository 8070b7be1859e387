// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_DESCRIPTOR: a duplicate of a member's open file.  pidfd_getfd(2)
 * asks the group leader, whose table is gone once it has ended while other
 * threads run on; this asks any thread that still has one.
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
	struct file *file;
};

/* Under the table's lock; the first one from `number` on is all there is to see. */
static int take(const void *arg, struct file *file, unsigned int number)
{
	struct wanted *wanted = (struct wanted *)arg;

	if (number == wanted->number)
		wanted->file = get_file(file);
	return 1;
}

/* -EBADF: no such descriptor; -ESRCH: no thread has a table any more. */
static struct file *find_file(struct kcr_member *member, unsigned int number)
{
	struct wanted wanted = { .number = number };
	struct task_struct *task;
	bool found = false;

	rcu_read_lock();
	for_each_thread(member->leader, task) {
		task_lock(task);
		if (task->files && task->mm == member->mm) {
			found = true;
			iterate_fd(task->files, number, take, &wanted);
		}
		task_unlock(task);
		if (found)
			break;
	}
	rcu_read_unlock();
	return wanted.file ?: ERR_PTR(found ? -EBADF : -ESRCH);
}

long kcr_ioc_descriptor(struct kcr_job *job, void __user *argp)
{
	struct kcr_descriptor request;
	struct kcr_member *member;
	struct file *file;
	int ret;

	lockdep_assert_held(&job->lock);
	ret = kcr_request_get(&request, sizeof(request), 0, argp);
	if (ret)
		return ret;
	if (request.fd < 0)
		return -EBADF;
	member = kcr_job_find(job, request.pid);
	if (!member)
		return -ESRCH;
	ret = get_unused_fd_flags(O_CLOEXEC);
	if (ret < 0)
		return ret;
	file = find_file(member, request.fd);
	if (IS_ERR(file)) {
		put_unused_fd(ret);
		return PTR_ERR(file);
	}
	fd_install(ret, file);
	return ret;
}
