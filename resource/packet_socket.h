/* SPDX-License-Identifier: GPL-2.0 */
/* Packet sockets: packet_socket.c saves, packet_rebuild.c restores. */
#ifndef KCR_RESOURCE_PACKET_SOCKET_H
#define KCR_RESOURCE_PACKET_SOCKET_H

#include "resource/resource.h"

int packet_socket_open(struct rebuild *r, const Kcr__File *file);
int packet_socket_check(struct rebuild *r, const Kcr__File *file);

#endif /* KCR_RESOURCE_PACKET_SOCKET_H */
