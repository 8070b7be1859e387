// SPDX-License-Identifier: GPL-2.0
/*
 * A listening Unix socket, a named pipe and a message queue: their names are there for
 * others, who need owner, group and mode to be as they were.
 */
#include <mqueue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

static struct stat socket_before, fifo_before, queue_before;

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_uid == b->st_uid && a->st_gid == b->st_gid && a->st_mode == b->st_mode;
}

int main(int argc, char **argv)
{
	struct mq_attr limits = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int client = socket(AF_UNIX, SOCK_STREAM, 0), fifo;
	struct stat now;
	mqd_t queue;

	check_begin(argc, argv);
	umask(0);
	NEED(!bind(listener, (struct sockaddr *)&name, sizeof(name)) && !listen(listener, 1));
	NEED(!chmod("socket", 0751) && !stat("socket", &socket_before));
	NEED(!mkfifo("fifo", 0666) && (fifo = open("fifo", O_RDONLY | O_NONBLOCK)) >= 0);
	NEED(!stat("fifo", &fifo_before) && (fifo_before.st_mode & 07777) == 0666);
	queue = mq_open("/kcr-nodes", O_CREAT | O_EXCL | O_RDWR, 0662, &limits);
	NEED(queue >= 0 && !fstat(queue, &queue_before));
	check_ready();
	check_wait();
	CHECK(!stat("socket", &now) && same(&now, &socket_before));
	CHECK(!connect(client, (struct sockaddr *)&name, sizeof(name)));
	CHECK(!stat("fifo", &now) && same(&now, &fifo_before));
	CHECK(open("fifo", O_WRONLY | O_NONBLOCK) >= 0);
	CHECK(!fstat(queue, &now) && same(&now, &queue_before));
	CHECK(mq_open("/kcr-nodes", O_RDWR) >= 0);
	CHECK(!unlink("socket") && !unlink("fifo") && !mq_unlink("/kcr-nodes"));
	return check_end();
}
