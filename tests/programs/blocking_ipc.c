// SPDX-License-Identifier: GPL-2.0
/*
 * Asleep in calls on System V queues, sockets and files: blocking.h.
 */
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "blocking.h"

static int id;
static char path[] = "/tmp/kcr-blocking.XXXXXX";

/* ---- System V and POSIX queues ---- */

static void semop_up(void)
{
	id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	NEED(id >= 0);
}

static void do_semop(void)
{
	struct sembuf down = { 0, -1, 0 };

	CHECK(!semop(id, &down, 1));
}

static void do_semtimedop(void)
{
	struct sembuf down = { 0, -1, 0 };
	struct timespec limit = { 10000, 0 };

	CHECK(!semtimedop(id, &down, 1, &limit));
}

static void semop_wake(void)
{
	struct sembuf up = { 0, 1, 0 };

	CHECK(!semop(id, &up, 1));
	usleep(100000);
	CHECK(!semctl(id, 0, IPC_RMID));
}

struct message { long type; char text[8]; };

static void msg_up(void)
{
	id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	NEED(id >= 0);
}

static void do_msgrcv(void)
{
	struct message message;

	CHECK(msgrcv(id, &message, 8, 3, 0) == 8 && !strcmp(message.text, "1234567"));
	CHECK(!msgctl(id, IPC_RMID, NULL));
}

static void msg_wake(void)
{
	struct message message = { 3, "1234567" };

	CHECK(!msgsnd(id, &message, 8, 0));
}

/* ---- sockets ---- */

static void socket_up(void) { NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends)); }

static void do_recv(void)
{
	char two[3] = "";

	CHECK(recv(ends[0], two, 2, MSG_WAITALL) == 2 && !strcmp(two, "ab"));
}

static void timeout_up(void)
{
	struct timeval limit = { 10000, 0 };

	socket_up();
	NEED(!setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
}

static void do_recvmsg(void)
{
	char two[3] = "";
	struct iovec part = { two, 2 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	CHECK(recvmsg(ends[0], &message, 0) == 2 && !strcmp(two, "ab"));
}

static struct sockaddr_un address = { .sun_family = AF_UNIX };

static void listen_up(void)
{
	ends[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path + 1, 40, "kcr-blocking-%d", getpid());
	NEED(!bind(ends[0], (struct sockaddr *)&address, sizeof(address)) && !listen(ends[0], 3));
}

static void do_accept(void)
{
	ends[1] = accept(ends[0], NULL, NULL);
	CHECK(ends[1] >= 0);
}

static void connect_wake(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(!connect(fd, (struct sockaddr *)&address, sizeof(address)));
}

/* ---- files ---- */

static void file_up(void)
{
	ends[0] = mkstemp(path);
	ends[1] = open(path, O_RDWR);
	NEED(ends[0] >= 0 && ends[1] >= 0);
}

static void flock_up(void) { file_up(); NEED(!flock(ends[0], LOCK_EX)); }
static void do_flock(void) { CHECK(!flock(ends[1], LOCK_EX)); }
static void flock_wake(void) { CHECK(!flock(ends[0], LOCK_UN)); unlink(path); }

static struct flock lock_of(int type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = 5, .l_len = 7 };
}

static void ofd_up(void)
{
	struct flock lock = lock_of(F_WRLCK);

	file_up();
	NEED(!fcntl(ends[0], F_OFD_SETLK, &lock));
}

static void do_ofd(void)
{
	struct flock lock = lock_of(F_WRLCK);

	CHECK(!fcntl(ends[1], F_OFD_SETLKW, &lock));
}

static void ofd_wake(void)
{
	struct flock lock = lock_of(F_UNLCK);

	CHECK(!fcntl(ends[0], F_OFD_SETLK, &lock));
	unlink(path);
}

static void fifo_up(void)
{
	close(mkstemp(path));
	unlink(path);
	NEED(!mkfifo(path, 0600));
}
static void do_open_fifo(void) { CHECK(open(path, O_RDONLY) >= 0); }
static void fifo_wake(void) { CHECK(open(path, O_WRONLY) >= 0); unlink(path); }

static void eventfd_up(void) { ends[0] = ends[1] = eventfd(0, 0); NEED(ends[0] >= 0); }
static void eventfd_wake(void)
{
	uint64_t one = 1;

	CHECK(write(ends[1], &one, 8) == 8);
}

static void inotify_up(void)
{
	close(mkstemp(path));
	ends[0] = inotify_init1(0);
	NEED(ends[0] >= 0 && inotify_add_watch(ends[0], path, IN_OPEN) == 1);
}

static void do_inotify(void)
{
	struct inotify_event event;

	CHECK(read(ends[0], &event, sizeof(event)) == sizeof(event) && event.wd == 1);
}

static void inotify_wake(void)
{
	CHECK(open(path, O_RDONLY) >= 0);
	unlink(path);
}

static void pty_up(void)
{
	ends[1] = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	NEED(ends[1] >= 0 && !grantpt(ends[1]) && !unlockpt(ends[1]));
	ends[0] = open(ptsname(ends[1]), O_RDWR | O_NOCTTY);
	NEED(ends[0] >= 0);
}

static void do_tty(void)
{
	char line[16] = "";

	CHECK(read(ends[0], line, 15) == 3 && !strcmp(line, "ab\n"));
}

static void tty_wake(void) { CHECK(write(ends[1], "ab\n", 3) == 3); }

static const struct call calls[] = {
	{ "semop", semop_up, do_semop, semop_wake },
	{ "semtimedop", semop_up, do_semtimedop, semop_wake },
	{ "msgrcv", msg_up, do_msgrcv, msg_wake },
	{ "recv", socket_up, do_recv, pipe_wake },
	{ "recv_timeout", timeout_up, do_recv, pipe_wake },
	{ "recvmsg", socket_up, do_recvmsg, pipe_wake },
	{ "accept", listen_up, do_accept, connect_wake },
	{ "flock", flock_up, do_flock, flock_wake },
	{ "setlkw", ofd_up, do_ofd, ofd_wake },
	{ "open_fifo", fifo_up, do_open_fifo, fifo_wake },
	{ "eventfd", eventfd_up, do_read_8, eventfd_wake },
	{ "inotify", inotify_up, do_inotify, inotify_wake },
	{ "tty", pty_up, do_tty, tty_wake },
	{ }
};

int main(int argc, char **argv)
{
	return blocking_main(argc, argv, calls);
}
