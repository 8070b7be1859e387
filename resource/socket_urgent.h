/* SPDX-License-Identifier: GPL-2.0 */
/* Urgent data (MSG_OOB) that a connection brought. */
#ifndef KCR_RESOURCE_SOCKET_URGENT_H
#define KCR_RESOURCE_SOCKET_URGENT_H

#include "resource/resource.h"

/*
 * Refuses a connection with urgent data that would come back as ordinary data or keep others from
 * being saved: -EOPNOTSUPP in the dry run; later -EBUSY, reported.
 */
int socket_urgent_check(struct file_table *t, const struct file_probe *probe);

#endif /* KCR_RESOURCE_SOCKET_URGENT_H */
