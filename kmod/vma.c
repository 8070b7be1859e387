// SPDX-License-Identifier: GPL-2.0
/*
 * The mappings of a process (KCR_IOC_VMAS); the files behind them are
 * kmod/mapped_file.c's.  mmap_lock of the process is held while its VMAs are
 * read; nothing is copied to the caller under it.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/pkeys.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat/mm.h"
#include "compat/path.h"
#include "ioctl.h"
#include "job.h"

#define MAX_VMAS	(1u << 20)	/* limits what one call allocates */
#define MAX_STRINGS	(64u << 20)

struct vma_table {
	struct kcr_vma *vmas;
	char *strings;
	char *path;		/* PATH_MAX bytes to build a path in */
	u32 max_vmas;
	u32 max_strings;
	u32 nr_vmas;		/* also counts what did not fit */
	u64 len_strings;
	struct file *last_file;	/* neighbours often map the same file … */
	u32 last_path;		/* … whose path is here */
	bool origins;		/* KCR_VMAS_ORIGINS */
};

static const struct {
	unsigned long vm;
	u64 kcr;
} flag_map[] = {
	{ VM_READ,		KCR_VMA_READ },
	{ VM_WRITE,		KCR_VMA_WRITE },
	{ VM_EXEC,		KCR_VMA_EXEC },
	/* VM_SHARED is absent of a shared mapping of a file opened read-only. */
	{ VM_MAYSHARE,		KCR_VMA_SHARED },
	{ VM_MAYWRITE,		KCR_VMA_MAYWRITE },
	{ VM_GROWSDOWN,		KCR_VMA_GROWSDOWN },
	{ VM_NORESERVE,		KCR_VMA_NORESERVE },
	{ VM_LOCKED,		KCR_VMA_LOCKED },
	{ VM_LOCKONFAULT,	KCR_VMA_LOCKONFAULT },
	{ VM_DONTCOPY,		KCR_VMA_DONTFORK },
	{ VM_WIPEONFORK,	KCR_VMA_WIPEONFORK },
	{ VM_DONTDUMP,		KCR_VMA_DONTDUMP },
	{ VM_MERGEABLE,		KCR_VMA_MERGEABLE },
	{ VM_HUGEPAGE,		KCR_VMA_HUGEPAGE },
	{ VM_NOHUGEPAGE,	KCR_VMA_NOHUGEPAGE },
	{ VM_SEQ_READ,		KCR_VMA_SEQ_READ },
	{ VM_RAND_READ,		KCR_VMA_RAND_READ },
	{ VM_HUGETLB,		KCR_VMA_HUGETLB },
	{ VM_IO | VM_PFNMAP,	KCR_VMA_IO },
	{ KCR_VM_UFFD,		KCR_VMA_UFFD },
	{ KCR_VM_SEALED,	KCR_VMA_SEALED },
	{ KCR_VM_DROPPABLE,	KCR_VMA_DROPPABLE },
};

/* Files of the kernel's own tmpfs and hugetlbfs mounts are named by their kind. */
static u64 file_flags(struct file *file)
{
	const unsigned char *name = file->f_path.dentry->d_name.name;
	unsigned long magic = file_inode(file)->i_sb->s_magic;
	bool internal = file->f_path.mnt->mnt_flags & MNT_INTERNAL;
	u64 flags = 0;

	if (magic == TMPFS_MAGIC)
		flags |= KCR_VMA_SHMEM;
	if (internal && (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC) &&
	    !strncmp(name, "SYSV", 4))
		flags |= KCR_VMA_SYSV;
	return flags;
}

/* Mappings that the kernel makes by itself carry a name instead of a file. */
static u64 special_flags(struct vm_area_struct *vma)
{
	const char *name;

	if (vma->vm_start == (unsigned long)vma->vm_mm->context.vdso)
		return KCR_VMA_VDSO;
	if (!vma->vm_ops || !vma->vm_ops->name)
		return 0;
	name = vma->vm_ops->name(vma);
	if (!name)
		return 0;
	if (!strcmp(name, "[vdso]"))
		return KCR_VMA_VDSO;
	if (!strncmp(name, "[vvar", 5))
		return KCR_VMA_VVAR;
	return KCR_VMA_SPECIAL;
}

