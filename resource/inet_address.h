/* SPDX-License-Identifier: GPL-2.0 */
/* Addresses of internet sockets at a restart, which may be on a machine that has others. */
#ifndef KCR_RESOURCE_INET_ADDRESS_H
#define KCR_RESOURCE_INET_ADDRESS_H

#include "resource/inet_socket.h"

struct inet_place {
	union inet_address a;
	socklen_t length;		/* 0: none */
};

#define INET_PLACES	2

/* Of an image; its length, 0: none. */
socklen_t inet_address_get(const ProtobufCBinaryData *data, union inet_address *a);
in_port_t *inet_address_port(union inet_address *a);
/* Is it none in particular? */
bool inet_address_is_any(const union inet_address *a);
/* Is it one of IPv4, in whichever form? */
bool inet_address_is_v4(const union inet_address *a);

/* Has this machine the address (in the VRF that the socket is bound to)? */
bool inet_address_is_here(const struct inet_place *place, const Kcr__InetSocket *s);
/*
 * Where a socket of this machine like `client` reaches `listener`, the preferred one first;
 * their number.  None: the listener is bound to an address that is not here.
 */
size_t inet_address_reach(int listener, const Kcr__InetSocket *client,
			  struct inet_place place[INET_PLACES]);
/* Where a socket of `family` is to listen for `client` alone.  Port 0. */
void inet_address_loopback(int family, const Kcr__InetSocket *client, struct inet_place *place);

#endif /* KCR_RESOURCE_INET_ADDRESS_H */
