// SPDX-License-Identifier: GPL-2.0
/*
 * Options of sockets that can be set and not asked for: what they do tells whether they are
 * there.  There is an interface kcr7, of which v4 needs an address, and lo has an MTU of 1500 bytes.
 */
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "../../resource/option_names.h"
#include "check.h"

#define PORT	7411
#define SIZE	2000		/* of a datagram, in bytes */
#define SMALL	1280
#define GROUP	"239.7.4.11"
#define PROTOCOL	253	/* for experiments, as the next one is */

static const int on = 1;

static int open_socket(int family, int type, int protocol)
{
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(family, type, protocol);

	if (fd < 0 && (errno == EAFNOSUPPORT || errno == EACCES))
		check_skip("there is no such socket here");
	NEED(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
	return fd;
}

/* ---- v6: IPV6_PKTINFO, IPV6_MTU ---- */

static struct sockaddr_in6 loopback6 = {
	.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
};

/* Receives one datagram: the largest of its fragments; 0: it was whole. */
static int receive_fragments(int fd)
{
	char data[SIZE], control[256];
	struct iovec part = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int largest = 0;

	CHECK(recvmsg(fd, &m, 0) > 0);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVFRAGSIZE)
			memcpy(&largest, CMSG_DATA(c), sizeof(largest));
	return largest;
}

static void check_fragments(int sender, int receiver)
{
	static char data[SIZE];
	int largest;

	CHECK(sendto(sender, data, SIZE, 0, (const void *)&loopback6, sizeof(loopback6)) == SIZE);
	largest = receive_fragments(receiver);
	CHECK(largest && largest <= SMALL);
}

/* Through this interface, there is no way to there. */
static void check_away(int fd)
{
	CHECK(sendto(fd, "x", 1, 0, (const void *)&loopback6, sizeof(loopback6)) < 0 &&
	      errno == ENETUNREACH);
}

static void v6(void)
{
	int receiver = open_socket(AF_INET6, SOCK_DGRAM, 0), small = SMALL;
	int away = open_socket(AF_INET6, SOCK_DGRAM, 0);
	int fragments = open_socket(AF_INET6, SOCK_DGRAM, 0);
	struct in6_pktinfo interface = { .ipi6_ifindex = if_nametoindex("kcr7") };

	loopback6.sin6_port = htons(PORT);
	NEED(!bind(receiver, (const void *)&loopback6, sizeof(loopback6)));
	NEED(!setsockopt(receiver, IPPROTO_IPV6, IPV6_RECVFRAGSIZE, &on, sizeof(on)));
	NEED(!setsockopt(away, IPPROTO_IPV6, IPV6_PKTINFO, &interface, sizeof(interface)));
	NEED(!setsockopt(fragments, IPPROTO_IPV6, IPV6_MTU, &small, sizeof(small)));
	check_fragments(fragments, receiver);
	check_away(away);

	checkpoint_here();

	check_fragments(fragments, receiver);
	check_away(away);
}

/* ---- v4: IP_MULTICAST_IF by number, SO_TXTIME, IP_ROUTER_ALERT ---- */

static void send_timed(int fd, const struct sockaddr_in *to)
{
	union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(uint64_t))]; } control = {};
	struct iovec part = { .iov_base = (char *)"x", .iov_len = 1 };
	struct msghdr m = { .msg_name = (void *)to, .msg_namelen = sizeof(*to), .msg_iov = &part,
			    .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct timespec now;
	uint64_t at;

	NEED(!clock_gettime(CLOCK_REALTIME, &now));
	at = now.tv_sec * 1000000000ull;
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SO_TXTIME;
	control.head.cmsg_len = CMSG_LEN(sizeof(at));
	memcpy(CMSG_DATA(&control.head), &at, sizeof(at));
	CHECK(sendmsg(fd, &m, 0) == 1);
}

