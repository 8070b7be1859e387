// SPDX-License-Identifier: GPL-2.0
/*
 * Which addresses a restart may connect to: only those of this machine.  The old ones may be
 * those of another by now, whose programs are not to be called, or whose silence would be
 * waited for.  A machine or container without IPv6 has sockets of AF_INET6 all the same,
 * which reach one another by IPv4.
 */
#include "resource/inet_address.h"

#include <string.h>
#include <unistd.h>

#include "resource/socket.h"

static const struct in6_addr any4 = { { { [10] = 0xff, [11] = 0xff } } };
static const struct in6_addr loopback4 = { { { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } } };

socklen_t inet_address_get(const ProtobufCBinaryData *data, union inet_address *a)
{
	memset(a, 0, sizeof(*a));
	if (data->len > sizeof(*a) || data->len < sizeof(a->v4))
		return 0;
	memcpy(a, data->data, data->len);
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : data->len;
}

in_port_t *inet_address_port(union inet_address *a)
{
	return a->any.sa_family == AF_INET ? &a->v4.sin_port : &a->v6.sin6_port;
}

bool inet_address_is_any(const union inet_address *a)
{
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

bool inet_address_is_v4(const union inet_address *a)
{
	return a->any.sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr);
}

/* In the form of AF_INET6. */
static struct sockaddr_in6 widen(const union inet_address *a)
{
	struct sockaddr_in6 wide = { .sin6_family = AF_INET6, .sin6_port = a->v4.sin_port,
				     .sin6_addr = any4 };

	if (a->any.sa_family != AF_INET)
		return a->v6;
	memcpy(&wide.sin6_addr.s6_addr[12], &a->v4.sin_addr, 4);
	return wide;
}

/* In the form of `family`; without length if it has none there. */
static struct inet_place narrow(int family, const struct sockaddr_in6 *wide)
{
	struct inet_place place = {};

	if (family == AF_INET6) {
		place.a.v6 = *wide;
		place.length = sizeof(place.a.v6);
	} else if (IN6_IS_ADDR_V4MAPPED(&wide->sin6_addr)) {
		place.a.v4.sin_family = AF_INET;
		place.a.v4.sin_port = wide->sin6_port;
		memcpy(&place.a.v4.sin_addr, &wide->sin6_addr.s6_addr[12], 4);
		place.length = sizeof(place.a.v4);
	}
	return place;
}

/* What may be bound here without being here (ip_nonlocal_bind) cannot send to itself. */
bool inet_address_is_here(const struct inet_place *place, const Kcr__InetSocket *s)
{
	int fd = socket(place->a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP), off = 0;
	struct inet_place from = *place;
	bool here;

	if (fd < 0)
		return false;
	inet_bind_device(fd, s);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	*inet_address_port(&from.a) = 0;
	here = !bind(fd, &from.a.any, from.length) && !connect(fd, &place->a.any, place->length);
	close(fd);
	return here;
}

/* Does the client of a connection, or the other end of it, have an IPv4 address? */
static bool uses_v4(const Kcr__InetSocket *client)
{
	union inet_address remote;

	return client->family == AF_INET ||
	       (inet_address_get(&client->remote, &remote) && inet_address_is_v4(&remote));
}

static size_t add(const Kcr__InetSocket *client, struct sockaddr_in6 at, struct in6_addr address,
		  struct inet_place *place)
{
	at.sin6_addr = address;
	*place = narrow(client->family, &at);
	return place->length && inet_address_is_here(place, client);
}

size_t inet_address_reach(int listener, const Kcr__InetSocket *client,
			  struct inet_place place[INET_PLACES])
{
	struct inet_place own = { .length = sizeof(own.a) };
	int only6 = 0;
	socklen_t length = sizeof(only6);
	struct sockaddr_in6 at;
	size_t count = 0;

	if (getsockname(listener, &own.a.any, &own.length))
		return 0;
	at = widen(&own.a);
	if (!memcmp(&at.sin6_addr, &any4, sizeof(any4)))
		return add(client, at, loopback4, place);
	if (!IN6_IS_ADDR_UNSPECIFIED(&at.sin6_addr))
		return add(client, at, at.sin6_addr, place);
	getsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &only6, &length);
	if (!uses_v4(client))
		count += add(client, at, in6addr_loopback, place);
	if (!only6)
		count += add(client, at, loopback4, place + count);
	return count;
}

void inet_address_loopback(int family, const Kcr__InetSocket *client, struct inet_place *place)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };

	if (family == AF_INET6 && add(client, at, in6addr_loopback, place) && !uses_v4(client))
		return;
	at.sin6_addr = loopback4;
	*place = narrow(family, &at);
}
