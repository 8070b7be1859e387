// SPDX-License-Identifier: GPL-2.0
/*
 * Rings in memory of packet sockets: numbered packets, which this program sends to itself by the
 * interface lo, are all there, once and in their order, whatever happens to the program.
 *
 * The argument: the version of the ring, 1 to 3.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"

#define PROTOCOL	0x88b5		/* for local experiments */
#define BLOCK		8192u
#define BLOCKS		6u
#define FRAME		2048u
#define FRAMES		(BLOCK / FRAME * BLOCKS)
#define LENGTH		(BLOCK * BLOCKS)
#define PRIVATE		64u
#define WORDS		100u		/* of a packet */

static struct {
	int fd, version;
	char *rx, *tx;
	uint32_t next;			/* frame, or block of TPACKET_V3 */
	uint32_t next_tx;
	uint64_t blocks;		/* how many were there: as they are numbered */
	uint64_t sent, received;
	bool has_gaps;			/* somebody else sends more than there is room for */
} ring;

static void interface_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	NEED(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &request));
	close(fd);
}

static struct sockaddr_ll address(void)
{
	return (struct sockaddr_ll){
		.sll_family = AF_PACKET, .sll_protocol = htons(PROTOCOL), .sll_halen = 6,
		.sll_ifindex = if_nametoindex("lo"),
	};
}

static void option(int fd, int name, int value)
{
	NEED(!setsockopt(fd, SOL_PACKET, name, &value, sizeof(value)));
}

static void make_ring(int fd, int name, int version)
{
	struct tpacket_req3 request = { .tp_block_size = BLOCK, .tp_block_nr = BLOCKS,
					.tp_frame_size = FRAME, .tp_frame_nr = FRAMES };

	if (version == 3 && name == PACKET_RX_RING) {
		request.tp_retire_blk_tov = 20;
		request.tp_sizeof_priv = PRIVATE;
		request.tp_feature_req_word = TP_FT_REQ_FILL_RXHASH;
	}
	NEED(!setsockopt(fd, SOL_PACKET, name, &request, sizeof(request)));
}

static void bind_to_lo(int fd)
{
	struct sockaddr_ll local = address();

	NEED(!bind(fd, (struct sockaddr *)&local, sizeof(local)));
}

/* Packets that one processor has yet to deliver are passed by those of another one. */
static void stay_on_processor(void)
{
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(sched_getcpu(), &own);
	NEED(!sched_setaffinity(0, sizeof(own), &own));
}

static void open_ring(bool receives, bool sends, bool has_offset)
{
	char *memory;

	stay_on_processor();
	interface_up();
	ring.version = check_argument[0] - '0';
	ring.fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	NEED(ring.fd >= 0);
	option(ring.fd, PACKET_VERSION, ring.version - 1);
	option(ring.fd, PACKET_RESERVE, 32);
	if (has_offset)
		option(ring.fd, PACKET_TX_HAS_OFF, 1);
	if (receives)
		make_ring(ring.fd, PACKET_RX_RING, ring.version);
	if (sends)
		make_ring(ring.fd, PACKET_TX_RING, ring.version);
	memory = mmap(NULL, (receives + sends) * LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	NEED(memory != MAP_FAILED);
	ring.rx = receives ? memory : NULL;
	ring.tx = sends ? memory + (receives ? LENGTH : 0) : NULL;
	bind_to_lo(ring.fd);
}

/* ---- packets ---- */

static void fill(uint64_t *packet, uint64_t number)
{
	packet[0] = number;
	check_fill(packet + 1, (WORDS - 1) * 8, number * 1000);
}

static void send_plain(void)
{
	struct sockaddr_ll to = address();
	static int fd = -1;
	uint64_t packet[WORDS];

	if (fd < 0)
		fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	fill(packet, ring.sent++);
	CHECK(sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)) ==
	      sizeof(packet));
}

static void take(const char *packet, uint32_t length)
{
	uint64_t words[WORDS];

	CHECK(length >= sizeof(words));
	memcpy(words, packet, sizeof(words));
	if (ring.has_gaps && words[0] > ring.received)
		ring.received = words[0];
	if (words[0] != ring.received || !check_filled(words + 1, (WORDS - 1) * 8, words[0] * 1000)) {
		fprintf(stderr, "# packet %llu instead of %llu of %llu\n", (unsigned long long)words[0],
			(unsigned long long)ring.received, (unsigned long long)ring.sent);
		check_failures++;
		_exit(1);
	}
	ring.received++;
}

/* ---- receiving ---- */

static char *frame(char *memory, uint32_t i)
{
	return memory + i * FRAME;	/* as blocks are whole frames */
}

static volatile unsigned long *status_of(char *frame)
{
	return (volatile unsigned long *)frame;
}

