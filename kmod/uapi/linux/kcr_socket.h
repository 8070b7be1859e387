/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kcr and what a socket has that getsockopt(2) does not tell.  The rules for structures
 * are in kcr.h, which includes this file.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_SOCKET_H
#define _UAPI_LINUX_KCR_SOCKET_H

#include <linux/types.h>

#define KCR_SOCKET_KEYS		(1 << 0)	/* TCP_MD5SIG */
#define KCR_SOCKET_SYN		(1 << 1)	/* TCP_SAVED_SYN has something to tell */
#define KCR_SOCKET_POLICY	(1 << 2)	/* IP_XFRM_POLICY, IPV6_XFRM_POLICY */
#define KCR_SOCKET_PROGRAM	(1 << 3)	/* its group has one: SO_ATTACH_REUSEPORT_EBPF, _CBPF */
#define KCR_SOCKET_CLAIMED	(1 << 4)	/* a BPF map or a protocol of the kernel uses it */
#define KCR_SOCKET_ANYCAST	(1 << 5)	/* IPV6_JOIN_ANYCAST */
#define KCR_SOCKET_LABEL	(1 << 6)	/* IPV6_FLOWLABEL_MGR; never, if the kernel has no BTF */
#define KCR_SOCKET_ALERT	(1 << 7)	/* IP_ROUTER_ALERT */
#define KCR_SOCKET_TXTIME	(1 << 8)	/* SO_TXTIME, with whatever clock and flags */

/* Of Unix sockets: */
#define KCR_SOCKET_IDLE		(1 << 9)	/* nothing waits to be read */
#define KCR_SOCKET_PEEKED	(1 << 10)	/* an empty message that MSG_PEEK has shown */

#define KCR_SOCKET_SHUT_READ	(1 << 0)
#define KCR_SOCKET_SHUT_WRITE	(1 << 1)

/*
 * A socket of which the caller has the descriptor `fd`: TCP, UDP, ping or raw; of a Unix socket
 * only whether it is CLAIMED, IDLE or PEEKED, which a look at SO_PEEK_OFF does not show any more.
 * EBADF, ENOTSOCK; EOPNOTSUPP: another kind of socket.
 */
struct kcr_socket {
	__u32 size;
	__u32 flags;			/* 0 */
	__s32 fd;
	__u32 state;			/* out: KCR_SOCKET_* */
	__u32 shut;			/* out: KCR_SOCKET_SHUT_*: directions that have ended */
	__u32 multicast_interface;	/* out: of IP_MULTICAST_IF; 0: none */
	__u32 mtu;			/* out: IPV6_MTU as it was set, in bytes; 0: it was not */
	__u32 source_interface;		/* out: of IPV6_PKTINFO; 0: any */
	__u8 source[16];		/* out: address of IPV6_PKTINFO; zeros: any */
};

#endif /* _UAPI_LINUX_KCR_SOCKET_H */
