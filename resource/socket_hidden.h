/* SPDX-License-Identifier: GPL-2.0 */
/* State of a socket that getsockopt(2) does not tell, but the module does. */
#ifndef KCR_RESOURCE_SOCKET_HIDDEN_H
#define KCR_RESOURCE_SOCKET_HIDDEN_H

#include <linux/kcr.h>

#include "resource/resource.h"

/*
 * *out: all that the module tells of an internet or Unix socket; zeros if it does not know the
 * kind, or is too old, of which it warns.  0, or -errno, reported.
 */
int socket_hidden_get(struct file_table *t, const struct file_probe *probe, struct kcr_socket *out);
/* Refuses what cannot be saved: 0 or -EOPNOTSUPP. */
int socket_hidden_check(struct file_table *t, const struct kcr_socket *hidden);
/* Adds the options that can be set again to those that are saved. */
int socket_hidden_save(struct file_table *t, const struct file_probe *probe,
		       const struct kcr_socket *hidden, Kcr__InetSocket *s);

#endif /* KCR_RESOURCE_SOCKET_HIDDEN_H */
