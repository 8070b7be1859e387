// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_DESCRIPTOR: a duplicate of a member's open file.  pidfd_getfd(2)
 * uses the group leader, which has no table any more once it has ended while other
 * threads run on; this uses any thread that still has one.  It can also report
 * the close-on-exec flag, for which there is no other reliable way.
 *
 * The member need not be parked, so each call checks whether the caller may trace
 * it as it is now, and with security modules whether the caller may have the file.
 * A thread that has another address space by now (exec) is not used: task_lock
 * keeps mm and files together.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "policy.h"

struct wanted {
	unsigned int number;
	struct files_struct *files;
	struct file *file;
	bool cloexec;
};

/* Under the table's lock; only the first file from `number` on is looked at. */
static int take(const void *arg, struct file *file, unsigned int number)
{
	struct wanted *wanted = (struct wanted *)arg;

	if (number == wanted->number) {
		wanted->file = get_file(file);
		wanted->cloexec = test_bit(number, files_fdtable(wanted->files)->close_on_exec);
	}
	return 1;
}

static bool has_files(const struct task_struct *task, const struct kcr_member *member)
{
	return task->files && task->mm == member->mm;
}

/* A thread of the member that has a table, referenced, or NULL. */
static struct task_struct *find_thread(struct kcr_member *member)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_thread(member->leader, task) {
		task_lock(task);
		if (has_files(task, member))
			found = task;
		task_unlock(task);
		if (found) {
			get_task_struct(found);
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* -EBADF: no such file descriptor; -ESRCH: the thread has ended or called exec. */
static int take_from(struct task_struct *task, struct kcr_member *member, struct wanted *wanted)
{
	int ret = -ESRCH;

	task_lock(task);
	if (has_files(task, member)) {
		wanted->files = task->files;
		iterate_fd(task->files, wanted->number, take, wanted);
		ret = wanted->file ? 0 : -EBADF;
	}
	task_unlock(task);
	return ret;
}

static int find_file(struct kcr_member *member, struct wanted *wanted)
{
	struct task_struct *task = find_thread(member);
	int ret;

	if (!task)
		return -ESRCH;
	ret = kcr_policy_trace(task, member->flags & KCR_PROCESS_FORKED);
	if (!ret)
		ret = take_from(task, member, wanted);
	put_task_struct(task);
	return ret;
}

static long install(struct file *file)
{
	int fd, ret = kcr_security_file_receive(file);

	if (ret)
		return ret;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd >= 0)
		fd_install(fd, get_file(file));
	return fd;
}

long kcr_ioc_descriptor(struct kcr_job *job, void *request)
{
	const struct kcr_descriptor *descriptor = request;
	struct wanted wanted = { .number = descriptor->fd };
	struct kcr_member *member;
	long ret;

	if (descriptor->fd < 0)
		return -EBADF;
	member = kcr_job_find(job, descriptor->pid);
	if (!member)
		return -ESRCH;
	ret = find_file(member, &wanted);
	if (ret)
		return ret;
	ret = descriptor->flags & KCR_DESCRIPTOR_CLOEXEC ? wanted.cloexec : install(wanted.file);
	fput(wanted.file);
	return ret;
}
