/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reading and writing files from kernel memory across kernel versions: the
 * names of an iterator's direction and who protects against freezing of the
 * file system.  Used by pages.c only.
 */
#ifndef KCR_COMPAT_FILEIO_H
#define KCR_COMPAT_FILEIO_H

#include <linux/fs.h>
#include <linux/uio.h>
#include <linux/version.h>

/* 6.8: vfs_iter_write() calls file_start_write() itself (6d5b9efbf14d). */
#define KCR_HAVE_ITER_START_WRITE (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0))

#ifdef ITER_SOURCE		/* 6.1 (de4eda9de2d9) */
#define KCR_ITER_SOURCE	ITER_SOURCE
#define KCR_ITER_DEST	ITER_DEST
#else
#define KCR_ITER_SOURCE	WRITE
#define KCR_ITER_DEST	READ
#endif

static inline ssize_t kcr_file_write(struct file *file, struct iov_iter *iter,
				     loff_t *pos)
{
#if KCR_HAVE_ITER_START_WRITE
	return vfs_iter_write(file, iter, pos, 0);
#else
	ssize_t n;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	file_start_write(file);
	n = vfs_iter_write(file, iter, pos, 0);
	file_end_write(file);
	return n;
#endif
}

#endif /* KCR_COMPAT_FILEIO_H */
