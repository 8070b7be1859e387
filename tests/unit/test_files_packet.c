// SPDX-License-Identifier: GPL-2.0
/* Packet sockets, in a network namespace of the test's own: see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"
#include "resource/packet_diag.h"

#define PROTOCOL	0x88b5		/* for local experiments */

/* ---- the network ------------------------------------------------------------------------- */

/* lo, up or down. */
static int set_lo(bool up)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	err = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) ? -errno : 0;
	close(fd);
	return err;
}

static bool has_network;

static int set_up(void **state)
{
	int fd;

	if (!unshare(CLONE_NEWNET) && !set_lo(true)) {
		fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
		has_network = fd >= 0;
		close(fd);
	}
	return files_set_up(state);
}

static struct sockaddr_ll at_lo(unsigned int protocol)
{
	return (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_protocol = htons(protocol),
				     .sll_ifindex = if_nametoindex("lo"), .sll_halen = 6 };
}

static void open_at_lo(int type, unsigned int protocol, int number)
{
	struct sockaddr_ll to = at_lo(protocol);

	files_at(socket(AF_PACKET, type, 0), number);
	must(!bind(number, (struct sockaddr *)&to, sizeof(to)));
}

static void send_packet(const char *text)
{
	struct sockaddr_ll to = at_lo(PROTOCOL);
	int fd = socket(AF_PACKET, SOCK_DGRAM, 0);
	ssize_t length = strlen(text);

	must(sendto(fd, text, length, 0, (struct sockaddr *)&to, sizeof(to)) == length);
	close(fd);
}

static int value_of(int fd, int name)
{
	socklen_t length = sizeof(int);
	int value = -1;

	must(!getsockopt(fd, SOL_PACKET, name, &value, &length));
	return value;
}

static void set_value(int fd, int name, int value)
{
	must(!setsockopt(fd, SOL_PACKET, name, &value, sizeof(value)));
}

static bool is_bound(int fd, unsigned int protocol, const char *interface)
{
	struct sockaddr_ll local = {};
	socklen_t length = sizeof(local);

	must(!getsockname(fd, (struct sockaddr *)&local, &length));
	return ntohs(local.sll_protocol) == protocol &&
	       (unsigned int)local.sll_ifindex == (interface ? if_nametoindex(interface) : 0);
}

/* ---- addresses ------------------------------------------------------------------------------ */

static void make_bound(void)
{
	open_at_lo(SOCK_DGRAM, PROTOCOL, 10);
	open_at_lo(SOCK_RAW, ETH_P_ALL, 11);
	files_at(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP)), 12);
	files_at(socket(AF_PACKET, SOCK_DGRAM, 0), 13);
	open_at_lo(SOCK_RAW, 0, 14);
	files_at(socket(AF_PACKET, SOCK_PACKET, htons(PROTOCOL)), 15);
	files_at(socket(AF_PACKET, SOCK_PACKET, htons(PROTOCOL)), 16);
	must(!bind(16, &(struct sockaddr){ AF_PACKET, "lo" }, sizeof(struct sockaddr)));
}

static void use_bound(void)
{
	must(is_bound(10, PROTOCOL, "lo") && is_bound(11, ETH_P_ALL, "lo"));
	must(is_bound(12, ETH_P_IP, NULL) && is_bound(13, 0, NULL) && is_bound(14, 0, "lo"));
	send_packet("packet");
	must(files_hears(10, "packet") && files_silent(12));
	must(recv(15, NULL, 0, MSG_TRUNC) == 14 + 6 && recv(16, NULL, 0, MSG_TRUNC) == 14 + 6);
	must(recv(11, NULL, 0, MSG_TRUNC) == 14 + 6);
}

/* What has not been read is lost. */
static void make_unread(void)
{
	open_at_lo(SOCK_DGRAM, PROTOCOL, 10);
	send_packet("lost");
}

static void use_unread(void)
{
	must(files_silent(10));
	send_packet("packet");
	must(files_hears(10, "packet"));
}

/* ---- options, filter, memberships, fanout ---------------------------------------------------- */

static const struct { int name, value; } options[] = {
	{ PACKET_AUXDATA, 1 }, { PACKET_ORIGDEV, 1 }, { PACKET_VERSION, TPACKET_V3 },
	{ PACKET_RESERVE, 64 }, { PACKET_LOSS, 1 }, { PACKET_VNET_HDR, 1 },
	{ PACKET_TIMESTAMP, 64 }, { PACKET_TX_HAS_OFF, 1 }, { PACKET_QDISC_BYPASS, 1 },
	{ PACKET_IGNORE_OUTGOING, 1 },
};

#define NR_OPTIONS	(sizeof(options) / sizeof(*options))

static void make_options(void)
{
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		files_at(socket(AF_PACKET, SOCK_RAW, 0), 20 + i);
		set_value(20 + i, options[i].name, options[i].value);
	}
}

static void use_options(void)
{
	for (size_t i = 0; i < NR_OPTIONS; i++)
		must(value_of(20 + i, options[i].name) == options[i].value);
}