static void check_v4(int receiver, const int senders[2], int alert, int timed)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in local = { .sin_family = AF_INET, .sin_port = htons(PORT),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char byte;

	NEED(inet_pton(AF_INET, GROUP, &group.sin_addr) == 1);
	for (int i = 0; i < 2; i++) {
		CHECK(sendto(senders[i], "x", 1, 0, (void *)&group, sizeof(group)) == 1);
		CHECK(recv(receiver, &byte, 1, 0) == 1);
	}
	/* The kernel lets nobody ask for it twice. */
	CHECK(setsockopt(alert, IPPROTO_IP, IP_ROUTER_ALERT, &on, sizeof(on)) && errno == EADDRINUSE);
	send_timed(timed, &local);
	CHECK(recv(receiver, &byte, 1, 0) == 1);
}

static void v4(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct ip_mreqn lo = { .imr_ifindex = (int)if_nametoindex("lo") }, join = lo;
	struct sock_txtime real_time = { .clockid = CLOCK_REALTIME };
	int receiver = open_socket(AF_INET, SOCK_DGRAM, 0);
	int senders[2] = { open_socket(AF_INET, SOCK_DGRAM, 0), open_socket(AF_INET, SOCK_DGRAM, 0) };
	int alert = open_socket(AF_INET, SOCK_RAW, IPPROTO_RSVP);
	int timed = open_socket(AF_INET, SOCK_DGRAM, 0);

	NEED(inet_pton(AF_INET, GROUP, &join.imr_multiaddr) == 1);
	NEED(!bind(receiver, (void *)&any, sizeof(any)));
	NEED(!setsockopt(receiver, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof(join)));
	NEED(!setsockopt(senders[0], IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo)));
	NEED(inet_pton(AF_INET, check_argument, &lo.imr_address) == 1);
	NEED(!setsockopt(senders[1], IPPROTO_IP, IP_MULTICAST_IF, &lo, sizeof(lo)));
	NEED(!setsockopt(alert, IPPROTO_IP, IP_ROUTER_ALERT, &on, sizeof(on)));
	NEED(!setsockopt(timed, SOL_SOCKET, SO_TXTIME, &real_time, sizeof(real_time)));
	check_v4(receiver, senders, alert, timed);

	checkpoint_here();

	check_v4(receiver, senders, alert, timed);
}

/* ---- shut: SHUT_WR and SHUT_RD of ping and raw sockets ---- */

/*
 * Can it no longer send, as a raw socket with its own headers and, in newer kernels, a ping one?
 * What comes back is read, as it may come late.
 */
static bool is_mute(int fd, bool raw, int how)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct icmphdr echo = { .type = ICMP_ECHO };
	struct iphdr packet = { .version = 4, .ihl = 5, .ttl = 1, .protocol = PROTOCOL };
	char answer[64];

	packet.daddr = a.sin_addr.s_addr;
	if (sendto(fd, raw ? (void *)&packet : &echo, raw ? sizeof(packet) : sizeof(echo),
		   MSG_NOSIGNAL, (void *)&a, sizeof(a)) < 0)
		return errno == EPIPE;
	CHECK(how != SHUT_WR || recv(fd, answer, sizeof(answer), 0) > 0);
	return false;
}

static bool is_deaf(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

static void shut(void)
{
	int fd[6];
	bool mute[6];

	for (int i = 0; i < 6; i++) {
		bool raw = i >= 3;

		/* What one sends, the others do not receive. */
		fd[i] = raw ? open_socket(AF_INET, SOCK_RAW, PROTOCOL + (i % 3 != SHUT_RD)) :
			      open_socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
		NEED(!raw || !setsockopt(fd[i], IPPROTO_IP, IP_HDRINCL, &on, sizeof(on)));
		NEED(!shutdown(fd[i], i % 3) || errno == ENOTCONN);
		mute[i] = is_mute(fd[i], raw, i % 3);
		NEED(mute[i] == (i % 3 != SHUT_RD) || !raw);
	}
	checkpoint_here();
	for (int i = 0; i < 6; i++) {
		CHECK(is_mute(fd[i], i >= 3, i % 3) == mute[i]);
		CHECK(is_deaf(fd[i]) == (i % 3 != SHUT_WR));
	}
}

static const struct check checks[] = {
	{ "v4", v4 },
	{ "v6", v6 },
	{ "shut", shut },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
