// SPDX-License-Identifier: GPL-2.0
/*
 * A netlink socket that hears of every change of a network interface, by a group,
 * and one that asks for their list.
 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "check.h"

static char buffer[65536];

static uint32_t port_of(int fd)
{
	struct sockaddr_nl local;
	socklen_t length = sizeof(local);

	CHECK(!getsockname(fd, (struct sockaddr *)&local, &length));
	return local.nl_pid;
}

/* Changes the loopback interface: everybody in the group is told. */
static void change_mtu(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(!ioctl(fd, SIOCGIFMTU, &request));
	request.ifr_mtu--;
	CHECK(!ioctl(fd, SIOCSIFMTU, &request));
	close(fd);
}

static void expect(int fd, int type)
{
	const struct nlmsghdr *head = (const void *)buffer;

	CHECK(recv(fd, buffer, sizeof(buffer), 0) > (ssize_t)sizeof(*head));
	CHECK(head->nlmsg_type == type);
}

static void ask(int fd)
{
	struct { struct nlmsghdr head; struct rtgenmsg all; } list = {
		{ sizeof(list), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC },
	};

	CHECK(send(fd, &list, sizeof(list), 0) == sizeof(list));
	expect(fd, RTM_NEWLINK);
	CHECK(((struct nlmsghdr *)buffer)->nlmsg_pid == port_of(fd));
	do
		CHECK(recv(fd, buffer, sizeof(buffer), 0) > 0);
	while (((struct nlmsghdr *)buffer)->nlmsg_type != NLMSG_DONE && !check_failures);
}

int main(int argc, char **argv)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int events, list, one = 1, value = 0;
	socklen_t length = sizeof(value);
	uint32_t port;

	check_begin(argc, argv);
	events = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	list = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	NEED(events >= 0 && !bind(events, (struct sockaddr *)&local, sizeof(local)));
	NEED(!setsockopt(list, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)));
	ask(list);
	change_mtu();
	expect(events, RTM_NEWLINK);
	port = port_of(events);
	check_ready();
	check_wait();
	CHECK(port_of(events) == port);
	CHECK(!getsockopt(list, SOL_NETLINK, NETLINK_EXT_ACK, &value, &length) && value == 1);
	CHECK(fcntl(list, F_GETFL) & O_NONBLOCK && fcntl(events, F_GETFD) == FD_CLOEXEC);
	ask(list);
	change_mtu();
	expect(events, RTM_NEWLINK);
	return check_end();
}
