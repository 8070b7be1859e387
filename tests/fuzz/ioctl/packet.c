// SPDX-License-Identifier: GPL-2.0
/*
 * Packet sockets that all actors have: their rings are made and removed while others move in them,
 * and packets come.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define SOCKETS	3	/* a TPACKET_V* each */

static int sockets[SOCKETS];

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

/* As root, before anything is created. */
void packets_make(void)
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
