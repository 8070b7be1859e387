// SPDX-License-Identifier: GPL-2.0
/*
 * All kinds of sockets.  Each is opened at a descriptor of its own, from 100 on those that
 * cannot be saved, from 300 on those that can.  Standard output gets a line for each of the
 * first, "DESCRIPTOR TEXT", where TEXT is what it must be refused as.  Later those that cannot
 * be saved are closed, and their peers hung up, with the argument `skipped`; or there as
 * before, without.  What this kernel does not have is named on standard error.
 */
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../../resource/option_names.h"
#include "check.h"

#ifndef AF_MCTP
#define AF_MCTP		45
#endif

#define REFUSED		100
#define SAVED		300

struct kind {
	const char *name;		/* NULL: the text says it */
	int family, type, protocol;
	int (*change)(int fd);		/* true: this kernel cannot; NULL: nothing to do */
	const char *text;
};

/* ---- what is done to them ---- */

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

static int tcp_peer = -1, unix_peer = -1;	/* of one that cannot be saved */

/* Connects it to a listening socket, which this returns. */
static int connect_new(int fd, int protocol)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, protocol);
	socklen_t length = sizeof(a);

	NEED(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&a, &length));
	NEED(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	return listener;
}

/* A connection of which this is one end; the other one stays open. */
static int connect_tcp(int fd)
{
	int listener = connect_new(fd, 0);

	tcp_peer = accept(listener, NULL, NULL);
	NEED(tcp_peer >= 0);
	close(listener);
	return 0;
}

/* It is not accepted yet. */
static int connect_mptcp(int fd) { return connect_new(fd, IPPROTO_MPTCP) < 0; }

static int use_tls(int fd)
{
	return connect_tcp(fd) || setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3);
}

static int repair(int fd) { return set(fd, IPPROTO_TCP, TCP_REPAIR, 1); }

static int listen_md5(int fd)
{
	struct tcp_md5sig key = { .tcpm_keylen = 3, .tcpm_key = "abc" };
	struct sockaddr_in *peer = (struct sockaddr_in *)&key.tcpm_addr;

	peer->sin_family = AF_INET;
	peer->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)) || listen(fd, 1);
}

/* With a key for its peer, which is told of it when the packets with it have stopped. */
static int connect_md5(int fd)
{
	struct tcp_md5sig key = { .tcpm_keylen = 3, .tcpm_key = "abc" };
	struct sockaddr_in *peer = (struct sockaddr_in *)&key.tcpm_addr;

	peer->sin_family = AF_INET;
	peer->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect_tcp(fd) || setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key));
}

/* As in the headers of Linux 6.7. */
static int add_ao(int fd)
{
	struct {
		struct sockaddr_storage address;
		char algorithm[64];
		int32_t interface;
		uint32_t flags;
		uint16_t reserved;
		uint8_t prefix, sends, receives, length, key_flags, key_length, key[80];
	} __attribute__((aligned(8))) add = {
		.address.ss_family = AF_INET, .algorithm = "hmac(sha1)", .prefix = 0,
		.sends = 1, .receives = 1, .key_length = 3, .key = "abc",
	};

	return setsockopt(fd, IPPROTO_TCP, 38, &add, sizeof(add));
}

static int zero_copy(int fd) { return set(fd, SOL_SOCKET, SO_ZEROCOPY, 1); }
static int zero_copy_tcp(int fd) { return connect_tcp(fd) || zero_copy(fd); }

static int number_stamps(int fd)
{
	return set(fd, SOL_SOCKET, SO_TIMESTAMPING,
		   SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_OPT_ID);
}

static int l2tp_port(int fd) { return set(fd, IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_L2TPINUDP); }

static int keep_back(int fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return set(fd, IPPROTO_UDP, UDP_CORK, 1) ||
	       sendto(fd, "half", 4, 0, (struct sockaddr *)&a, sizeof(a)) != 4;
}

static int route(int fd) { return set(fd, IPPROTO_IP, 200, 1); }	/* MRT_INIT */

