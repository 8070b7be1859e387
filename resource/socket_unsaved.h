/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of a socket of a kind that is saved which no restart brings back.  Each is for save(),
 * and returns 0 or -EOPNOTSUPP.
 */
#ifndef KCR_RESOURCE_SOCKET_UNSAVED_H
#define KCR_RESOURCE_SOCKET_UNSAVED_H

#include "resource/resource.h"

/* It belongs to another network namespace than its process. */
int socket_namespace_check(struct file_table *t, const struct file_probe *probe);
/* It counts what it sends, and goes on sending after a restart. */
int socket_count_check(struct file_table *t, const struct file_probe *probe);
/* A TCP or UDP socket in any state. */
int inet_unsaved_check(struct file_table *t, const struct file_probe *probe,
		       const Kcr__InetSocket *s);
/* A UDP socket keeps data back. */
int datagrams_kept_back_check(struct file_table *t, const struct file_probe *probe);

#endif /* KCR_RESOURCE_SOCKET_UNSAVED_H */
