/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The mount of an open file, and whom its owner was chosen by.  A user who has a file system
 * mounted (FUSE, a disk image or a stick by udisks) writes into it what user and mode the
 * kernel then shows.
 */
#ifndef KCR_PROC_MOUNT_H
#define KCR_PROC_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * May somebody else than root and the owner that it shows have made up the owner of the
 * open file (O_PATH will do)?  True: on
 *	- FUSE, unless mounted by root or by that owner;
 *	- a file system on a device that is mounted nosuid, unless it has its place in
 *	  /etc/fstab and no user may mount it there;
 *	- /proc, where a program's own text may be in a file of root;
 *	- one of these kinds that is out of sight, in another mount namespace.
 * What it is, is put into `what`, as "it is in …".
 */
bool mount_makes_up_owners(int fd, char *what, size_t size);

/* Is the open file on a mount of our own namespace, below our root folder? */
bool mount_is_visible(int fd);

/* A field of mountinfo, in place: \040 and the like become what they stand for. */
void mount_unescape(char *text);

#endif /* KCR_PROC_MOUNT_H */
