/* SPDX-License-Identifier: GPL-2.0 */
/*
 * May the caller use an inode, as reached through a mount?
 */
#ifndef KCR_COMPAT_PERMISSION_H
#define KCR_COMPAT_PERMISSION_H

#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/path.h>
#include <linux/version.h>

/* 5.12 (47291baa8ddf): takes the mount's user namespace; 6.3 (4609e1f18e19): its idmap. */
static inline int kcr_inode_permission(const struct path *path, int mask)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	return inode_permission(mnt_idmap(path->mnt), d_inode(path->dentry), mask);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 12, 0)
	return inode_permission(mnt_user_ns(path->mnt), d_inode(path->dentry), mask);
#else
	return inode_permission(d_inode(path->dentry), mask);
#endif
}

#endif /* KCR_COMPAT_PERMISSION_H */
