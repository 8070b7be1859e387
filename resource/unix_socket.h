/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of Unix sockets: unix_socket.c, unix_queue.c, unix_name.c, unix_peer.c, unix_rebuild.c. */
#ifndef KCR_RESOURCE_UNIX_SOCKET_H
#define KCR_RESOURCE_UNIX_SOCKET_H

#include <linux/sockios.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "resource/resource.h"

#ifndef SIOCUNIXFILE		/* from linux/un.h, which conflicts with sys/un.h */
#define SIOCUNIXFILE	SIOCPROTOPRIVATE
#endif

/* Registers descriptors in flight to this socket; before any file is saved. */
int unix_queue_collect(struct file_table *t, const struct file_probe *probe);
/* Saves what is unread. */
int unix_queue_save(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u);
/* Are there descriptors in it?  They are sent once all files are complete. */
bool unix_queue_has_rights(const Kcr__UnixSocket *u);
/* Sends it again from `fd`, which is connected to the socket. */
int unix_queue_fill(const struct rebuild *r, int fd, const Kcr__File *file);
/* Sends one message, to an address if `to` is given. */
int unix_queue_send(const struct rebuild *r, int fd, const Kcr__UnixMessage *m, const struct sockaddr_un *to,
		    socklen_t length, const Kcr__File *file);

/* ---- names (unix_name.c) ---- */

/* -errno, reported. */
int unix_name_bind(struct rebuild *r, const Kcr__File *file, int fd);
/*
 * Gives `fd` a name that no other has, and removes its node: datagrams that it sends tell the
 * name all the same.  A relative path counts from the working folder.  0 or -errno, without
 * a message.
 */
int unix_name_borrow(const ProtobufCBinaryData *name, int fd);
/*
 * The address by which a socket of the tree is reached now.  A relative one counts from the
 * program's working folder: the result is for unix_name_leave().
 */
int unix_name_enter(const struct rebuild *r, const Kcr__File *file, struct sockaddr_un *a,
		    socklen_t *length);
void unix_name_leave(int here);
/* Connects `fd` to a socket of the tree: 0 or -errno, without a message. */
int unix_name_connect(const struct rebuild *r, const Kcr__File *to, int fd);
/* Likewise to the peer's name that `file` was saved with. */
int unix_name_connect_outside(const struct rebuild *r, const Kcr__File *file, int fd);

/* ---- who made them (unix_peer.c) ---- */

typedef int (*unix_step)(const struct rebuild *r, void *arg);

int unix_peer_save(const struct file_probe *probe, Kcr__UnixSocket *u);
/*
 * A step that the kernel notes the caller of, as the saved peer `who` (NULL: as
 * ourselves), or, if that cannot be, as ourselves: what the step returns.  It shares our
 * descriptors, but not our memory.  *as: who made it.
 */
int unix_peer_act(const struct rebuild *r, const Kcr__PeerCredentials *who, unix_step step,
		  void *arg, pid_t *as);
/* Says so if a complete socket tells another peer than it did. */
void unix_peer_compare(const struct rebuild *r, const Kcr__File *file);

/* Ends the directions that the saved socket had ended. */
void unix_socket_shut(const Kcr__File *file, int fd);

int unix_socket_open(struct rebuild *r, const Kcr__File *file);
int unix_socket_complete(struct rebuild *r, const Kcr__File *file);
int unix_socket_deliver(struct rebuild *r, const Kcr__File *file);
int unix_socket_conclude(struct rebuild *r, const Kcr__File *file);

#endif /* KCR_RESOURCE_UNIX_SOCKET_H */
