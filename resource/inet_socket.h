/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of internet sockets: inet_socket.c, inet_bind.c, inet_diag.c, tcp_queue.c,
 * tcp_waiting.c; for a restart inet_rebuild.c, inet_connect.c, inet_hung_up.c, inet_waiting.c,
 * inet_address.c.
 */
#ifndef KCR_RESOURCE_INET_SOCKET_H
#define KCR_RESOURCE_INET_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "resource/resource.h"

union inet_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* An end of a connection in one form for both families: address and port as in IPv6. */
#define INET_END	18

/*
 * By this SO_MAX_PACING_RATE, which no link has, a checkpoint knows the end of a connection that
 * sends, after a restart, what its lost peer had sent.
 */
#define INET_HELPER_RATE	0x6b63722d68656c70u

/* False: it has none. */
bool inet_end_get(int fd, bool remote, uint8_t end[INET_END]);
/* Address: 4 or 16 bytes; port in network byte order. */
void inet_end_make(uint8_t end[INET_END], int family, const void *address, in_port_t port);
/* The connected TCP socket of the tree with these ends; 0: none.  -ENOMEM, reported. */
int inet_end_find(struct file_table *t, const uint8_t local[INET_END],
		  const uint8_t remote[INET_END], const struct file_probe *except,
		  uint32_t *id);

/* Saves what `peer`, in the tree too, has yet to read from this socket: into send_queue. */
int tcp_stream_save(struct file_table *t, const struct file_probe *probe,
		    const struct file_probe *peer, Kcr__InetSocket *s);
/* Was this closed socket connected (and not dissolved by the program)? */
bool tcp_was_connected(int fd);
/* Has it sent anything, since connect(2) to AF_UNSPEC if the kernel is newer than 5.6 or so? */
bool tcp_has_sent(int fd);
/* Saves what is unread here. */
int tcp_receive_queue_save(const struct file_probe *probe, Kcr__InetSocket *s);

/*
 * Could it be bound now, if it is a TCP socket that is not connected?  0 or -errno, and
 * *port in the byte order of this machine.  It is closed again.
 */
int inet_socket_try(const Kcr__InetSocket *s, unsigned int *port);
/* Notes what a bound, unconnected socket needs to be bound again. */
void inet_bind_save(const struct file_probe *probe, Kcr__InetSocket *s);
/* The port that no other socket can have meanwhile; 0: none. */
unsigned int inet_bind_alone(const Kcr__InetSocket *s);
/* Before a socket is bound, and when all are. */
void inet_bind_begin(const struct rebuild *r, const Kcr__File *file, int fd);
void inet_bind_end(const struct rebuild *r, const Kcr__File *file);
/* Binds it though lingering connections have the port.  -errno. */
int inet_bind_address(int fd, const union inet_address *a, socklen_t length);
/* To the device that this one had: both ends of a connection in a VRF belong to it. */
void inet_bind_device(int fd, const Kcr__InetSocket *s);

int inet_socket_check(struct rebuild *r, const Kcr__File *file);
int inet_socket_open(struct rebuild *r, const Kcr__File *file);
/* One whose peer is lost. */
int inet_open_hung_up(struct rebuild *r, const Kcr__File *file);
/* Ends a connection without data as its program had. */
void inet_end_again(int fd, const Kcr__InetSocket *s);
/* Reports `what` has failed, and why; returns err. */
int inet_connect_error(const Kcr__File *file, int err, const char *what);
int inet_socket_complete(struct rebuild *r, const Kcr__File *file);
int inet_socket_deliver(struct rebuild *r, const Kcr__File *file);
void inet_socket_finish(struct rebuild *r, const Kcr__File *file);

#endif /* KCR_RESOURCE_INET_SOCKET_H */
