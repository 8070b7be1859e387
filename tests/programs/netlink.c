// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink sockets of other protocols than routes (sockets.c): events of devices, a
 * multicast group of generic netlink; and what is refused.
 */
#include <linux/genetlink.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "check.h"

static char buffer[65536];

static int open_netlink(int protocol, uint32_t groups)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	NEED(fd >= 0 && !bind(fd, (struct sockaddr *)&local, sizeof(local)));
	return fd;
}

/* ---- uevent ---- */

static void change_device(void)
{
	int fd = open("/sys/class/mem/null/uevent", O_WRONLY);

	CHECK(fd >= 0 && write(fd, "change", 6) == 6);
	close(fd);
}

static bool hears_change(int fd)
{
	ssize_t got = recv(fd, buffer, sizeof(buffer) - 1, 0);

	buffer[got > 0 ? got : 0] = '\0';
	return !strncmp(buffer, "change@", 7) && strstr(buffer, "/null");
}

static void uevent(void)
{
	int fd = open_netlink(NETLINK_KOBJECT_UEVENT, 1);

	change_device();
	NEED(hears_change(fd));
	checkpoint_here();
	change_device();
	CHECK(hears_change(fd));
}

/* ---- generic ---- */

static void join(int fd, uint32_t group)
{
	NEED(!setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)));
}

static uint32_t memberships(int fd)
{
	uint32_t groups[32] = {};
	socklen_t length = sizeof(groups);

	CHECK(!getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups, &length));
	return groups[0];
}

/* Asks the controller about itself. */
static bool is_answered(int fd)
{
	struct {
		struct nlmsghdr head;
		struct genlmsghdr generic;
		struct nlattr attribute;
		char name[8];
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = GENL_ID_CTRL,
			  .nlmsg_flags = NLM_F_REQUEST },
		.generic = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
		.attribute = { .nla_len = NLA_HDRLEN + 7, .nla_type = CTRL_ATTR_FAMILY_NAME },
		.name = "nlctrl",
	};
	const struct nlmsghdr *head = (const void *)buffer;

	CHECK(send(fd, &request, sizeof(request), 0) == sizeof(request));
	return recv(fd, buffer, sizeof(buffer), 0) > (ssize_t)sizeof(*head) &&
	       head->nlmsg_type == GENL_ID_CTRL;
}

/* The controller's group `notify`, which has the number of the controller. */
static void generic(void)
{
	int fd = open_netlink(NETLINK_GENERIC, 0);

	join(fd, GENL_ID_CTRL);
	NEED(memberships(fd) == 1u << (GENL_ID_CTRL - 1) && is_answered(fd));
	checkpoint_here();
	CHECK(memberships(fd) == 1u << (GENL_ID_CTRL - 1) && is_answered(fd));
}

/* ---- what is refused ---- */

/* A dump that has not been read. */
static void dump(void)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg generic;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.generic = { .rtgen_family = AF_UNSPEC },
	};
	const struct nlmsghdr *head = (const void *)buffer;
	int fd = open_netlink(NETLINK_ROUTE, 0);

	NEED(send(fd, &request, sizeof(request), 0) == sizeof(request));
	checkpoint_here();
	CHECK(recv(fd, buffer, sizeof(buffer), 0) > (ssize_t)sizeof(*head));
	CHECK(head->nlmsg_type == RTM_NEWLINK);
}

/* Packets that the firewall passes on: queue 4242. */
static void queue(void)
{
	struct {
		struct nlmsghdr head;
		struct nfgenmsg filter;
		struct nlattr attribute;
		struct nfqnl_msg_config_cmd command;
	} request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
			  .nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG },
		.filter = { .nfgen_family = AF_UNSPEC, .res_id = __builtin_bswap16(4242) },
		.attribute = { .nla_len = NLA_HDRLEN + sizeof(request.command),
			       .nla_type = NFQA_CFG_CMD },
		.command = { .command = NFQNL_CFG_CMD_BIND },
	};
	const struct nlmsghdr *head = (const void *)buffer;
	const struct nlmsgerr *answer = (const void *)(buffer + NLMSG_HDRLEN);
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);

	if (fd < 0)
		check_skip("no nfnetlink");
	NEED(send(fd, &request, sizeof(request), 0) == sizeof(request));
	NEED(recv(fd, buffer, sizeof(buffer), 0) > 0 && head->nlmsg_type == NLMSG_ERROR);
	if (answer->error)
		check_skip("no nfnetlink_queue");
	checkpoint_here();
}

static const struct check checks[] = {
	{ "uevent", uevent },
	{ "generic", generic },
	{ "dump", dump },
	{ "queue", queue },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
