/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets that cannot be saved, by name. */
#ifndef KCR_RESOURCE_SOCKET_NAMES_H
#define KCR_RESOURCE_SOCKET_NAMES_H

#include "resource/resource.h"

/* For save(): refuses a socket by its family; returns -EOPNOTSUPP. */
int socket_refuse_family(struct file_table *t, int family);
/* Likewise one of AF_INET or AF_INET6 that is neither TCP nor UDP. */
int socket_refuse_protocol(struct file_table *t, int type, int protocol);

#endif /* KCR_RESOURCE_SOCKET_NAMES_H */
