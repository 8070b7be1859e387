/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KCR_RESOURCE_ROOT_FOLDER_H
#define KCR_RESOURCE_ROOT_FOLDER_H

#include <sys/types.h>

/*
 * Has this thread another root folder than the caller (chroot(2))?  1 or 0, or -errno
 * without a message.
 */
int root_folder_differs(pid_t thread);

#endif /* KCR_RESOURCE_ROOT_FOLDER_H */
