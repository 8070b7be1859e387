/* SPDX-License-Identifier: GPL-2.0 */
/* Making TCP connections of this machine at a restart. */
#ifndef KCR_RESOURCE_INET_CONNECT_H
#define KCR_RESOURCE_INET_CONNECT_H

#include "resource/inet_socket.h"

/* A new socket with its options, or -errno. */
int inet_new(const Kcr__InetSocket *s);
/* One for an end that is not saved. */
Kcr__InetSocket inet_nobody(int family);

/*
 * A socket like `client` that is connected to `listener`; at the old addresses if these are
 * available and `old` says so.  -EADDRNOTAVAIL: that listens at an address that is not here;
 * -ENETUNREACH: this machine has no loopback; another -errno.
 */
int inet_connect(const Kcr__InetSocket *client, int listener, bool old);

/* A socket like `s` whose attempt to connect has been refused, which it has yet to tell; or -errno. */
int inet_connect_refused(const Kcr__InetSocket *s);

/* The listening socket of the tree at the server's address, else at its port; NULL: none. */
const Kcr__File *inet_find_listener(const struct rebuild *r, const Kcr__InetSocket *server);
/* How many connections wait to be accepted at the port of this one, which is open. */
uint32_t inet_count_waiting(const struct rebuild *r, const Kcr__File *listening);
/* Descriptors of a connection of these two; `listening`, if there, is open. */
int inet_connect_pair(const struct rebuild *r, const Kcr__InetSocket *client,
		      const Kcr__InetSocket *server, const Kcr__File *listening, int out[2]);
/* Likewise over loopback, at any ports. */
int inet_connect_anywhere(const Kcr__InetSocket *client, const Kcr__InetSocket *server,
			  int out[2]);

#endif /* KCR_RESOURCE_INET_CONNECT_H */
