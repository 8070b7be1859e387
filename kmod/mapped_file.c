// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_MAPPED_FILE: a descriptor of a file that a process has mapped, or whether that is
 * the file of a descriptor.
 *
 * A mapping gives access to a part of a file, with one protection; a descriptor
 * gives access to all of it and can be reopened through /proc/self/fd for whatever
 * the inode's mode allows, even if no path leads there.  So /proc/PID/map_files can
 * be followed with CAP_CHECKPOINT_RESTORE only.  The same holds here; without
 * the capability callers get a file that they could have opened without us:
 * one that they own or can open by its path.  Other files (a library that was
 * replaced since it was mapped) they get read-only, which gives no more than
 * a debugger that enlarges the mapping, as long as reopening gives nothing
 * else.  Memory without a path (System V segments, shared anonymous memory) has a fixed
 * size for everybody who has it mapped, so it cannot be changed by a descriptor either.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "compat/mm.h"
#include "compat/path.h"
#include "compat/permission.h"
#include "ioctl.h"
#include "job.h"

/* The file behind a mapping, and how the process itself could use it. */
struct mapped {
	struct path path;	/* referenced */
	int mode;		/* O_RDWR: it could write to the file */
};

static int find_mapped(struct mm_struct *mm, unsigned long address, struct mapped *mapped)
{
	struct vm_area_struct *vma;
	int err;

	err = mmap_read_lock_killable(mm);
	if (err)
		return err;
	vma = find_vma(mm, address);
	if (vma && vma->vm_start <= address && vma->vm_file) {
		mapped->path = *kcr_file_path(vma->vm_file);
		path_get(&mapped->path);
		mapped->mode = (vma->vm_flags & VM_SHARED) && (vma->vm_flags & VM_MAYWRITE) ?
			O_RDWR : O_RDONLY;
	} else {
		err = -ENOENT;
	}
	mmap_read_unlock(mm);
	return err;
}

/* As /proc/PID/exe, which needs no more than read access to the process (ptrace). */
static int find_exe(struct mm_struct *mm, struct mapped *mapped)
{
	struct file *exe = kcr_mm_exe_file(mm);

	if (!exe)
		return -ENOENT;
	mapped->path = *kcr_file_path(exe);
	path_get(&mapped->path);
	mapped->mode = O_RDONLY;
	fput(exe);
	return 0;
}

static bool is_internal(const struct mapped *mapped)
{
	return mapped->path.mnt->mnt_flags & MNT_INTERNAL;
}

static bool is_own(const struct mapped *mapped)
{
	return uid_eq(current_fsuid(), d_inode(mapped->path.dentry)->i_uid);
}

/* Could the caller open this very file by its path, in the caller's own namespace? */
static bool is_reachable(const struct mapped *mapped)
{
	char *buffer = kmalloc(PATH_MAX, GFP_KERNEL_ACCOUNT);
	bool found = false;
	struct path path;
	char *name;

	if (!buffer)
		return false;
	name = d_path(&mapped->path, buffer, PATH_MAX);
	if (!IS_ERR(name) && !kern_path(name, LOOKUP_FOLLOW, &path)) {
		found = d_inode(path.dentry) == d_inode(mapped->path.dentry) &&
			!kcr_inode_permission(&path, mapped->mode == O_RDWR ?
							    MAY_READ | MAY_WRITE : MAY_READ);
		path_put(&path);
	}
	kfree(buffer);
	return found;
}

/* May the caller read this inode, but not write to it or gain by executing it? */
static bool is_harmless(const struct mapped *mapped)
{
	struct inode *inode = d_inode(mapped->path.dentry);

	return S_ISREG(inode->i_mode) && mapped->mode == O_RDONLY &&
	       !(inode->i_mode & (S_ISUID | S_ISGID)) &&
	       !kcr_inode_permission(&mapped->path, MAY_READ) &&
	       kcr_inode_permission(&mapped->path, MAY_WRITE);
}

static bool may_open(const struct mapped *mapped)
{
	if (checkpoint_restore_ns_capable(&init_user_ns))
		return true;
	if (is_internal(mapped))
		return is_own(mapped) || capable(CAP_IPC_OWNER);
	return is_own(mapped) || is_harmless(mapped) || is_reachable(mapped);
}

