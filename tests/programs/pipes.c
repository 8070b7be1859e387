// SPDX-License-Identifier: GPL-2.0
/*
 * Pipes, with names and without, and message queues.
 */
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "check.h"

/* ---- pipe ---- */

/*
 * Pipes inside: contents in order, size, packet mode, packets whose sender has gone, a full
 * one, one whose writers have gone and one whose readers have.
 */
static void fd_pipe(void)
{
	int plain[2], packet[2], sent[2], full[2], eof[2], broken[2], size, count = 0, again = 0, second;
	static char block[4096], got[4096];
	char text[64] = "";

	signal(SIGPIPE, SIG_IGN);
	NEED(!pipe(plain) && !pipe2(packet, O_DIRECT) && !pipe2(full, O_NONBLOCK | O_CLOEXEC));
	NEED(!pipe(eof) && !pipe(broken));
	NEED(fcntl(plain[0], F_SETPIPE_SZ, 1 << 17) == 1 << 17);
	NEED(write(plain[1], "one,", 4) == 4 && write(plain[1], "two", 3) == 3);
	NEED(write(packet[1], "aaa", 3) == 3 && write(packet[1], "bbbb", 4) == 4);
	NEED(!pipe2(sent, O_DIRECT) && write(sent[1], "aa", 2) == 2 && write(sent[1], "b", 1) == 1);
	NEED(!fcntl(sent[0], F_SETFL, 0) && !close(sent[1]));
	snprintf(text, sizeof(text), "/proc/self/fd/%d", packet[1]);
	second = open(text, O_WRONLY);
	NEED(second >= 0 && !fcntl(second, F_SETFL, O_DIRECT));
	check_fill(block, sizeof(block), 1);
	while (write(full[1], block, sizeof(block)) == sizeof(block))
		count++;
	NEED(write(eof[1], "last", 4) == 4 && !close(eof[1]) && !close(broken[0]));
	checkpoint_here();
	CHECK(fcntl(plain[1], F_GETPIPE_SZ) == 1 << 17);
	CHECK(!ioctl(plain[0], FIONREAD, &size) && size == 7);
	CHECK(read(plain[0], text, 64) == 7 && !memcmp(text, "one,two", 7));
	CHECK(fcntl(packet[1], F_GETFL) & O_DIRECT && fcntl(second, F_GETFL) & O_DIRECT);
	CHECK(read(packet[0], text, 64) == 3 && !memcmp(text, "aaa", 3));
	CHECK(read(packet[0], text, 64) == 4 && !memcmp(text, "bbbb", 4));
	CHECK(!(fcntl(sent[0], F_GETFL) & O_DIRECT));
	CHECK(read(sent[0], text, 64) == 2 && !memcmp(text, "aa", 2));
	CHECK(read(sent[0], text, 64) == 1 && *text == 'b' && !read(sent[0], text, 64));
	CHECK(fcntl(full[1], F_GETFD) == FD_CLOEXEC);
	CHECK(write(full[1], "x", 1) < 0 && errno == EAGAIN);
	while (read(full[0], got, sizeof(got)) == sizeof(got) && !memcmp(got, block, sizeof(got)))
		again++;
	CHECK(again == count);
	CHECK(write(full[1], "x", 1) == 1);
	CHECK(read(eof[0], text, 64) == 4 && read(eof[0], text, 64) == 0);
	CHECK(write(broken[1], "x", 1) < 0 && errno == EPIPE);
	CHECK(write(plain[1], "more", 4) == 4 && read(plain[0], text, 64) == 4);
}

/* ---- pipe_tree ---- */

#define TOTAL	20000

static int pass(int from, int to)
{
	uint32_t number;

	while (read(from, &number, 4) == 4) {
		number++;
		if (write(to, &number, 4) != 4)
			return 1;
	}
	return 0;
}

/* A pipeline of three processes, with bytes under way in both pipes. */
static void fd_pipe_tree(void)
{
	int first[2], second[2], status;
	uint32_t number, expected = 1;
	pid_t writer, middle;

	NEED(!pipe(first) && !pipe(second));
	writer = fork();
	if (!writer) {
		for (number = 0; number < TOTAL; number++)
			if (write(first[1], &number, 4) != 4)
				_exit(1);
		_exit(0);
	}
	close(first[1]);
	middle = fork();
	if (!middle) {
		close(second[0]);
		_exit(pass(first[0], second[1]));
	}
	close(first[0]);
	close(second[1]);
	for (int i = 0; i < 500; i++)
		NEED(read(second[0], &number, 4) == 4 && number == expected++);
	checkpoint_here();
	while (read(second[0], &number, 4) == 4 && number == expected)
		expected++;
	CHECK(expected == TOTAL + 1);
	CHECK(waitpid(writer, &status, 0) == writer && status == 0);
	CHECK(waitpid(middle, &status, 0) == middle && status == 0);
}

/* ---- fifo ---- */

/* A named pipe with both ends open and contents. */
static void fd_fifo(void)
{
	char path[64], text[16] = "";
	int reader, writer, packets;

	snprintf(path, sizeof(path), "/tmp/kcr-fifo.%d", getpid());
	NEED(!mkfifo(path, 0600));
	reader = open(path, O_RDONLY | O_NONBLOCK);
	writer = open(path, O_WRONLY);
	NEED(reader >= 0 && writer >= 0 && write(writer, "in it", 5) == 5);
	packets = open(path, O_RDWR);
	NEED(packets >= 0 && !fcntl(packets, F_SETFL, O_DIRECT));
	checkpoint_here();
	CHECK(fcntl(packets, F_GETFL) & O_DIRECT && !(fcntl(writer, F_GETFL) & O_DIRECT));
	CHECK(read(reader, text, 16) == 5 && !memcmp(text, "in it", 5));
	CHECK(read(reader, text, 16) < 0 && errno == EAGAIN);
	CHECK(write(writer, "more", 4) == 4 && read(reader, text, 16) == 4);
	CHECK(open(path, O_WRONLY | O_NONBLOCK) >= 0);
	CHECK(!unlink(path));
}

