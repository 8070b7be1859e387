// SPDX-License-Identifier: GPL-2.0
/*
 * Families and protocols of sockets that cannot be saved.  Their state is in a module of
 * the kernel that tells it to nobody, or at the other end of a connection.
 */
#include "resource/socket_names.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "resource/file.h"
#include "resource/option_names.h"

#ifndef AF_MCTP
#define AF_MCTP		45
#endif
#ifndef IPPROTO_L2TP
#define IPPROTO_L2TP	115
#endif
#ifndef IPPROTO_SMC
#define IPPROTO_SMC	256
#endif

#define F(family, what)	{ family, #family " (" what ")" }

static const struct {
	int family;
	const char *text;
} families[] = {
	F(AF_AX25, "amateur radio"), F(AF_IPX, "Novell IPX"), F(AF_APPLETALK, "AppleTalk"),
	F(AF_NETROM, "amateur radio NET/ROM"), F(AF_ATMPVC, "ATM PVC"), F(AF_X25, "X.25"),
	F(AF_ROSE, "amateur radio X.25"), F(AF_KEY, "IPsec keys"), F(AF_ATMSVC, "ATM SVC"),
	F(AF_RDS, "reliable datagrams"), F(AF_IRDA, "infrared"), F(AF_PPPOX, "PPP over others"),
	F(AF_LLC, "logical link control"), F(AF_IB, "InfiniBand"), F(AF_CAN, "controller area network"),
	F(AF_TIPC, "TIPC"), F(AF_BLUETOOTH, "Bluetooth"), F(AF_IUCV, "z/VM"), F(AF_RXRPC, "AFS"),
	F(AF_ISDN, "ISDN"), F(AF_PHONET, "Phonet"), F(AF_IEEE802154, "IEEE 802.15.4"),
	F(AF_CAIF, "CAIF"), F(AF_ALG, "kernel crypto"), F(AF_NFC, "near field communication"),
	F(AF_VSOCK, "virtual machines"), F(AF_KCM, "kernel connection multiplexor"),
	F(AF_QIPCRTR, "Qualcomm IPC router"), F(AF_SMC, "shared memory communications"),
	F(AF_XDP, "express data path"), F(AF_MCTP, "management components"),
};

#undef F

int socket_refuse_family(struct file_table *t, int family)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (families[i].family == family)
			return file_unsupported(t, "a socket of family %s", families[i].text);
	return file_unsupported(t, "a socket of address family %d", family);
}

int socket_refuse_protocol(struct file_table *t, int type, int protocol)
{
	switch (protocol) {
	case IPPROTO_DCCP:
		return file_unsupported(t, "a DCCP socket");
	case IPPROTO_L2TP:
		return file_unsupported(t, "an L2TP/IP socket");
	case IPPROTO_SCTP:
		return file_unsupported(t, "an SCTP socket");
	case IPPROTO_UDPLITE:
		return file_unsupported(t, "a UDP-Lite socket");
	case IPPROTO_SMC:
		return file_unsupported(t, "an SMC socket (shared memory communications)");
	case IPPROTO_MPTCP:
		return file_unsupported(t, "a connection of Multipath TCP (a program in Go has plain TCP "
					"with GODEBUG=multipathtcp=0)");
	default:
		return file_unsupported(t, "an internet socket of another kind than TCP or UDP "
					"(type %d, protocol %d)", type, protocol);
	}
}
