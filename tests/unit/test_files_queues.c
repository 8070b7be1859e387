// SPDX-License-Identifier: GPL-2.0
/* Message queues and netlink sockets: see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"

/* ---- message queues ---------------------------------------------------------------------- */

static char queue_name[32];

static void give(mqd_t queue, const char *text, unsigned int priority)
{
	must(!mq_send(queue, text, strlen(text) + 1, priority));
}

static void expect(mqd_t queue, const char *text, unsigned int priority)
{
	char buffer[32] = "";
	unsigned int got;

	must(mq_receive(queue, buffer, sizeof(buffer), &got) == (ssize_t)strlen(text) + 1);
	must(!strcmp(buffer, text) && got == priority);
}

static void open_queue(int flags, int number)
{
	struct mq_attr limits = { .mq_maxmsg = 4, .mq_msgsize = 32 };

	files_at(mq_open(queue_name, flags | O_NONBLOCK, 0600, &limits), number);
}

static void make_queue(void)
{
	open_queue(O_CREAT | O_EXCL | O_RDWR, 10);
	open_queue(O_WRONLY, 11);
	give(10, "low", 1);
	give(11, "high", 2);
	give(11, "low too", 1);
}

static void use_queue(void)
{
	char buffer[32];

	expect(10, "high", 2);
	expect(10, "low", 1);
	expect(10, "low too", 1);
	must(mq_receive(10, buffer, sizeof(buffer), NULL) < 0 && errno == EAGAIN);
	give(11, "more", 0);
	expect(10, "more", 0);
	must(mq_receive(11, buffer, sizeof(buffer), NULL) < 0 && errno == EBADF);
	mq_unlink(queue_name);
}

static void make_nameless(void)
{
	make_queue();
	must(!mq_unlink(queue_name));
}

static void remove_queue(void)
{
	must(!mq_unlink(queue_name));
}

/* What a program that is not saved has done to it meanwhile. */
static void change_queue(void)
{
	mqd_t queue = mq_open(queue_name, O_RDWR | O_NONBLOCK);
	char buffer[32];

	must(queue >= 0);
	while (mq_receive(queue, buffer, sizeof(buffer), NULL) >= 0)
		;
	give(queue, "of others", 5);
	mq_close(queue);
}

static void other_limits(void)
{
	struct mq_attr limits = { .mq_maxmsg = 4, .mq_msgsize = 16 };

	remove_queue();
	must(mq_open(queue_name, O_CREAT | O_RDWR, 0600, &limits) >= 0);
}

static void make_sender(void)
{
	open_queue(O_CREAT | O_EXCL | O_WRONLY, 10);
	give(10, "mine", 0);
}

static void use_sender(void)
{
	mqd_t queue = mq_open(queue_name, O_RDWR | O_NONBLOCK);
	char buffer[32];

	give(10, "mine too", 0);
	expect(queue, "of others", 5);
	expect(queue, "mine too", 0);
	must(mq_receive(queue, buffer, sizeof(buffer), NULL) < 0 && errno == EAGAIN);
	mq_unlink(queue_name);
}

/* Full, and somebody who is not saved waits to send one more. */
static void make_full(void)
{
	make_queue();
	give(10, "fourth", 1);
}

static pid_t waiting;

static void wait_for_room(struct file_table *t, pid_t pid)
{
	char path[64], state[64] = "", expected[16];
	int fd;

	(void)t;
	(void)pid;
	waiting = fork();
	if (!waiting) {
		give(mq_open(queue_name, O_WRONLY), "of others", 3);
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/syscall", waiting);
	snprintf(expected, sizeof(expected), "%d ", SYS_mq_timedsend);
	for (int i = 0; i < 5000 && strncmp(state, expected, strlen(expected)); i++) {
		usleep(1000);
		fd = open(path, O_RDONLY);
		must(fd >= 0 && read(fd, state, sizeof(state) - 1) >= 0);
		close(fd);
	}
}

/* The program that was saved and ran on has lost none of them. */
static void count_messages(void)
{
	mqd_t queue = mq_open(queue_name, O_RDWR | O_NONBLOCK);
	char buffer[32];
	int count = 0;

	must(queue >= 0);
	for (int i = 0; i < 5000 && count < 5; i++) {
		if (mq_receive(queue, buffer, sizeof(buffer), NULL) >= 0)
			count++;
		else
			usleep(1000);
	}
	must(count == 5 && mq_receive(queue, buffer, sizeof(buffer), NULL) < 0);
	mq_close(queue);
}

static void use_full(void)
{
	struct mq_attr waits = {};

	must(!mq_setattr(10, &waits, NULL));
	expect(10, "of others", 3);
	expect(10, "high", 2);
	expect(10, "low", 1);
	expect(10, "low too", 1);
	expect(10, "fourth", 1);
	mq_unlink(queue_name);
}

static int seen_queue = -1;
static volatile sig_atomic_t interrupted, changed;

static void look(int sig)
{
	struct mq_attr attr;

	(void)sig;
	interrupted = 1;
	if (!mq_getattr(seen_queue, &attr) && attr.mq_curmsgs != 3)
		changed = 1;
}

/* Whatever signal would end us finds all as the program had it. */
static void save_interrupted(struct file_table *t, pid_t pid)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = {};
	struct sigaction action = { .sa_handler = look, .sa_flags = SA_RESTART }, before;

	(void)pid;
	seen_queue = mq_open(queue_name, O_RDONLY);
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 2000 && !changed; i++)
		assert_int_equal(file_table_save(t), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	mq_close(seen_queue);
	assert_true(interrupted && !changed);
}

