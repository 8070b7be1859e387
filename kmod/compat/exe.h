/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mm->exe_file: who may execute a file, and whether an mm that holds it denies
 * writing to it.
 */
#ifndef KCR_COMPAT_EXE_H
#define KCR_COMPAT_EXE_H

#include <linux/fs.h>
#include <linux/version.h>

/* 6.14 and stable kernels (0357ef03c94e): files watched by pre-content events are not denied. */
#ifdef FMODE_FSNOTIFY_HSM
#define KCR_HAVE_EXE_FILE_DENY_WRITE 1
#else
#define KCR_HAVE_EXE_FILE_DENY_WRITE 0
#endif

/* 5.15 (fe69d560b5bd): exe_file itself denies writing; VM_DENYWRITE did before. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
#define KCR_HAVE_EXE_FILE_DENIES 1
#else
#define KCR_HAVE_EXE_FILE_DENIES 0
#endif

/* 5.12 (02f92b3868a1): file_permission() hides the changing arguments. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 12, 0)
#define KCR_HAVE_FILE_PERMISSION 1
#else
#define KCR_HAVE_FILE_PERMISSION 0
#endif

/* 6.11 to 6.12.1 (2a010c412853, taken back by 3b832035387f) deny nothing, and so undo nothing. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define KCR_EXE_FILE_MAY_DENY_NOT 1
#else
#define KCR_EXE_FILE_MAY_DENY_NOT 0
#endif

/* Is writing to it denied?  Asked of an executable in use, as a version hides what it has from later ones. */
static inline bool kcr_exe_is_denied(const struct file *exe)
{
	return !KCR_EXE_FILE_MAY_DENY_NOT || atomic_read(&file_inode(exe)->i_writecount) < 0;
}

static inline int kcr_exe_deny_write(struct file *exe)
{
#if KCR_HAVE_EXE_FILE_DENY_WRITE
	return exe_file_deny_write_access(exe);
#elif KCR_HAVE_EXE_FILE_DENIES
	return deny_write_access(exe);
#else
	return 0;
#endif
}

static inline void kcr_exe_allow_write(struct file *exe)
{
#if KCR_HAVE_EXE_FILE_DENY_WRITE
	exe_file_allow_write_access(exe);
#elif KCR_HAVE_EXE_FILE_DENIES
	allow_write_access(exe);
#endif
}

static inline int kcr_file_may_exec(struct file *file)
{
#if KCR_HAVE_FILE_PERMISSION
	return file_permission(file, MAY_EXEC);
#else
	return inode_permission(file_inode(file), MAY_EXEC);
#endif
}

#endif /* KCR_COMPAT_EXE_H */
