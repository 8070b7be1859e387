/* SPDX-License-Identifier: GPL-2.0 */
/* What all kinds of sockets share: their family, their options. */
#ifndef KCR_RESOURCE_SOCKET_H
#define KCR_RESOURCE_SOCKET_H

#include <stddef.h>

#include "resource/resource.h"

/* An integer option of SOL_SOCKET, or -1. */
int socket_value(int fd, int name);
int socket_family(const struct file_probe *probe);

/* Saves the options that differ from those of a new socket of this type. */
int socket_options_save(struct file_table *t, const struct file_probe *probe, int family, int type,
			int protocol, Kcr__SocketOption ***list, size_t *count);
/* Adds one option to a list. */
int socket_option_add(Kcr__SocketOption ***list, size_t *count, int level, int name,
		      const void *value, size_t length);
/* An option that cannot be set, as one that needs a privilege, is skipped with a warning. */
void socket_options_set(int fd, Kcr__SocketOption *const *list, size_t count);
/*
 * Likewise of an accepted one, which has inherited from its listening socket what the program may
 * have switched off since.
 */
void socket_options_set_accepted(int fd, int family, int type, int protocol,
				 Kcr__SocketOption *const *list, size_t count);
/* Likewise of a socket that is connected to one of this machine, by loopback. */
void socket_options_set_joined(int fd, Kcr__SocketOption *const *list, size_t count);
/* Those that would be in the way before all sockets are connected and filled. */
void socket_options_finish(int fd, Kcr__SocketOption *const *list, size_t count);
/* Would those, or a filter, keep out what comes from this machine later? */
bool socket_options_drop(Kcr__SocketOption *const *list, size_t count);

/* Sets a buffer of `size` bytes, which the kernel doubles; beyond the limit with privilege. */
void socket_force_buffer(int fd, int name, int size);
/* Likewise, but false, and nothing is done, if the limit would make it smaller than it is. */
bool socket_grow_buffer(int fd, int name, int size);

#endif /* KCR_RESOURCE_SOCKET_H */