/* ---- fifo_names ---- */

/*
 * A named pipe that is open under two names, and once more under a third one that is
 * removed.  Those that are removed meanwhile come back.
 */
static void fd_fifo_names(void)
{
	char text[16] = "";
	int reader, writer, third;
	struct stat st, first;

	NEED(!mkfifo("fifo-a", 0600) && !link("fifo-a", "fifo-b") && !link("fifo-a", "fifo-c"));
	third = open("fifo-c", O_RDWR);
	reader = open("fifo-a", O_RDONLY | O_NONBLOCK);
	writer = open("fifo-b", O_WRONLY);
	NEED(reader >= 0 && writer >= 0 && third >= 0 && !unlink("fifo-c"));
	NEED(write(writer, "in it", 5) == 5);
	checkpoint_here();
	CHECK(!stat("fifo-a", &first) && first.st_nlink == 2);
	CHECK(!stat("fifo-b", &st) && st.st_ino == first.st_ino);
	CHECK(!fstat(third, &st) && st.st_ino == first.st_ino);
	CHECK(read(reader, text, 16) == 5 && !memcmp(text, "in it", 5));
	CHECK(write(writer, "more", 4) == 4 && read(reader, text, 16) == 4);
	CHECK(write(third, "and more", 8) == 8 && read(reader, text, 16) == 8);
	CHECK(!unlink("fifo-a") && !unlink("fifo-b"));
}

/* ---- fifo_first ---- */

static int events_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -1 : p.revents;
}

/*
 * A reader that waits for its first writer, as a daemon does for commands, and one that had one:
 * only the latter reports hang-up.
 */
static void fd_fifo_first(void)
{
	int first, hung_up, writer;
	char text[16];

	NEED(!mkfifo("fifo-d", 0600));
	hung_up = open("fifo-d", O_RDONLY | O_NONBLOCK);
	writer = open("fifo-d", O_WRONLY);
	NEED(hung_up >= 0 && writer >= 0 && !close(writer));
	first = open("fifo-d", O_RDONLY | O_NONBLOCK);
	NEED(first >= 0 && !events_of(first) && events_of(hung_up) == POLLHUP);
	checkpoint_here();
	CHECK(!events_of(first) && events_of(hung_up) == POLLHUP);
	writer = open("fifo-d", O_WRONLY);
	CHECK(write(writer, "command", 7) == 7 && events_of(first) == POLLIN);
	CHECK(!close(writer) && read(first, text, 16) == 7 && events_of(first) == POLLHUP);
	CHECK(!unlink("fifo-d"));
}

/* ---- fifo_one_way ---- */

/* Two named pipes of another user's, of which one may only be read and one only written to. */
static void fd_fifo_one_way(void)
{
	int in = open("fifo-in", O_RDONLY | O_NONBLOCK), out = open("fifo-out", O_WRONLY | O_NONBLOCK);
	char text[16] = "";

	NEED(in >= 0 && out >= 0);
	NEED(access("fifo-in", W_OK) && access("fifo-out", R_OK));
	checkpoint_here();
	CHECK(read(in, text, 16) == 6 && !memcmp(text, "hello\n", 6));
	CHECK(write(out, "world\n", 6) == 6);
}

/* ---- mqueue ---- */

static void expect(mqd_t queue, const char *text, unsigned int priority)
{
	char buffer[64] = "";
	unsigned int got = 99;

	CHECK(mq_receive(queue, buffer, sizeof(buffer), &got) == (ssize_t)strlen(text) + 1);
	CHECK(!strcmp(buffer, text) && got == priority);
}

/*
 * POSIX message queues: one with a name, opened twice, and one without; order by
 * priority and age, limits, mode, and whether a call waits.  With the
 * argument `notified`, the kernel is to notify the program of a message.
 */
static void fd_mqueue(void)
{
	struct mq_attr limits = { .mq_maxmsg = 5, .mq_msgsize = 64 }, now;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	mqd_t queue, sender, nameless;
	char name[32], text[64];
	struct stat st;

	snprintf(name, sizeof(name), "/kcr-queue-%d", getpid());
	umask(0);
	queue = mq_open(name, O_CREAT | O_EXCL | O_RDONLY | O_NONBLOCK, 0640, &limits);
	sender = mq_open(name, O_WRONLY);
	nameless = mq_open("/kcr-nameless", O_CREAT | O_EXCL | O_RDWR, 0600, &limits);
	NEED(queue >= 0 && sender >= 0 && nameless >= 0 && !mq_unlink("/kcr-nameless"));
	NEED(!mq_send(sender, "low", 4, 1) && !mq_send(sender, "high", 5, 7));
	NEED(!mq_send(sender, "low too", 8, 1) && !mq_send(nameless, "", 1, 0));
	if (check_argument)
		NEED(!mq_notify(nameless, &event));
	checkpoint_here();
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
}

static const struct check checks[] = {
	{ "pipe", fd_pipe },
	{ "pipe_tree", fd_pipe_tree },
	{ "fifo", fd_fifo },
	{ "fifo_names", fd_fifo_names },
	{ "fifo_first", fd_fifo_first },
	{ "fifo_one_way", fd_fifo_one_way },
	{ "mqueue", fd_mqueue },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
