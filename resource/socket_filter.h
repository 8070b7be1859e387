/* SPDX-License-Identifier: GPL-2.0 */
/* The filter of a socket: see socket_filter.c. */
#ifndef KCR_RESOURCE_SOCKET_FILTER_H
#define KCR_RESOURCE_SOCKET_FILTER_H

#include "resource/resource.h"

/* Adds the filter and its lock to the options of a socket; refuses an eBPF one. */
int socket_filter_save(struct file_table *t, const struct file_probe *probe,
		       Kcr__SocketOption ***list, size_t *count);
/* Is it one of these two, which must be set last? */
bool socket_filter_is(const Kcr__SocketOption *o);
/* Sets those of a list, for a packet socket. */
int socket_filter_set(const Kcr__File *file, int fd, Kcr__SocketOption *const *list, size_t count);
/* Sets them; nothing for other kinds of files.  All queues have been filled. */
int socket_filter_rebuild(struct rebuild *r, const Kcr__File *file);

#endif /* KCR_RESOURCE_SOCKET_FILTER_H */
