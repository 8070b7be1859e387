// SPDX-License-Identifier: GPL-2.0
/*
 * Packet sockets: what reaches them, by which interface, in which group; and what is
 * refused.  Their options are in socket_options.c.  The interface lo is brought up.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"

#define PROTOCOL	0x88b5		/* for local experiments */

static void interface_up(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	NEED(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &request));
	close(fd);
}

static struct sockaddr_ll address(const char *interface, unsigned int protocol)
{
	return (struct sockaddr_ll){
		.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_halen = 6,
		.sll_ifindex = interface ? if_nametoindex(interface) : 0,
	};
}

static int open_packet(int type, const char *interface, unsigned int protocol)
{
	struct sockaddr_ll a = address(interface, protocol);
	int fd = socket(AF_PACKET, type, 0);

	NEED(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

/* To nobody in particular, as its address is 0. */
static void send_packet(const char *interface, const char *text)
{
	struct sockaddr_ll to = address(interface, PROTOCOL);
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t length = strlen(text);

	CHECK(sendto(fd, text, length, 0, (struct sockaddr *)&to, sizeof(to)) == length);
	close(fd);
}

static bool hears(int fd, const char *text)
{
	struct timeval patience = { .tv_sec = 20 };
	char buffer[128] = "";

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return recv(fd, buffer, sizeof(buffer) - 1, 0) >= (ssize_t)strlen(text) &&
	       !strncmp(buffer, text, strlen(text));
}

static bool is_silent(int fd)
{
	return recv(fd, NULL, 0, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static bool is_bound(int fd, const char *interface, unsigned int protocol)
{
	struct sockaddr_ll local = {};
	socklen_t length = sizeof(local);

	return !getsockname(fd, (struct sockaddr *)&local, &length) &&
	       local.sll_protocol == htons(protocol) &&
	       local.sll_ifindex == (interface ? (int)if_nametoindex(interface) : 0);
}

/* ---- bound ---- */

static void attach_filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ, 'y', 0, 1),
		BPF_STMT(BPF_RET, 100), BPF_STMT(BPF_RET, 0),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	NEED(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

/* One of each type and way to be bound, and one that has a filter. */
static void bound(void)
{
	struct sockaddr by_name = { AF_PACKET, "lo" };
	int cooked, raw, all, none, old, any, choosy;

	interface_up("lo");
	cooked = open_packet(SOCK_DGRAM, "lo", PROTOCOL);
	raw = open_packet(SOCK_RAW | SOCK_NONBLOCK, "lo", ETH_P_ALL);
	all = socket(AF_PACKET, SOCK_DGRAM, htons(PROTOCOL));
	none = socket(AF_PACKET, SOCK_DGRAM, 0);
	old = socket(AF_PACKET, SOCK_PACKET, htons(PROTOCOL));
	NEED(!bind(old, &by_name, sizeof(by_name)));
	any = open_packet(SOCK_RAW, "lo", 0);
	choosy = open_packet(SOCK_DGRAM, "lo", PROTOCOL);
	attach_filter(choosy);
	send_packet("lo", "lost");
	NEED(hears(all, "lost"));
	checkpoint_here();
	CHECK(is_bound(cooked, "lo", PROTOCOL) && is_bound(raw, "lo", ETH_P_ALL));
	CHECK(is_bound(all, NULL, PROTOCOL) && is_bound(none, NULL, 0) && is_bound(any, "lo", 0));
	CHECK(fcntl(raw, F_GETFL) & O_NONBLOCK);
	send_packet("lo", "no");
	send_packet("lo", "yes");
	if (hears(cooked, "lost"))	/* it was not restarted */
		CHECK(hears(cooked, "no"));
	CHECK(hears(cooked, "yes") && hears(all, "no") && hears(all, "yes"));
	CHECK(hears(choosy, "yes") && is_silent(none) && is_silent(any));
	CHECK(recv(old, NULL, 0, MSG_TRUNC) > 14);
}

/* ---- group ---- */

static void join(int fd, uint32_t group)
{
	NEED(!setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)));
}

static uint32_t group_of(int fd)
{
	socklen_t length = sizeof(uint32_t);
	uint32_t group = 0;

	CHECK(!getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, &length));
	return group;
}

/* Two processes get every second packet each. */
static void group(void)
{
	const uint32_t id = 7 | (PACKET_FANOUT_LB | PACKET_FANOUT_FLAG_DEFRAG) << 16;
	int mine, theirs, status, answer[2];
	uint32_t usual;
	pid_t child;

	interface_up("lo");
	mine = open_packet(SOCK_DGRAM, "lo", PROTOCOL);
	theirs = open_packet(SOCK_DGRAM, "lo", PROTOCOL);
	join(mine, id);
	usual = group_of(mine);
	join(theirs, id);
	NEED(!pipe(answer));
	child = fork();
	if (!child) {
		char go;

		close(mine);
		_exit(read(answer[0], &go, 1) != 1 || !hears(theirs, "") || group_of(theirs) != usual);
	}
	close(theirs);
	checkpoint_here();
	CHECK(group_of(mine) == usual);
	send_packet("lo", "one");
	send_packet("lo", "two");
	CHECK(write(answer[1], "", 1) == 1 && hears(mine, "") && is_silent(mine));
	CHECK(waitpid(child, &status, 0) == child && !status);
}

/* ---- interface ---- */

/* By the interface of the argument, whose other end is kcr1. */
static void interface(void)
{
	struct packet_mreq promiscuous = { .mr_type = PACKET_MR_PROMISC };
	int fd = open_packet(SOCK_DGRAM, check_argument, PROTOCOL);

	promiscuous.mr_ifindex = if_nametoindex(check_argument);
	NEED(!setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous,
			 sizeof(promiscuous)));
	checkpoint_here();
	CHECK(is_bound(fd, check_argument, PROTOCOL));
	send_packet("kcr1", "packet");
	CHECK(hears(fd, "packet"));
}

/* ---- dropped ---- */

/* Opened by root, used by the user 1000. */
static void dropped(void)
{
	int fd;

	interface_up("lo");
	fd = open_packet(SOCK_DGRAM, "lo", PROTOCOL);
	NEED(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
	NEED(!prctl(PR_SET_DUMPABLE, 1));
	checkpoint_here();
	CHECK(is_bound(fd, "lo", PROTOCOL));
	CHECK(socket(AF_PACKET, SOCK_DGRAM, 0) < 0);
}

/* ---- what is refused ---- */

static void program(void)
{
	interface_up("lo");
	join(open_packet(SOCK_DGRAM, "lo", PROTOCOL), 8 | PACKET_FANOUT_CBPF << 16);
	checkpoint_here();
}

/* Its interface, the argument, is removed by the case. */
static void removed(void)
{
	open_packet(SOCK_DGRAM, check_argument, PROTOCOL);
	checkpoint_here();
}

static const struct check checks[] = {
	{ "bound", bound },
	{ "group", group },
	{ "interface", interface },
	{ "dropped", dropped },
	{ "program", program },
	{ "removed", removed },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
