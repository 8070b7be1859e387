/* SPDX-License-Identifier: GPL-2.0 */
/* Options of sockets that the C library or the kernel's headers may not know yet. */
#ifndef KCR_RESOURCE_OPTION_NAMES_H
#define KCR_RESOURCE_OPTION_NAMES_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif
#ifndef SO_TXTIME
#define SO_TXTIME		61
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX	62
#endif
#ifndef SO_TIMESTAMP_NEW
#define SO_TIMESTAMP_NEW	63
#define SO_TIMESTAMPNS_NEW	64
#define SO_TIMESTAMPING_NEW	65
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL	69
#define SO_BUSY_POLL_BUDGET	70
#endif
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE	71
#endif
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK	72
#endif
#ifndef SO_RESERVE_MEM
#define SO_RESERVE_MEM	73
#endif
#ifndef SO_TXREHASH
#define SO_TXREHASH	74
#endif
#ifndef SO_RCVMARK
#define SO_RCVMARK	75
#endif
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD	76
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD	0x04
#endif
#ifndef SO_RCVPRIORITY
#define SO_RCVPRIORITY	82
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif
#ifndef SO_INQ
#define SO_INQ		84
#endif
#ifndef IP_RECVERR_RFC4884
#define IP_RECVERR_RFC4884	26
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE	51
#endif
#ifndef IPV6_FLOWINFO		/* from linux/in6.h, which conflicts with netinet/in.h */
#define IPV6_FLOWINFO		11
#define IPV6_FLOWINFO_SEND	33
#endif
#ifndef UDP_ENCAP_RXRPC
#define UDP_ENCAP_RXRPC	6
#endif
#ifndef PACKET_VNET_HDR_SZ
#define PACKET_VNET_HDR_SZ	24
#endif
#ifndef TCP_TX_DELAY
#define TCP_TX_DELAY	37
#endif
#ifndef TCP_AO_INFO
#define TCP_AO_INFO	40
#endif
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS	44
#define TCP_RTO_MIN_US	45
#define TCP_DELACK_MAX_US	46
#endif

#endif /* KCR_RESOURCE_OPTION_NAMES_H */
