// SPDX-License-Identifier: GPL-2.0
/*
 * What an internet or packet socket may have that the kernel gives to nobody, or takes from
 * nobody: protocols on top of TCP, keys, counts of what has been sent, data kept back.
 */
#include "resource/socket_unsaved.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/file.h"
#include "resource/inet_socket.h"
#include "resource/not_accepted.h"
#include "resource/option_names.h"
#include "resource/socket.h"

/* From linux/in6.h, which conflicts with netinet/in.h. */
#define IPV6_FLOWLABEL_MGR	32

struct flow_label_request {
	struct in6_addr to;
	uint32_t label;
	uint8_t action, share;
	uint16_t flags, expires, linger;
	uint32_t pad;
};

static int value_of(int fd, int level, int name)
{
	socklen_t length = sizeof(int);
	int value = 0;

	return getsockopt(fd, level, name, &value, &length) ? 0 : value;
}

/* ---- network namespace ------------------------------------------------------------------ */

/* Before 5.14; only who administers the namespace may ask. */
static bool in_same_namespace_file(int a, int b)
{
	int of_a = ioctl(a, SIOCGSKNS), of_b = ioctl(b, SIOCGSKNS);
	struct stat first, second;
	bool same = of_a < 0 || of_b < 0 || fstat(of_a, &first) || fstat(of_b, &second) ||
		    (first.st_ino == second.st_ino && first.st_dev == second.st_dev);

	if (of_a >= 0)
		close(of_a);
	if (of_b >= 0)
		close(of_b);
	return same;
}

int socket_namespace_check(struct file_table *t, const struct file_probe *probe)
{
	int own = file_table_diag(t);
	uint64_t ours, its;
	socklen_t length = sizeof(ours);
	bool same;

	if (own < 0)
		return 0;
	if (!getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &length) &&
	    !getsockopt(probe->fd, SOL_SOCKET, SO_NETNS_COOKIE, &its, &length))
		same = ours == its;
	else
		same = in_same_namespace_file(own, probe->fd);
	return same ? 0 : file_unsupported(t, "a socket of another network namespace than its "
					   "process");
}

/* ---- counts ----------------------------------------------------------------------------- */

/* The program would wait for a notice with another number, or take it for that of other data. */
int socket_count_check(struct file_table *t, const struct file_probe *probe)
{
	if (socket_value(probe->fd, SO_ZEROCOPY) > 0)
		return file_unsupported(t, "a socket that sends without copying (SO_ZEROCOPY) and "
					"numbers what it has sent");
	if (value_of(probe->fd, SOL_SOCKET, SO_TIMESTAMPING) & SOF_TIMESTAMPING_OPT_ID)
		return file_unsupported(t, "a socket that numbers the time stamps of what it sends "
					"(SOF_TIMESTAMPING_OPT_ID)");
	return 0;
}

/* ---- TCP -------------------------------------------------------------------------------- */

static int check_tcp(struct file_table *t, const struct file_probe *probe)
{
	char protocol[16] = "", answer[256] = "";
	socklen_t length = sizeof(protocol);

	if (!getsockopt(probe->fd, IPPROTO_TCP, TCP_ULP, protocol, &length) && length &&
	    protocol[0] && socket_value(probe->fd, SO_PROTOCOL) != IPPROTO_MPTCP)
		return file_unsupported(t, "a TCP connection with %s in the kernel (TCP_ULP)",
					strcmp(protocol, "tls") ? protocol : "TLS");
	if (value_of(probe->fd, IPPROTO_TCP, TCP_REPAIR))
		return file_unsupported(t, "a TCP socket in repair mode (TCP_REPAIR)");
	length = sizeof(answer);
	if (!getsockopt(probe->fd, IPPROTO_TCP, TCP_AO_INFO, answer, &length))
		return file_unsupported(t, "a TCP socket with keys (TCP_AO_ADD_KEY)");
	return 0;
}

/* ---- UDP -------------------------------------------------------------------------------- */

/* The kernel's modules set it for sockets that they take over; ESP in UDP is set by programs. */
static int check_udp(struct file_table *t, const struct file_probe *probe)
{
	int kind = value_of(probe->fd, IPPROTO_UDP, UDP_ENCAP);

	if (kind > UDP_ENCAP_ESPINUDP)
		return file_unsupported(t, "a UDP socket of a tunnel in the kernel (%s)",
					kind == UDP_ENCAP_L2TPINUDP ? "L2TP" :
					kind == UDP_ENCAP_GTP0 || kind == UDP_ENCAP_GTP1U ? "GTP" :
					kind == UDP_ENCAP_RXRPC ? "RxRPC" : "UDP_ENCAP");
	return 0;
}

static bool has_unsent(const struct file_probe *probe)
{
	int unsent = 0;

	return !ioctl(probe->fd, SIOCOUTQ, &unsent) && unsent > 0;
}

/* After so many looks: a corked socket, of which much depends on it, has time of its own. */
static bool wait_for_sent(struct file_table *t, bool corked, int looks)
{
	if (file_table_is_dry(t))
		return not_accepted_wait(t, looks);
	return corked ? looks < FILE_SEND_MS && !usleep(1000) : file_table_await_sent(t);
}

/* Half of a datagram must not come back as a whole one.  What is on its way out counts, too. */
int datagrams_kept_back_check(struct file_table *t, const struct file_probe *probe)
{
	bool corked = value_of(probe->fd, IPPROTO_UDP, UDP_CORK);

	if (file_table_is_dry(t) && !corked)
		return 0;
	for (int looks = 0; has_unsent(probe) && wait_for_sent(t, corked, looks); looks++)
		;
	if (!has_unsent(probe))
		return 0;
	if (corked)
		return file_unsupported(t, "a UDP socket that keeps data back (UDP_CORK)");
	report_warn("process %d: what a %s socket has yet to send is not saved (%s)", probe->pid,
		    socket_value(probe->fd, SO_TYPE) == SOCK_RAW ? "raw" : "UDP", probe->link);
	return 0;
}

/* ---- both ------------------------------------------------------------------------------- */

static bool tells_flow_label(int fd)
{
	struct flow_label_request request = {};
	socklen_t length = sizeof(request);

	return !getsockopt(fd, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &request, &length);
}

/*
 * Leased, or the peer's, unless all have that here (net.ipv6.flowlabel_reflect).  What else has
 * been leased shows nowhere.
 */
static bool has_flow_label(int fd, const Kcr__InetSocket *s)
{
	bool has = tells_flow_label(fd);
	int fresh = has ? socket(s->family, s->type | SOCK_CLOEXEC, s->protocol) : -1;

	if (fresh >= 0) {
		has = !tells_flow_label(fresh);
		close(fresh);
	}
	return has;
}

int inet_unsaved_check(struct file_table *t, const struct file_probe *probe,
		       const Kcr__InetSocket *s)
{
	if (s->family == AF_INET6 && has_flow_label(probe->fd, s))
		return file_unsupported(t, "a socket with a flow label (IPV6_FLOWLABEL_MGR)");
	/* Since 6.8, and not which; those of value 0 do not show. */
	if (s->family == AF_INET6 && value_of(probe->fd, IPPROTO_IPV6, IPV6_ROUTER_ALERT))
		return file_unsupported(t, "a raw socket that gets router alerts "
					"(IPV6_ROUTER_ALERT)");
	return s->type == SOCK_STREAM ? check_tcp(t, probe) : check_udp(t, probe);
}
