/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The path under which a program knows a mapped file.  On overlayfs (the root
 * of a container) a mapping holds the file underneath.
 */
#ifndef KCR_COMPAT_PATH_H
#define KCR_COMPAT_PATH_H

#include <linux/fs.h>
#include <linux/version.h>

/* 6.7 (08582d678fcf): f_path is the real path; before, the one that the user sees. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define KCR_HAVE_FILE_USER_PATH 1
#else
#define KCR_HAVE_FILE_USER_PATH 0
#endif

static inline const struct path *kcr_file_path(const struct file *file)
{
#if KCR_HAVE_FILE_USER_PATH
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

#endif /* KCR_COMPAT_PATH_H */