/* Of memory that is given up with its last mapping; NULL: it has none. */
static unsigned int *seals_of(struct inode *inode)
{
	if (inode->i_sb->s_magic == TMPFS_MAGIC && IS_ENABLED(CONFIG_SHMEM))
		return &SHMEM_I(inode)->seals;
#ifdef CONFIG_HUGETLBFS
	if (inode->i_sb->s_magic == HUGETLBFS_MAGIC)
		return &HUGETLBFS_I(inode)->seals;
#endif
	return NULL;
}

/* A memfd has a descriptor already, and its owner may have sealed it, or not. */
static bool is_memfd(const struct mapped *mapped)
{
	return !strncmp(mapped->path.dentry->d_name.name, "memfd:", 6);
}

static int keep_size(const struct mapped *mapped)
{
	struct inode *inode = d_inode(mapped->path.dentry);
	unsigned int *seals = seals_of(inode);

	/* One that is mapped to be read can be opened again, to be written. */
	if (!is_internal(mapped) || is_memfd(mapped))
		return 0;
	if (!seals)
		return -EACCES;
	/* A writer may hold it for as long as its program likes. */
	if (down_write_killable(&inode->i_rwsem))
		return -EINTR;
	*seals |= F_SEAL_SHRINK | F_SEAL_GROW;
	up_write(&inode->i_rwsem);
	return 0;
}

static long open_mapped(const struct mapped *mapped)
{
	struct file *file;
	int fd = keep_size(mapped);

	if (fd)
		return fd;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = dentry_open(&mapped->path, mapped->mode | O_LARGEFILE, current_cred());
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

static long member_file(struct kcr_job *job, const struct kcr_mapped_file *wanted)
{
	struct mm_struct *mm = kcr_job_mm(job, wanted->pid, false);
	bool exe = wanted->flags & KCR_FILE_EXE;
	struct mapped mapped;
	long ret;

	if (IS_ERR(mm))
		return PTR_ERR(mm);
	ret = exe ? find_exe(mm, &mapped) : find_mapped(mm, wanted->address, &mapped);
	mmput(mm);
	if (ret)
		return ret;
	ret = exe || may_open(&mapped) ? open_mapped(&mapped) : -EACCES;
	path_put(&mapped.path);
	return ret;
}

static long is_same_file(struct mm_struct *mm, unsigned long address, const struct file *file)
{
	const struct vm_area_struct *vma;
	long same;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = find_vma(mm, address);
	same = vma && vma->vm_start <= address && vma->vm_file == file;
	mmap_read_unlock(mm);
	return same;
}

static long compare(struct kcr_job *job, const struct kcr_mapped_file *wanted)
{
	struct mm_struct *mm = kcr_job_mm(job, wanted->pid, false);
	struct file *file;
	long ret = -EBADF;

	if (IS_ERR(mm))
		return PTR_ERR(mm);
	file = fget(wanted->fd);
	if (file) {
		ret = is_same_file(mm, wanted->address, file);
		fput(file);
	}
	mmput(mm);
	return ret;
}

/*
 * Of the caller itself, only segments just attached: opening needs no permission here.
 * Half-restored processes call this while the owner is in WAIT.
 */
static long own_file(const struct kcr_mapped_file *wanted)
{
	struct mapped mapped;
	long ret;

	if (wanted->flags)
		return -EACCES;
	ret = find_mapped(current->mm, wanted->address, &mapped);
	if (ret)
		return ret;
	if (mapped.mode == O_RDWR && is_internal(&mapped) && may_open(&mapped))
		ret = open_mapped(&mapped);
	else
		ret = -EACCES;
	path_put(&mapped.path);
	return ret;
}

long kcr_ioc_mapped_file(struct kcr_job *job, void *request)
{
	const struct kcr_mapped_file *wanted = request;
	long ret;

	if (!wanted->pid)
		return own_file(wanted);
	ret = kcr_job_lock(job);
	if (ret)
		return ret;
	if (!(wanted->flags & KCR_FILE_SAME))
		ret = member_file(job, wanted);
	else
		ret = wanted->flags & KCR_FILE_EXE ? -EINVAL : compare(job, wanted);
	mutex_unlock(&job->lock);
	return ret;
}
