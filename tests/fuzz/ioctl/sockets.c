// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets that all actors have.  Rings of packet sockets are made and removed while others move in
 * them, and packets come; others are given options of which others ask.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define SOCKETS	3	/* a TPACKET_V* each */

static int sockets[SOCKETS];

static const struct { int family, type, protocol; } kinds[] = {
	{ AF_INET, SOCK_STREAM, 0 }, { AF_INET6, SOCK_STREAM, 0 }, { AF_INET, SOCK_DGRAM, 0 },
	{ AF_INET6, SOCK_DGRAM, 0 }, { AF_INET, SOCK_RAW, IPPROTO_RSVP },
	{ AF_INET6, SOCK_RAW, IPPROTO_RSVP }, { AF_INET, SOCK_STREAM, 262 /* MPTCP */ },
	{ AF_UNIX, SOCK_STREAM, 0 }, { AF_NETLINK, SOCK_RAW, 0 },
};

#define KINDS	(sizeof(kinds) / sizeof(*kinds))

static int others[KINDS];

static void change_ring(int fd, uint32_t version, uint32_t blocks, int option)
{
	struct tpacket_req3 request = {
		.tp_block_size = 4096, .tp_block_nr = blocks, .tp_frame_size = 2048,
		.tp_frame_nr = 2 * blocks,
	};

	if (option == PACKET_RX_RING && version == TPACKET_V3)
		request.tp_retire_blk_tov = 1;
	setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version));
	setsockopt(fd, SOL_PACKET, option, &request, sizeof(request));
}

static void set_key(int fd)
{
	struct tcp_md5sig key = { .tcpm_keylen = 3, .tcpm_key = "abc" };
	struct sockaddr_in *peer = (struct sockaddr_in *)&key.tcpm_addr;

	peer->sin_family = AF_INET;
	peer->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key));
}

static void set_program(int fd)
{
	struct sock_filter first = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { .len = 1, .filter = &first };
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

/* As root, before anything is created. */
void sockets_make(void)
{
	struct sockaddr_ll local = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	local.sll_ifindex = if_nametoindex("lo");
	for (int i = 0; i < SOCKETS; i++) {
		sockets[i] = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		ioctl(sockets[i], SIOCSIFFLAGS, &up);
		bind(sockets[i], (struct sockaddr *)&local, sizeof(local));
		change_ring(sockets[i], i, 8, PACKET_RX_RING);
		change_ring(sockets[i], i, 4, PACKET_TX_RING);
	}
	for (size_t i = 0; i < KINDS; i++)
		others[i] = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, kinds[i].protocol);
	/* Once: the kernel patches its own code for the first key, and compiles each program. */
	set_key(others[0]);
	set_program(others[2]);
}

int any_socket(struct actor *actor)
{
	int fd = others[below(&actor->random, KINDS)], on = below(&actor->random, 2);

	if (chance(&actor->random, 5))
		setsockopt(fd, IPPROTO_IP, IP_ROUTER_ALERT, &on, sizeof(on));
	if (chance(&actor->random, 5))
		shutdown(fd, (int)below(&actor->random, 3));
	return chance(&actor->random, 90) ? fd : (int)below(&actor->random, 12) - 1;
}

int any_packet_socket(struct actor *actor)
{
	int fd = sockets[below(&actor->random, SOCKETS)];
	static const char packet[200];

	if (chance(&actor->random, 10))
		change_ring(fd, below(&actor->random, 3), below(&actor->random, 3) ?
			    below(&actor->random, 16) : 0, chance(&actor->random, 30) ?
			    PACKET_TX_RING : PACKET_RX_RING);
	for (uint32_t i = below(&actor->random, 20); i; i--)
		send(sockets[0], packet, sizeof(packet), MSG_DONTWAIT);
	return chance(&actor->random, 90) ? fd : (int)below(&actor->random, 12) - 1;
}