/* Leases it, and may use it. */
static int flow_label(int fd, bool use)
{
	struct {
		struct in6_addr to;
		uint32_t label;
		uint8_t action, share;
		uint16_t flags, expires, linger;
		uint32_t pad;
	} lease = { .to = IN6ADDR_LOOPBACK_INIT, .label = htonl(0x12345 + use), .share = 1,
		    .flags = 1 };
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(9),
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_flowinfo = lease.label };

	return setsockopt(fd, IPPROTO_IPV6, 32, &lease, sizeof(lease)) ||
	       (use && (set(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1) ||
			connect(fd, (struct sockaddr *)&a, sizeof(a))));
}

static int lease_label(int fd) { return flow_label(fd, false); }
static int use_label(int fd) { return flow_label(fd, true); }

static int load_ebpf(void)
{
	static const struct bpf_insn all[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = -1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2,
		.insns = (uintptr_t)all, .license = (uintptr_t)"GPL",
	};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
}

static int attach_ebpf(int fd)
{
	int program = load_ebpf();
	int failed = program < 0 || set(fd, SOL_SOCKET, SO_ATTACH_BPF, program);

	if (program >= 0)
		close(program);
	return failed;
}

static int pair_ebpf(int fd)
{
	int pair[2];

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && dup2(pair[0], fd) == fd);
	close(pair[0]);
	unix_peer = pair[1];
	return attach_ebpf(fd);
}

static int map = -1;

static int put_in_map(int fd)
{
	union bpf_attr make = {
		.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 4, .max_entries = 1,
	};
	int family, tcp, key = 0;
	union bpf_attr put = { .key = (uintptr_t)&key, .value = (uintptr_t)&fd };
	socklen_t length = sizeof(int);

	NEED(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length));
	tcp = family == AF_INET;
	put.map_fd = map = syscall(SYS_bpf, BPF_MAP_CREATE, &make, sizeof(make));
	return map < 0 || (tcp && listen(fd, 1)) ||
	       syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &put, sizeof(put));
}

/* Replaces it by that map. */
static int show_map(int fd) { return map < 0 || dup2(map, fd) != fd || close(map); }

static int join_group(int fd) { return set(fd, SOL_SOCKET, SO_REUSEPORT, 1); }

static int choose_classic(int fd)
{
	struct sock_filter first = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &first };

	return join_group(fd) ||
	       setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

static int choose_ebpf(int fd)
{
	int program = load_ebpf();
	int failed = program < 0 || join_group(fd) ||
		     set(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, program);

	if (program >= 0)
		close(program);
	return failed;
}

/* As a daemon for IPsec has one, to get its own packets past the others. */
static int bypass_policy(int fd, int family, int level, int name)
{
	struct xfrm_userpolicy_info policy = {
		.sel.family = family, .action = XFRM_POLICY_ALLOW, .dir = XFRM_POLICY_OUT,
		.lft = { .soft_byte_limit = XFRM_INF, .hard_byte_limit = XFRM_INF,
			 .soft_packet_limit = XFRM_INF, .hard_packet_limit = XFRM_INF },
	};

	return setsockopt(fd, level, name, &policy, sizeof(policy));
}

static int bypass(int fd) { return bypass_policy(fd, AF_INET, IPPROTO_IP, IP_XFRM_POLICY); }
static int bypass6(int fd) { return bypass_policy(fd, AF_INET6, IPPROTO_IPV6, IPV6_XFRM_POLICY); }

/* Not on a kernel that does not tell. */
static int get_alerts(int fd)
{
	socklen_t length = sizeof(int);
	int value;

	return set(fd, IPPROTO_IPV6, IPV6_ROUTER_ALERT, 1) ||
	       getsockopt(fd, IPPROTO_IPV6, IPV6_ROUTER_ALERT, &value, &length);
}

static int join_anycast(int fd)
{
	struct ipv6_mreq m = { .ipv6mr_multiaddr = IN6ADDR_LOOPBACK_INIT,
			       .ipv6mr_interface = if_nametoindex("lo") };

	m.ipv6mr_multiaddr.s6_addr[15] = 2;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_ANYCAST, &m, sizeof(m));
}

static int connect_netlink(int fd)
{
	struct sockaddr_nl other = { .nl_family = AF_NETLINK, .nl_pid = 4242 };

	return connect(fd, (struct sockaddr *)&other, sizeof(other));
}

static int hear_processes(int fd)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };

	return bind(fd, (struct sockaddr *)&own, sizeof(own));
}

