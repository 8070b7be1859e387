/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of Unix sockets: unix_socket.c, unix_queue.c, unix_rebuild.c. */
#ifndef KCR_RESOURCE_UNIX_SOCKET_H
#define KCR_RESOURCE_UNIX_SOCKET_H

#include <linux/sockios.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "resource/resource.h"

#ifndef SIOCUNIXFILE		/* from linux/un.h, which conflicts with sys/un.h */
#define SIOCUNIXFILE	SIOCPROTOPRIVATE
#endif

/* Saves what is unread; -EOPNOTSUPP if it contains file descriptors. */
int unix_queue_save(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u);
/* Sends it again from `fd`, which is connected to the socket. */
int unix_queue_fill(int fd, const Kcr__File *file);
/* Sends one message, to an address if `to` is given. */
int unix_queue_send(int fd, const Kcr__UnixMessage *m, const struct sockaddr_un *to,
		    socklen_t length, const Kcr__File *file);

/* Connects `fd` to the name of a listening socket of the tree: 0 or -errno, without a message. */
int unix_socket_connect(const struct rebuild *r, const Kcr__File *file, int fd,
			const ProtobufCBinaryData *name);
/* Ends the directions that the saved socket had ended. */
void unix_socket_shut(const Kcr__File *file, int fd);

int unix_socket_open(struct rebuild *r, const Kcr__File *file);
int unix_socket_complete(struct rebuild *r, const Kcr__File *file);
void unix_socket_finish(struct rebuild *r, const Kcr__File *file);

#endif /* KCR_RESOURCE_UNIX_SOCKET_H */