static bool is_ours(uint32_t i)
{
	struct tpacket_block_desc *block = (void *)(ring.rx + i * BLOCK);

	if (ring.version == 3)
		return __atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER;
	if (ring.version == 2)
		return __atomic_load_n((uint32_t *)frame(ring.rx, i), __ATOMIC_ACQUIRE) & TP_STATUS_USER;
	return __atomic_load_n(status_of(frame(ring.rx, i)), __ATOMIC_ACQUIRE) & TP_STATUS_USER;
}

static void take_block(void)
{
	struct tpacket_block_desc *block = (void *)(ring.rx + ring.next * BLOCK);
	struct tpacket_hdr_v1 *head = &block->hdr.bh1;
	struct tpacket3_hdr *packet = (void *)((char *)block + head->offset_to_first_pkt);
	uint64_t *private = (void *)((char *)block + block->offset_to_priv);
	uint32_t length = head->offset_to_first_pkt;

	CHECK(head->seq_num == ++ring.blocks);
	CHECK(head->num_pkts > 0);
	CHECK(ring.blocks <= BLOCKS || check_filled(private, PRIVATE, ring.blocks - BLOCKS));
	for (uint32_t i = 0; i < head->num_pkts; i++) {
		take((char *)packet + packet->tp_mac, packet->tp_snaplen);
		CHECK(!packet->tp_next_offset == (i == head->num_pkts - 1));
		if (!packet->tp_next_offset) {
			CHECK(head->ts_last_pkt.ts_sec == packet->tp_sec &&
			      head->ts_last_pkt.ts_nsec == packet->tp_nsec);
			length += (packet->tp_mac + packet->tp_snaplen + 7) & ~7u;
		}
		length += packet->tp_next_offset;
		packet = (void *)((char *)packet + packet->tp_next_offset);
	}
	CHECK(head->blk_len == length);
	check_fill(private, PRIVATE, ring.blocks);
	__atomic_store_n(&head->block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	ring.next = (ring.next + 1) % BLOCKS;
}

static void take_frame(void)
{
	char *at = frame(ring.rx, ring.next);
	struct tpacket2_hdr *v2 = (void *)at;
	struct tpacket_hdr *v1 = (void *)at;

	if (ring.version == 2) {
		take(at + v2->tp_mac, v2->tp_snaplen);
		__atomic_store_n(&v2->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	} else {
		take(at + v1->tp_mac, v1->tp_snaplen);
		__atomic_store_n(&v1->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	}
	ring.next = (ring.next + 1) % FRAMES;
}

static void take_one(void)
{
	if (ring.version == 3)
		take_block();
	else
		take_frame();
}

static void await_one(void)
{
	struct pollfd p = { .fd = ring.fd, .events = POLLIN };

	for (int i = 0; i < 20000 && !is_ours(ring.next); i++) {
		CHECK(poll(&p, 1, 1) >= 0);
		if (p.revents & POLLIN && !is_ours(ring.next))
			check_sleep_ms(1);
	}
	NEED(is_ours(ring.next));
}

static void take_all(void)
{
	while (ring.received < ring.sent) {
		await_one();
		take_one();
	}
	CHECK(!is_ours(ring.next));
}

/* A slow machine gives each packet of TPACKET_V3 a block of its own: then fewer are left unread. */
static void make_room(void)
{
	uint32_t full;

	do {
		full = 0;
		for (uint32_t i = 0; ring.version == 3 && i < BLOCKS; i++)
			full += is_ours(i);
		if (full > BLOCKS / 2)
			take_one();
	} while (full > BLOCKS / 2);
}

/* How many are left unread: some, and of TPACKET_V3 a part of a block as well. */
static uint64_t backlog(void)
{
	return ring.version == 3 ? 2 * (BLOCK / (WORDS * 8 + 200)) : FRAMES / 2;
}

static void keep_going(void)
{
	for (int i = 0; i < 7; i++) {
		make_room();
		send_plain();
	}
	while (ring.sent - ring.received > backlog()) {
		await_one();
		take_one();
	}
}

/* It is saved anywhere. */
static void busy(void)
{
	open_ring(true, false, false);
	for (int i = 0; i < 10; i++)
		keep_going();
	check_ready();
	while (!check_gone())
		keep_going();
	for (int i = 0; i < 100; i++)
		keep_going();
	take_all();
}

/* It is saved while a part of the ring has been filled, its place being in the middle. */
static void idle(void)
{
	open_ring(true, false, false);
	for (int i = 0; i < 13; i++) {
		keep_going();
		take_all();
	}
	for (int i = 0; i < 4; i++) {
		make_room();
		send_plain();
	}
	checkpoint_here();
	take_all();
	for (int i = 0; i < 100; i++)
		keep_going();
	take_all();
}

/* There is no room for more: what has been sent since is lost. */
static void full(void)
{
	uint64_t begin;

	open_ring(true, false, false);
	for (int i = 0; i < 5; i++) {
		keep_going();
		take_all();
	}
	begin = ring.received;
	for (unsigned int i = 0; i < 3 * FRAMES; i++)
		send_plain();
	checkpoint_here();
	while (is_ours(ring.next))
		take_one();
	CHECK(ring.received - begin >= BLOCKS && ring.received < ring.sent);
	ring.sent = ring.received;
	for (int i = 0; i < 100; i++)
		keep_going();
	take_all();
}

/* Until the file GO is there: what others are to get. */
static void flood(void)
{
	stay_on_processor();
	interface_up();
	check_ready();
	while (!check_gone())
		for (int i = 0; i < 100; i++)
			send_plain();
}

/* Packets come all the time, also while it stands still. */
static void flooded(void)
{
	ring.has_gaps = true;
	open_ring(true, false, false);
	check_ready();
	for (int left = 300; left; left -= check_gone()) {
		await_one();
		take_one();
		if (ring.received % 64 == 0)
			check_sleep_ms(3);
	}
}

/* Two processes have it mapped; the other one uses it. */
static void shared(void)
{
	int status;
	pid_t child;

	open_ring(true, false, false);
	keep_going();
	take_all();
	child = fork();
	if (!child) {
		check_wait();
		for (int i = 0; i < 20; i++)
			keep_going();
		take_all();
		_exit(check_failures != 0);
	}
	checkpoint_here();
	CHECK(waitpid(child, &status, 0) == child && !status);
}

/* ---- sending ---- */

static void request(uint64_t number)
{
	char *at = frame(ring.tx, ring.next_tx);
	uint32_t offset = (ring.version == 1 ? TPACKET_HDRLEN : ring.version == 2 ? TPACKET2_HDRLEN :
			   TPACKET3_HDRLEN) - sizeof(struct sockaddr_ll);
	struct tpacket2_hdr *v2 = (void *)at;
	struct tpacket3_hdr *v3 = (void *)at;
	struct tpacket_hdr *v1 = (void *)at;

	if (check_argument[1]) {	/* PACKET_TX_HAS_OFF */
		offset += 64;
		v2->tp_mac = v2->tp_net = offset;
	}
	fill((uint64_t *)(at + offset), number);
	switch (ring.version) {
	case 1:
		CHECK(v1->tp_status == TP_STATUS_AVAILABLE);
		v1->tp_len = WORDS * 8;
		__atomic_store_n(&v1->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
		break;
	case 2:
		CHECK(v2->tp_status == TP_STATUS_AVAILABLE);
		v2->tp_len = WORDS * 8;
		__atomic_store_n(&v2->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
		break;
	default:
		CHECK(v3->tp_status == TP_STATUS_AVAILABLE);
		v3->tp_len = WORDS * 8;
		__atomic_store_n(&v3->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
	}
	ring.next_tx = (ring.next_tx + 1) % FRAMES;
}

static void push(void)
{
	struct sockaddr_ll to = address();

	CHECK(sendto(ring.fd, NULL, 0, 0, (struct sockaddr *)&to, sizeof(to)) >= 0);
}

static void take_plain(int fd)
{
	uint64_t packet[WORDS];

	while (ring.received < ring.sent) {
		NEED(recv(fd, packet, sizeof(packet), 0) == sizeof(packet));
		take((char *)packet, sizeof(packet));
	}
}

/* Some have been requested, and not yet sent. */
static void sending(void)
{
	struct timeval patience = { .tv_sec = 20 };
	int fd;

	open_ring(false, true, check_argument[1]);
	fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	bind_to_lo(fd);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (int i = 0; i < 31; i++) {
		request(ring.sent++);
		push();
		take_plain(fd);
	}
	for (int i = 0; i < 5; i++)
		request(ring.sent++);
	checkpoint_here();
	push();
	take_plain(fd);
	for (int i = 0; i < 100; i++) {
		request(ring.sent++);
		request(ring.sent++);
		push();
		take_plain(fd);
	}
}

/* Both in one. */
static void both(void)
{
	open_ring(true, true, false);
	for (int i = 0; i < 10; i++) {
		make_room();
		request(ring.sent++);
		push();
	}
	take_all();
	for (int i = 0; i < 3; i++)
		request(ring.sent++);
	push();
	request(ring.sent++);
	checkpoint_here();
	push();
	take_all();
	for (int i = 0; i < 100; i++) {
		request(ring.sent++);
		push();
		take_all();
	}
}

/* ---- what is refused ---- */

/* A part of the memory has been unmapped. */
static void part(void)
{
	open_ring(true, false, false);
	NEED(!munmap(ring.rx + LENGTH - 4096, 4096));
	checkpoint_here();
}

/* Nobody has the descriptor. */
static void closed(void)
{
	open_ring(true, false, false);
	close(ring.fd);
	checkpoint_here();
}

static const struct check checks[] = {
	{ "busy", busy },
	{ "idle", idle },
	{ "full", full },
	{ "flood", flood },
	{ "flooded", flooded },
	{ "shared", shared },
	{ "sending", sending },
	{ "both", both },
	{ "part", part },
	{ "closed", closed },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