/* Replaces it by one of a new network namespace. */
static int elsewhere(int fd)
{
	int family, type, protocol, other, here = open("/proc/self/ns/net", O_RDONLY);
	socklen_t length = sizeof(int);

	NEED(here >= 0 && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length));
	NEED(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length));
	NEED(!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length));
	if (unshare(CLONE_NEWNET))
		return -1;
	other = socket(family, type, protocol);
	NEED(other >= 0 && dup2(other, fd) == fd && !setns(here, CLONE_NEWNET));
	close(other);
	close(here);
	return 0;
}

/* ---- the kinds ---- */

#define FAMILY(family, type, protocol, what)	\
	{ NULL, family, type, protocol, NULL, "a socket of family " #family " (" what ")" }
#define INET(name, type, protocol, text)	\
	{ name, AF_INET, type, protocol, NULL, text }
#define IN(name, family, type, protocol, change, text)	\
	{ name, family, type, protocol, change, text }

#define GROUP_PROGRAM	"a socket of a group with a BPF program that chooses among them " \
			"(SO_ATTACH_REUSEPORT_EBPF, SO_ATTACH_REUSEPORT_CBPF)"

static const struct kind refused[] = {
	FAMILY(AF_AX25, SOCK_SEQPACKET, 0, "amateur radio"),
	FAMILY(AF_APPLETALK, SOCK_DGRAM, 0, "AppleTalk"),
	FAMILY(AF_NETROM, SOCK_SEQPACKET, 0, "amateur radio NET/ROM"),
	FAMILY(AF_ATMPVC, SOCK_DGRAM, 5, "ATM PVC"),
	FAMILY(AF_X25, SOCK_SEQPACKET, 0, "X.25"),
	FAMILY(AF_ROSE, SOCK_SEQPACKET, 0, "amateur radio X.25"),
	FAMILY(AF_KEY, SOCK_RAW, 2, "IPsec keys"),
	FAMILY(AF_ATMSVC, SOCK_DGRAM, 5, "ATM SVC"),
	FAMILY(AF_RDS, SOCK_SEQPACKET, 0, "reliable datagrams"),
	FAMILY(AF_PPPOX, SOCK_STREAM, 0, "PPP over others"),
	FAMILY(AF_LLC, SOCK_STREAM, 0, "logical link control"),
	FAMILY(AF_CAN, SOCK_RAW, 1, "controller area network"),
	FAMILY(AF_CAN, SOCK_DGRAM, 2, "controller area network"),
	FAMILY(AF_CAN, SOCK_DGRAM, 6, "controller area network"),
	FAMILY(AF_TIPC, SOCK_RDM, 0, "TIPC"),
	FAMILY(AF_BLUETOOTH, SOCK_SEQPACKET, 0, "Bluetooth"),
	FAMILY(AF_BLUETOOTH, SOCK_RAW, 1, "Bluetooth"),
	FAMILY(AF_RXRPC, SOCK_DGRAM, AF_INET, "AFS"),
	FAMILY(AF_PHONET, SOCK_DGRAM, 0, "Phonet"),
	FAMILY(AF_IEEE802154, SOCK_DGRAM, 0, "IEEE 802.15.4"),
	FAMILY(AF_CAIF, SOCK_SEQPACKET, 0, "CAIF"),
	FAMILY(AF_ALG, SOCK_SEQPACKET, 0, "kernel crypto"),
	FAMILY(AF_NFC, SOCK_SEQPACKET, 0, "near field communication"),
	FAMILY(AF_VSOCK, SOCK_STREAM, 0, "virtual machines"),
	FAMILY(AF_VSOCK, SOCK_DGRAM, 0, "virtual machines"),
	FAMILY(AF_KCM, SOCK_DGRAM, 0, "kernel connection multiplexor"),
	FAMILY(AF_QIPCRTR, SOCK_DGRAM, 0, "Qualcomm IPC router"),
	FAMILY(AF_SMC, SOCK_STREAM, 0, "shared memory communications"),
	FAMILY(AF_XDP, SOCK_RAW, 0, "express data path"),
	FAMILY(AF_MCTP, SOCK_DGRAM, 0, "management components"),
	INET("UDP-Lite", SOCK_DGRAM, IPPROTO_UDPLITE, "a UDP-Lite socket"),
	INET("SCTP", SOCK_STREAM, IPPROTO_SCTP, "an SCTP socket"),
	INET("SCTP, one to many", SOCK_SEQPACKET, IPPROTO_SCTP, "an SCTP socket"),
	INET("DCCP", SOCK_DCCP, IPPROTO_DCCP, "a DCCP socket"),
	INET("L2TP", SOCK_DGRAM, 115, "an L2TP/IP socket"),
	IN("MPTCP", AF_INET, SOCK_STREAM, IPPROTO_MPTCP, connect_mptcp,
	   "a connection of Multipath TCP (a program in Go has plain TCP with "
	   "GODEBUG=multipathtcp=0)"),
	INET("SMC", SOCK_STREAM, 256, "an SMC socket (shared memory communications)"),
	IN("TCP_ULP", AF_INET, SOCK_STREAM, 0, use_tls,
	   "a TCP connection with TLS in the kernel (TCP_ULP)"),
	IN("TCP_REPAIR", AF_INET, SOCK_STREAM, 0, repair,
	   "a TCP socket in repair mode (TCP_REPAIR)"),
	IN("TCP_MD5SIG, listening", AF_INET, SOCK_STREAM, 0, listen_md5,
	   "a TCP socket with keys (TCP_MD5SIG)"),
	IN("TCP_MD5SIG", AF_INET, SOCK_STREAM, 0, connect_md5,
	   "a TCP socket with keys (TCP_MD5SIG)"),
	IN("TCP_AO", AF_INET, SOCK_STREAM, 0, add_ao, "a TCP socket with keys (TCP_AO_ADD_KEY)"),
	IN("SO_ZEROCOPY, TCP", AF_INET, SOCK_STREAM, 0, zero_copy_tcp,
	   "a socket that sends without copying (SO_ZEROCOPY) and numbers what it has sent"),
	IN("SO_ZEROCOPY, UDP", AF_INET, SOCK_DGRAM, 0, zero_copy,
	   "a socket that sends without copying (SO_ZEROCOPY) and numbers what it has sent"),
	IN("OPT_ID, UDP", AF_INET, SOCK_DGRAM, 0, number_stamps,
	   "a socket that numbers the time stamps of what it sends (SOF_TIMESTAMPING_OPT_ID)"),
	IN("OPT_ID, raw", AF_INET, SOCK_RAW, IPPROTO_ICMP, number_stamps,
	   "a socket that numbers the time stamps of what it sends (SOF_TIMESTAMPING_OPT_ID)"),
	IN("MRT_INIT", AF_INET, SOCK_RAW, IPPROTO_IGMP, route,
	   "a raw socket of protocol 2 while multicast packets are routed (MRT_INIT)"),
	IN("elsewhere, raw", AF_INET, SOCK_RAW, IPPROTO_ICMP, elsewhere,
	   "a socket of another network namespace than its process"),
	IN("OPT_ID, packet", AF_PACKET, SOCK_RAW, 0, number_stamps,
	   "a socket that numbers the time stamps of what it sends (SOF_TIMESTAMPING_OPT_ID)"),
	IN("UDP_ENCAP, L2TP", AF_INET, SOCK_DGRAM, 0, l2tp_port,
	   "a UDP socket of a tunnel in the kernel (L2TP)"),
	IN("UDP_CORK", AF_INET, SOCK_DGRAM, 0, keep_back,
	   "a UDP socket that keeps data back (UDP_CORK)"),
	IN("flow label", AF_INET6, SOCK_DGRAM, 0, use_label,
	   "a socket with a flow label (IPV6_FLOWLABEL_MGR)"),
	IN("flow label, not used", AF_INET6, SOCK_DGRAM, 0, lease_label,
	   "a socket with a flow label (IPV6_FLOWLABEL_MGR)"),
	IN("IPV6_ROUTER_ALERT", AF_INET6, SOCK_RAW, IPPROTO_RAW, get_alerts,
	   "a raw socket that gets router alerts (IPV6_ROUTER_ALERT)"),
	IN("IPV6_JOIN_ANYCAST", AF_INET6, SOCK_DGRAM, 0, join_anycast,
	   "a socket with an anycast address (IPV6_JOIN_ANYCAST)"),
	IN("IP_XFRM_POLICY, UDP", AF_INET, SOCK_DGRAM, 0, bypass,
	   "a socket with an IPsec policy of its own (IP_XFRM_POLICY)"),
	IN("IP_XFRM_POLICY, TCP", AF_INET, SOCK_STREAM, 0, bypass,
	   "a socket with an IPsec policy of its own (IP_XFRM_POLICY)"),
	IN("IPV6_XFRM_POLICY, raw", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, bypass6,
	   "a socket with an IPsec policy of its own (IP_XFRM_POLICY)"),
	IN("SO_ATTACH_REUSEPORT_CBPF", AF_INET, SOCK_DGRAM, 0, choose_classic, GROUP_PROGRAM),
	IN("SO_ATTACH_REUSEPORT_EBPF", AF_INET6, SOCK_STREAM, 0, choose_ebpf, GROUP_PROGRAM),
	IN("SO_ATTACH_BPF, TCP", AF_INET, SOCK_STREAM, 0, attach_ebpf, "a socket with an eBPF filter"),
	IN("SO_ATTACH_BPF, Unix", AF_UNIX, SOCK_DGRAM, 0, attach_ebpf, "a socket with an eBPF filter"),
	IN("SO_ATTACH_BPF, pair", AF_UNIX, SOCK_STREAM, 0, pair_ebpf, "a socket with an eBPF filter"),
	IN("SO_ATTACH_BPF, netlink", AF_NETLINK, SOCK_RAW, 0, attach_ebpf,
	   "a socket with an eBPF filter"),
	IN("SO_ATTACH_BPF, packet", AF_PACKET, SOCK_RAW, 0, attach_ebpf,
	   "a socket with an eBPF filter"),
	IN("in a BPF map", AF_INET, SOCK_STREAM, 0, put_in_map,
	   "a socket that a BPF map or a protocol of the kernel uses"),
	IN("a BPF map", AF_INET, SOCK_STREAM, 0, show_map, "a kernel object of this kind"),
	IN("in a BPF map, Unix", AF_UNIX, SOCK_DGRAM, 0, put_in_map,
	   "a socket that a BPF map or a protocol of the kernel uses"),
	IN("the BPF map", AF_INET, SOCK_STREAM, 0, show_map, "a kernel object of this kind"),
	IN("netlink, connected", AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK, connect_netlink,
	   "a netlink socket connected to another program"),
	IN("netlink, of processes", AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR, hear_processes,
	   "a netlink socket that gets events of processes (NETLINK_CONNECTOR)"),
	IN("elsewhere, TCP", AF_INET, SOCK_STREAM, 0, elsewhere,
	   "a socket of another network namespace than its process"),
	IN("elsewhere, UDP", AF_INET6, SOCK_DGRAM, 0, elsewhere,
	   "a socket of another network namespace than its process"),
	IN("elsewhere, netlink", AF_NETLINK, SOCK_RAW, 0, elsewhere,
	   "a socket of another network namespace than its process"),
	IN("elsewhere, packet", AF_PACKET, SOCK_RAW, 0, elsewhere,
	   "a packet socket of another network namespace"),
	IN("elsewhere, Unix", AF_UNIX, SOCK_STREAM, 0, elsewhere,
	   "a Unix socket whose peer is not known"),
};

#define PLAIN(family, type, protocol)	{ #family " " #type, family, type, protocol, NULL, NULL }
#define NETLINK(protocol)		{ #protocol, AF_NETLINK, SOCK_RAW, protocol, NULL, NULL }

static int listen_only(int fd) { return listen(fd, 1); }
static int esp_port(int fd) { return set(fd, IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP); }

static const struct kind saved[] = {
	PLAIN(AF_UNIX, SOCK_STREAM, 0), PLAIN(AF_UNIX, SOCK_DGRAM, 0),
	PLAIN(AF_UNIX, SOCK_SEQPACKET, 0), PLAIN(AF_INET, SOCK_STREAM, 0),
	PLAIN(AF_INET, SOCK_DGRAM, 0), PLAIN(AF_INET6, SOCK_STREAM, 0),
	PLAIN(AF_INET6, SOCK_DGRAM, 0), PLAIN(AF_PACKET, SOCK_RAW, 0),
	PLAIN(AF_PACKET, SOCK_DGRAM, 0), PLAIN(AF_PACKET, SOCK_PACKET, 0),
	INET("MPTCP, new", SOCK_STREAM, IPPROTO_MPTCP, NULL),
	IN("MPTCP, listening", AF_INET6, SOCK_STREAM, IPPROTO_MPTCP, listen_only, NULL),
	INET("ping", SOCK_DGRAM, IPPROTO_ICMP, NULL),
	IN("ping, IPv6", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, NULL, NULL),
	INET("raw", SOCK_RAW, IPPROTO_ICMP, NULL),
	IN("raw, IPv6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, NULL, NULL),
	INET("raw, of TCP", SOCK_RAW, IPPROTO_TCP, NULL),
	INET("raw, to send", SOCK_RAW, IPPROTO_RAW, NULL),
	PLAIN(AF_NETLINK, SOCK_DGRAM, 0), NETLINK(NETLINK_ROUTE), NETLINK(NETLINK_USERSOCK),
	NETLINK(NETLINK_SOCK_DIAG), NETLINK(NETLINK_XFRM), NETLINK(NETLINK_SELINUX),
	NETLINK(NETLINK_ISCSI), NETLINK(NETLINK_AUDIT), NETLINK(NETLINK_FIB_LOOKUP),
	NETLINK(NETLINK_CONNECTOR), NETLINK(NETLINK_NETFILTER), NETLINK(NETLINK_KOBJECT_UEVENT),
	NETLINK(NETLINK_GENERIC), NETLINK(NETLINK_SCSITRANSPORT), NETLINK(NETLINK_ECRYPTFS),
	NETLINK(NETLINK_RDMA), NETLINK(NETLINK_CRYPTO),
	IN("UDP_ENCAP, ESP", AF_INET, SOCK_DGRAM, 0, esp_port, NULL),
	/* Not used yet: nothing has been counted. */
	IN("SO_ZEROCOPY, new", AF_INET, SOCK_STREAM, 0, zero_copy, NULL),
};

/* ---- opening and looking ---- */

static int open_kind(const struct kind *kind, int number)
{
	int fd = socket(kind->family, kind->type, kind->protocol);

	if (fd >= 0 && kind->change && kind->change(fd)) {
		int error = errno;

		close(fd);
		errno = error;
		fd = -1;
	}
	if (fd < 0) {
		fprintf(stderr, "# not here: %s: %s\n", kind->name ?: kind->text, strerror(errno));
		return -1;
	}
	NEED(dup2(fd, number) == number && !close(fd));
	return number;
}

static int option(int fd, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &length) ? -1 : value;
}

/* It looks as a new one. */
static void check_kind(const struct kind *kind, int fd)
{
	int like = socket(kind->family, kind->type, kind->protocol);

	for (int name = 0; name < 100; name++)
		if (name == SO_DOMAIN || name == SO_TYPE || name == SO_PROTOCOL)
			CHECK(option(fd, name) == option(like, name));
	close(like);
}

static void check_hung_up(void)
{
	char byte;

	if (tcp_peer >= 0)
		CHECK(recv(tcp_peer, &byte, 1, 0) < 0 && errno == ECONNRESET);
	if (unix_peer >= 0)
		CHECK(recv(unix_peer, &byte, 1, 0) == 0);
}

#define COUNT(list)	(int)(sizeof(list) / sizeof(*(list)))

int main(int argc, char **argv)
{
	int is_refused[COUNT(refused)], is_saved[COUNT(saved)], count = 0;
	bool skipped;

	check_begin(argc, argv);
	skipped = argc > 3 && !strcmp(argv[3], "skipped");
	for (int i = 0; i < COUNT(refused); i++) {
		is_refused[i] = open_kind(&refused[i], REFUSED + i);
		if (is_refused[i] >= 0)
			printf("%d %s\n", is_refused[i], refused[i].text);
		count += is_refused[i] >= 0;
	}
	fflush(stdout);
	for (int i = 0; i < COUNT(saved); i++)
		is_saved[i] = open_kind(&saved[i], SAVED + i);
	if (!count)
		check_skip("this kernel has nothing that cannot be saved");
	checkpoint_here();
	for (int i = 0; i < COUNT(refused); i++)
		if (is_refused[i] >= 0)
			CHECK((fcntl(is_refused[i], F_GETFD) < 0) == skipped);
	if (skipped)
		check_hung_up();
	for (int i = 0; i < COUNT(saved); i++)
		if (is_saved[i] >= 0)
			check_kind(&saved[i], is_saved[i]);
	return check_end();
}