static void make_notified(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };

	make_nameless();
	must(!mq_notify(10, &event));
}

static void use_nothing(void)
{
}

static void test_message_queue(void **state)
{
	(void)state;
	snprintf(queue_name, sizeof(queue_name), "/kcr-test-%d", (int)getpid());
	files_cycle(&(struct files_test){ .make = make_queue, .use = use_queue });
	files_cycle(&(struct files_test){ .make = make_queue, .use = use_queue,
					  .before_restart = remove_queue });
	files_cycle(&(struct files_test){ .make = make_queue, .use = use_queue,
					  .before_restart = change_queue });
	files_cycle(&(struct files_test){ .make = make_nameless, .use = use_queue });
	files_cycle(&(struct files_test){ .make = make_queue, .use = use_queue,
					  .before_save = save_interrupted });
	files_cycle(&(struct files_test){ .make = make_sender, .use = use_sender,
					  .before_restart = change_queue });
	files_cycle(&(struct files_test){ .make = make_full, .use = use_full,
					  .before_save = wait_for_room,
					  .before_restart = count_messages });
	waitpid(waiting, NULL, 0);
	files_cycle(&(struct files_test){ .make = make_queue, .use = use_nothing,
					  .before_restart = other_limits,
					  .expect_restart = -EEXIST });
	mq_unlink(queue_name);
	files_cycle(&(struct files_test){ .make = make_notified, .use = use_nothing,
					  .expect_save = -EOPNOTSUPP });
}

/* ---- netlink ----------------------------------------------------------------------------- */

static uint32_t port;

static uint32_t port_of(int fd)
{
	struct sockaddr_nl local;
	socklen_t length = sizeof(local);

	must(!getsockname(fd, (struct sockaddr *)&local, &length));
	return local.nl_pid;
}

static void make_netlink(void)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_pid = port };
	int group = RTNLGRP_LINK, one = 1;

	files_at(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), 10);
	must(!bind(10, (struct sockaddr *)&local, sizeof(local)));
	must(!setsockopt(10, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)));
	must(!setsockopt(10, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)));
	files_at(socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT), 11);
}

static bool is_set_up(int fd)
{
	uint32_t groups[8] = {};
	socklen_t length = sizeof(groups);
	int value = 0;

	must(!getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups, &length));
	length = sizeof(value);
	must(!getsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &value, &length));
	return groups[0] == 1u << (RTNLGRP_LINK - 1) && value == 1;
}

static void use_netlink(void)
{
	must(port_of(10) == port && is_set_up(10));
	must(port_of(11) == 0);
}

static int taken = -1;

static void take_port(void)
{
	struct sockaddr_nl local = { .nl_family = AF_NETLINK, .nl_pid = port };

	taken = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	must(!bind(taken, (struct sockaddr *)&local, sizeof(local)));
}

static void use_other_port(void)
{
	must(port_of(10) && port_of(10) != port && is_set_up(10));
}

static void ask_for_list(void)
{
	struct { struct nlmsghdr head; struct rtgenmsg all; } list = {
		{ sizeof(list), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC },
	};

	files_at(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), 10);
	must(send(10, &list, sizeof(list), 0) == sizeof(list));
}

static void test_netlink(void **state)
{
	(void)state;
	port = 0x40000000 + getpid();
	files_cycle(&(struct files_test){ .make = make_netlink, .use = use_netlink });
	files_cycle(&(struct files_test){ .make = make_netlink, .use = use_other_port,
					  .before_restart = take_port });
	files_cycle(&(struct files_test){ .make = ask_for_list, .use = use_nothing,
					  .expect_save = -EOPNOTSUPP });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_queue), cmocka_unit_test(test_netlink),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
