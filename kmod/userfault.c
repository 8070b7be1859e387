// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_USERFAULT: what userfaultfd(2) and UFFDIO_API were called with, and which mappings of a
 * process send their faults there.  The kernel tells a program neither; where its structure has
 * the former is asked of BTF, once.
 *
 * The flags and the address space of a userfaultfd never change, its features once.
 * mmap_lock of the process is held while its VMAs are read.
 */
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "btf.h"
#include "compat/mm.h"
#include "ioctl.h"
#include "job.h"

enum { FLAGS, FEATURES, MM };

static struct kcr_btf_member in_context[] = {
	[FLAGS] = { "flags", NULL, sizeof(u32) },
	[FEATURES] = { "features", NULL, sizeof(u32) },
	[MM] = { "mm", "mm_struct", sizeof(struct mm_struct *) },
};

static struct kcr_btf_wanted wanted = {
	"userfaultfd_ctx", in_context, ARRAY_SIZE(in_context),
};

static struct kcr_btf_search places = { &wanted, 1 };

static u32 number(const void *context, int member)
{
	return READ_ONCE(*(const u32 *)kcr_btf_at(context, &in_context[member]));
}

/* It is compared only: nobody keeps it alive. */
static const struct mm_struct *mm_of(const void *context)
{
	return *(struct mm_struct *const *)kcr_btf_at(context, &in_context[MM]);
}

/* Only the kernel gives such names to files without a path. */
static struct file *get(int fd)
{
	struct file *file = fget(fd);
	const struct dentry *dentry = file ? file->f_path.dentry : NULL;

	if (!file || (dentry->d_sb->s_magic == ANON_INODE_FS_MAGIC &&
		      !strcmp((const char *)dentry->d_name.name, "[userfaultfd]")))
		return file;
	fput(file);
	return NULL;
}

/* Their number, also of those beyond the capacity; or -EINTR. */
static long collect(struct mm_struct *mm, const void *context, struct kcr_userfault_range *out,
		    u32 capacity)
{
	struct vm_area_struct *vma;
	u32 found = 0;
	int err = mmap_read_lock_killable(mm);

	if (err)
		return err;
	kcr_for_each_vma(mm, vma) {
		if (kcr_vma_userfault(vma) == context && found++ < capacity)
			out[found - 1] = (struct kcr_userfault_range) {
				.start = vma->vm_start, .end = vma->vm_end,
				.mode = kcr_vma_userfault_mode(vma),
			};
	}
	mmap_read_unlock(mm);
	return found;
}

static long list(struct mm_struct *mm, const void *context, struct kcr_userfault *req)
{
	u32 capacity = min_t(u32, req->count, KCR_FAULTING_MAX);
	struct kcr_userfault_range *ranges;
	long found;

	ranges = kvcalloc(capacity + 1, sizeof(*ranges), GFP_KERNEL_ACCOUNT);
	if (!ranges)
		return -ENOMEM;
	found = collect(mm, context, ranges, capacity);
	req->count = max(found, 0L);
	if (found > capacity)
		found = -ENOSPC;
	else if (found > 0 && copy_to_user(u64_to_user_ptr(req->ranges), ranges,
					   found * sizeof(*ranges)))
		found = -EFAULT;
	kvfree(ranges);
	return min(found, 0L);
}

static long examine(struct kcr_job *job, const void *context, struct kcr_userfault *req)
{
	struct mm_struct *mm;
	long ret;

	req->made_with = number(context, FLAGS);
	req->features = number(context, FEATURES);
	req->own = 0;
	if (!req->pid) {
		req->count = 0;
		return 0;
	}
	mm = kcr_job_mm(job, req->pid, false);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	req->own = mm_of(context) == mm;
	ret = list(mm, context, req);
	mmput(mm);
	return ret;
}

long kcr_ioc_userfault(struct kcr_job *job, void *request)
{
	struct kcr_userfault *req = request;
	struct file *file;
	long ret;

	if (!KCR_HAVE_UFFD_EVENTS)
		return -EOPNOTSUPP;
	ret = kcr_btf_search(&places);
	if (ret)
		return ret;
	file = get(req->fd);
	if (!file)
		return -EBADF;
	ret = examine(job, file->private_data, req);
	fput(file);
	return ret;
}