/* Two packets: the filter wants those that begin with a y. */
static void make_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ, 'y', 0, 1),
		BPF_STMT(BPF_RET, 100), BPF_STMT(BPF_RET, 0),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	open_at_lo(SOCK_DGRAM, PROTOCOL, 10);
	must(!setsockopt(10, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

static void use_filter(void)
{
	send_packet("no");
	must(files_silent(10));
	send_packet("yes");
	must(files_hears(10, "yes"));
}

static const uint8_t group_address[6] = { 0x01, 0x00, 0x5e, 1, 2, 3 };

static void make_members(void)
{
	struct packet_mreq all = { .mr_ifindex = if_nametoindex("lo"), .mr_type = PACKET_MR_PROMISC },
			   group = { .mr_ifindex = all.mr_ifindex, .mr_alen = 6,
				     .mr_type = PACKET_MR_MULTICAST };

	memcpy(group.mr_address, group_address, sizeof(group_address));
	open_at_lo(SOCK_DGRAM, PROTOCOL, 10);
	for (int i = 0; i < 2; i++)
		must(!setsockopt(10, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)));
	must(!setsockopt(10, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof(group)));
	set_value(10, PACKET_COPY_THRESH, 77);
}

static const struct packet_diag_mclist *find(const struct packet_state *state, int type)
{
	for (size_t i = 0; i < state->nr_members; i++)
		if (state->member[i].pdmc_type == type &&
		    state->member[i].pdmc_index == if_nametoindex("lo"))
			return &state->member[i];
	return NULL;
}

static void use_members(void)
{
	const struct packet_diag_mclist *all, *group;
	struct file_table *t = file_table_new(false);
	struct packet_state state;
	struct stat st;

	must(!fstat(10, &st) && !packet_diag(t, st.st_ino, &state));
	all = find(&state, PACKET_MR_PROMISC);
	group = find(&state, PACKET_MR_MULTICAST);
	must(all && all->pdmc_count == 2 && group && group->pdmc_count == 1);
	must(group->pdmc_alen == 6 && !memcmp(group->pdmc_addr, group_address, 6));
	must(state.info.pdi_copy_thresh == 77);
	packet_state_free(&state);
	file_table_free(t);
}

static void make_group(void)
{
	for (int fd = 10; fd < 12; fd++) {
		open_at_lo(SOCK_DGRAM, PROTOCOL, fd);
		set_value(fd, PACKET_FANOUT, 7 | PACKET_FANOUT_LB << 16);
	}
	for (int fd = 12; fd < 14; fd++) {	/* which looks like none */
		open_at_lo(SOCK_DGRAM, PROTOCOL, fd);
		set_value(fd, PACKET_FANOUT, PACKET_FANOUT_HASH << 16);
	}
}

static void use_group(void)
{
	must(value_of(10, PACKET_FANOUT) == (7 | PACKET_FANOUT_LB << 16) &&
	     value_of(11, PACKET_FANOUT) == (7 | PACKET_FANOUT_LB << 16));
	send_packet("one");
	send_packet("two");
	must(files_hears(11, "one") && files_hears(10, "two"));	/* in the old order */
	must(files_silent(12) != files_silent(13));
}

static void make_program(void)
{
	open_at_lo(SOCK_DGRAM, PROTOCOL, 10);
	set_value(10, PACKET_FANOUT, 8 | PACKET_FANOUT_CBPF << 16);
}

static void use_nothing(void)
{
}

/* ---- interfaces that are down -------------------------------------------------------------- */

static void lo_up(void)
{
	must(!set_lo(true));
}

static void make_down(void)
{
	open_at_lo(SOCK_DGRAM, PROTOCOL, 10);
	must(!set_lo(false));
	must(recv(10, NULL, 0, MSG_DONTWAIT) < 0 && errno == ENETDOWN);
}

/* It has been told once. */
static void use_down(void)
{
	must(files_silent(10));
	lo_up();
	send_packet("packet");
	must(files_hears(10, "packet"));
}

/* ---- what fails ----------------------------------------------------------------------------- */

/* In a namespace that cr_checkpoint is not in. */
static void make_elsewhere(void)
{
	must(!unshare(CLONE_NEWNET));
	files_at(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), 10);
}

static void make_at_lo(void)
{
	open_at_lo(SOCK_RAW, PROTOCOL, 10);
}

/* cr_restart in a namespace whose lo has another name. */
static void rename_lo(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_newname = "kcr0" };
	int fd;

	must(!unshare(CLONE_NEWNET));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && !ioctl(fd, SIOCSIFNAME, &request));
	close(fd);
}

static void test_fails(void **state)
{
	(void)state;
	if (!has_network)
		skip();
	files_cycle(&(struct files_test){ .make = make_program, .use = use_nothing,
					  .expect_save = -EOPNOTSUPP });
	files_cycle(&(struct files_test){ .make = make_elsewhere, .use = use_nothing,
					  .expect_save = -EOPNOTSUPP });
	files_cycle(&(struct files_test){ .make = make_at_lo, .use = use_nothing,
					  .before_restart = rename_lo,
					  .expect_restart = -ENODEV });
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void cycle(void (*make)(void), void (*use)(void))
{
	if (!has_network)
		skip();
	files_cycle(&(struct files_test){ .make = make, .use = use });
}

static void test_bound(void **state)
{
	(void)state;
	cycle(make_bound, use_bound);
	cycle(make_unread, use_unread);
}

static void test_options(void **state)
{
	(void)state;
	cycle(make_options, use_options);
	cycle(make_filter, use_filter);
	cycle(make_members, use_members);
}

static void test_group(void **state)
{
	(void)state;
	cycle(make_group, use_group);
}

static void test_down(void **state)
{
	(void)state;
	cycle(make_down, use_down);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound), cmocka_unit_test(test_options),
		cmocka_unit_test(test_group), cmocka_unit_test(test_down),
		cmocka_unit_test(test_fails),
	};

	return cmocka_run_group_tests(tests, set_up, files_tear_down);
}
