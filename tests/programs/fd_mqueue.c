// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX message queues: one with a name, opened twice, and one without; order by
 * priority and age, limits, mode, and whether a call waits.  With a third
 * argument, the kernel is to notify the program of a message.
 */
#include <mqueue.h>
#include <signal.h>

#include "check.h"

static void expect(mqd_t queue, const char *text, unsigned int priority)
{
	char buffer[64] = "";
	unsigned int got = 99;

	CHECK(mq_receive(queue, buffer, sizeof(buffer), &got) == (ssize_t)strlen(text) + 1);
	CHECK(!strcmp(buffer, text) && got == priority);
}

int main(int argc, char **argv)
{
	struct mq_attr limits = { .mq_maxmsg = 5, .mq_msgsize = 64 }, now;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	mqd_t queue, sender, nameless;
	char name[32], text[64];
	struct stat st;

	check_begin(argc, argv);
	snprintf(name, sizeof(name), "/kcr-queue-%d", getpid());
	umask(0);
	queue = mq_open(name, O_CREAT | O_EXCL | O_RDONLY | O_NONBLOCK, 0640, &limits);
	sender = mq_open(name, O_WRONLY);
	nameless = mq_open("/kcr-nameless", O_CREAT | O_EXCL | O_RDWR, 0600, &limits);
	NEED(queue >= 0 && sender >= 0 && nameless >= 0 && !mq_unlink("/kcr-nameless"));
	NEED(!mq_send(sender, "low", 4, 1) && !mq_send(sender, "high", 5, 7));
	NEED(!mq_send(sender, "low too", 8, 1) && !mq_send(nameless, "", 1, 0));
	if (argc > 3)
		NEED(!mq_notify(nameless, &event));
	check_ready();
	check_wait();
	CHECK(!mq_getattr(queue, &now) && now.mq_maxmsg == 5 && now.mq_msgsize == 64);
	CHECK(now.mq_curmsgs == 3 && now.mq_flags == O_NONBLOCK);
	CHECK(!fstat(queue, &st) && (st.st_mode & 07777) == 0640);
	expect(queue, "high", 7);
	expect(queue, "low", 1);
	CHECK(!mq_send(sender, "last", 5, 0));
	expect(queue, "low too", 1);
	expect(queue, "last", 0);
	CHECK(mq_receive(queue, text, sizeof(text), NULL) < 0 && errno == EAGAIN);
	expect(nameless, "", 0);
	CHECK(!mq_getattr(nameless, &now) && !now.mq_flags && !now.mq_curmsgs);
	CHECK(mq_receive(sender, text, sizeof(text), NULL) < 0 && errno == EBADF);
	CHECK(!mq_unlink(name));
	CHECK(mq_open("/kcr-nameless", O_RDONLY) < 0 && errno == ENOENT);
	return check_end();
}