static u64 vma_flags_of(struct vm_area_struct *vma)
{
	u64 flags = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(flag_map); i++)
		if (vma->vm_flags & flag_map[i].vm)
			flags |= flag_map[i].kcr;
	if (vma->vm_file)
		flags |= file_flags(vma->vm_file);
	else
		flags |= special_flags(vma);
	return flags;
}

/* The offset of the file's path in the strings, as if they were large enough. */
static int add_path(struct vma_table *table, struct file *file, u32 *offset)
{
	char *path;
	size_t len;

	if (file == table->last_file) {
		*offset = table->last_path;
		return 0;
	}
	path = d_path(kcr_file_path(file), table->path, PATH_MAX);
	if (IS_ERR(path))
		return PTR_ERR(path);
	len = strlen(path) + 1;
	if (table->len_strings + len > MAX_STRINGS)
		return -E2BIG;
	if (table->len_strings + len <= table->max_strings)
		memcpy(table->strings + table->len_strings, path, len);
	*offset = table->len_strings;
	table->len_strings += len;
	table->last_file = file;
	table->last_path = *offset;
	return 0;
}

static int add_vma(struct vma_table *table, struct vm_area_struct *vma)
{
	struct kcr_vma out = {
		.start = vma->vm_start,
		.end = vma->vm_end,
		.flags = vma_flags_of(vma),
		.pkey = vma_pkey(vma),
		.page_size = PAGE_SIZE,
	};
	int err;

	if (vma->vm_file) {
		struct inode *inode = file_inode(vma->vm_file);

		out.offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
		out.ino = inode->i_ino;
		out.dev_major = MAJOR(inode->i_sb->s_dev);
		out.dev_minor = MINOR(inode->i_sb->s_dev);
		err = add_path(table, vma->vm_file, &out.path);
		if (err)
			return err;
	} else if (table->origins) {
		out.offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	}
	if (vma->vm_flags & VM_HUGETLB)
		out.page_size = vma_kernel_pagesize(vma);
	if (table->nr_vmas < table->max_vmas)
		table->vmas[table->nr_vmas] = out;
	table->nr_vmas++;
	return 0;
}

static int table_fill(struct vma_table *table, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	int err;

	err = mmap_read_lock_killable(mm);
	if (err)
		return err;
	kcr_for_each_vma(mm, vma) {
		err = add_vma(table, vma);
		if (err)
			break;
	}
	mmap_read_unlock(mm);
	return err;
}

static int table_alloc(struct vma_table *table)
{
	table->path = kmalloc(PATH_MAX, GFP_KERNEL_ACCOUNT);
	table->vmas = kvcalloc(table->max_vmas + 1, sizeof(*table->vmas),
			       GFP_KERNEL_ACCOUNT);
	table->strings = kvzalloc(table->max_strings + 1, GFP_KERNEL_ACCOUNT);
	return table->path && table->vmas && table->strings ? 0 : -ENOMEM;
}

static void table_free(struct vma_table *table)
{
	kvfree(table->strings);
	kvfree(table->vmas);
	kfree(table->path);
}

static int table_copy(const struct vma_table *table, struct kcr_vmas *req)
{
	req->count = table->nr_vmas;
	req->strings_len = table->len_strings;
	if (table->nr_vmas > table->max_vmas || table->len_strings > table->max_strings)
		return -ENOSPC;
	if (copy_to_user(u64_to_user_ptr(req->vmas), table->vmas,
			 table->nr_vmas * sizeof(*table->vmas)) ||
	    copy_to_user(u64_to_user_ptr(req->strings), table->strings,
			 table->len_strings))
		return -EFAULT;
	return 0;
}

long kcr_ioc_vmas(struct kcr_job *job, void *request)
{
	struct kcr_vmas *req = request;
	struct vma_table table = {
		.len_strings = 1, .origins = req->flags & KCR_VMAS_ORIGINS,
	};
	struct mm_struct *mm = kcr_job_mm(job, req->pid, false);
	int err;

	if (IS_ERR(mm))
		return PTR_ERR(mm);
	table.max_vmas = min3(req->count, (u32)mm->map_count + 64, MAX_VMAS);
	table.max_strings = min(req->strings_len, MAX_STRINGS);
	err = table_alloc(&table);
	if (!err)
		err = table_fill(&table, mm);
	mmput(mm);
	if (!err)
		err = table_copy(&table, req);
	table_free(&table);
	return err;
}
