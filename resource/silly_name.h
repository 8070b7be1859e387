/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Silly renames: where only an open by name keeps a file alive, on a server, the client renames
 * one that is open when its name is removed, and removes the new name when it is closed.
 */
#ifndef KCR_RESOURCE_SILLY_NAME_H
#define KCR_RESOURCE_SILLY_NAME_H

#include <stdbool.h>

/*
 * Is the last component of `path` such a name, on a file system of this type (statfs(2))?
 * NFS shows it in /proc; FUSE (libfuse) and SMB only show the old one there, as deleted.
 */
bool silly_name_is(const char *path, long type);

/*
 * Has the file, whose name in `folder` was just removed, no other than perhaps that of a silly
 * rename?  Not if somebody has given it another one meanwhile.
 */
bool silly_name_only(int fd, int folder);

#endif /* KCR_RESOURCE_SILLY_NAME_H */
