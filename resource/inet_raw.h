/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets of ping (SOCK_DGRAM of ICMP) and raw ones (SOCK_RAW), of IPv4 and IPv6. */
#ifndef KCR_RESOURCE_INET_RAW_H
#define KCR_RESOURCE_INET_RAW_H

#include "resource/inet_socket.h"

bool inet_raw_is(const Kcr__InetSocket *s);
/* Saves what it is connected to, which getpeername(2) does not tell.  -errno, reported. */
int inet_raw_save(struct file_table *t, const struct file_probe *probe, Kcr__InetSocket *s);

/* May this process make such a socket?  -errno. */
int inet_raw_try(const Kcr__InetSocket *s);
/* Reports that it could not be made, and what is needed; returns err. */
int inet_raw_error(const Kcr__File *file, int err);
/* Until it is complete, a raw socket takes nothing; `fd` is a new one. */
void inet_raw_shut_out(const Kcr__InetSocket *s, int fd);
void inet_raw_let_in(const Kcr__InetSocket *s, int fd);

#endif /* KCR_RESOURCE_INET_RAW_H */
