// SPDX-License-Identifier: GPL-2.0
/*
 * A child sleeps in each of many system calls, with a handler of SIGUSR1 that comes when
 * all of them are restarted, or to those that were stopped.  It must do to each call what
 * it does natively: EINTR, or nothing.  Argument "sent": none comes before the program sends
 * it itself, and no call may have ended by then.
 */
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/futex.h>

#include "check.h"

#define PATIENCE_MS	10000
#define FAR		1000000		/* seconds, or milliseconds where that is the unit */

static int ends[2], sockets[2], semaphores, messages, locked;
static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
	(void)signal;
	handled++;
}

/* ---- the calls: what they return ---- */

static struct pollfd readable(void) { return (struct pollfd){ ends[0], POLLIN, 0 }; }

static long do_poll(void)
{
	struct pollfd p = readable();

	return poll(&p, 1, -1);
}

static long do_poll_timeout(void)
{
	struct pollfd p = readable();

	return poll(&p, 1, FAR);
}

static long do_ppoll(void)
{
	struct pollfd p = readable();
	sigset_t none;

	sigemptyset(&none);
	return ppoll(&p, 1, NULL, &none);
}

/* The signal is let through by the call alone. */
static long do_sigsuspend(void)
{
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_BLOCK, &all, NULL);
	return sigsuspend(&none);
}

/* The signal is kept away by the call alone. */
static long do_ppoll_blocked(void)
{
	struct pollfd p = readable();
	sigset_t all;

	sigfillset(&all);
	return ppoll(&p, 1, NULL, &all);
}

static long do_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	return select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static long do_epoll_wait(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int id = epoll_create1(EPOLL_CLOEXEC);

	NEED(id >= 0 && !epoll_ctl(id, EPOLL_CTL_ADD, ends[0], &event));
	return epoll_wait(id, &event, 1, -1);
}

static long do_sigtimedwait(void)
{
	struct timespec limit = { FAR, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return sigtimedwait(&set, NULL, &limit);
}

static long do_read(void)
{
	char byte;

	return read(ends[0], &byte, 1);
}

static long do_recv(void)
{
	char byte;

	return recv(sockets[0], &byte, 1, 0);
}

static long do_semop(void)
{
	struct sembuf down = { 0, -1, 0 };

	return semop(semaphores, &down, 1);
}

static long do_msgrcv(void)
{
	struct { long type; char text[8]; } message;

	return msgrcv(messages, &message, 8, 3, 0);
}

static long do_flock(void)
{
	int fd = open("locked", O_RDWR);

	NEED(fd >= 0);
	return flock(fd, LOCK_EX);
}

static long do_wait(void)
{
	if (!fork()) {
		signal(SIGUSR1, SIG_IGN);
		do_read();
		_exit(0);
	}
	return wait(NULL);
}

static long do_nanosleep(void)
{
	struct timespec length = { FAR, 0 };

	return nanosleep(&length, NULL);
}

static long do_sleep_until(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FAR;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return errno ? -1 : 0;
}

static long do_futex(void)
{
	struct timespec limit = { FAR, 0 };
	static int word;

	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &limit, NULL, 0);
}

static long do_pause(void) { return pause(); }

static const struct call {
	const char *name;
	long (*make)(void);
	int flags;		/* of the handler */
	long result;		/* -1: with EINTR; else it goes on until it is woken by the pipe */
} calls[] = {
	{ "pause", do_pause, SA_RESTART, -1 },
	{ "sigsuspend", do_sigsuspend, SA_RESTART, -1 },
	{ "sigtimedwait", do_sigtimedwait, SA_RESTART, -1 },
	{ "poll", do_poll, SA_RESTART, -1 },
	{ "poll_timeout", do_poll_timeout, SA_RESTART, -1 },
	{ "ppoll", do_ppoll, SA_RESTART, -1 },
	{ "select", do_select, SA_RESTART, -1 },
	{ "epoll_wait", do_epoll_wait, SA_RESTART, -1 },
	{ "semop", do_semop, SA_RESTART, -1 },
	{ "msgrcv", do_msgrcv, SA_RESTART, -1 },
	{ "nanosleep", do_nanosleep, SA_RESTART, -1 },
	{ "sleep_until", do_sleep_until, SA_RESTART, -1 },
	{ "futex", do_futex, SA_RESTART, -1 },
	{ "read", do_read, 0, -1 },
	{ "recv", do_recv, 0, -1 },
	{ "flock", do_flock, 0, -1 },
	{ "wait", do_wait, 0, -1 },
	{ "read SA_RESTART", do_read, SA_RESTART, 1 },
	{ "ppoll that blocks it", do_ppoll_blocked, 0, 1 },
};

#define CALLS	(sizeof(calls) / sizeof(*calls))

static pid_t child[CALLS];

static pid_t start(const struct call *call)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = call->flags };
	pid_t pid = fork();
	long ret;

	NEED(pid >= 0);
	if (pid)
		return pid;
	NEED(!sigaction(SIGUSR1, &action, NULL));
	ret = call->make();
	if (ret == call->result && (ret >= 0 || errno == EINTR) && handled == 1)
		_exit(0);
	fprintf(stderr, "# %s: %ld (%m), handled %d times\n", call->name, ret, handled);
	_exit(1);
}

/* ---- the frame ---- */

static void set_up(void)
{
	NEED(!pipe(ends) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	semaphores = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
	messages = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	locked = open("locked", O_RDWR | O_CREAT, 0600);
	NEED(semaphores >= 0 && messages >= 0 && locked >= 0 && !flock(locked, LOCK_EX));
	NEED(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	for (size_t i = 0; i < CALLS; i++)
		child[i] = start(&calls[i]);
}

static bool all_sleep(void)
{
	char name[64], text[512];

	for (size_t i = 0; i < CALLS; i++) {
		const char *end;

		snprintf(name, sizeof(name), "/proc/%d/stat", child[i]);
		end = strrchr(check_slurp(name, text, sizeof(text)), ')');
		if (!end || end[2] != 'S')
			return false;
	}
	return true;
}

static void wait_asleep(void)
{
	for (int quiet = 0; quiet < 5; quiet = all_sleep() ? quiet + 1 : 0)
		check_sleep_ms(10);
}

static void await(size_t i)
{
	static long waited;	/* for all of them */
	int status;

	while (!waitpid(child[i], &status, WNOHANG)) {
		if (waited++ >= PATIENCE_MS / 10) {
			fprintf(stderr, "# %s: was not interrupted, or not woken\n", calls[i].name);
			kill(child[i], SIGKILL);
			waitpid(child[i], &status, 0);
			break;
		}
		check_sleep_ms(10);
	}
	CHECK(!status);
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	set_up();
	wait_asleep();
	checkpoint_here();
	if (argc > 3) {
		wait_asleep();
		for (size_t i = 0; i < CALLS; i++)
			CHECK(!kill(child[i], SIGUSR1));
	}
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].result < 0)
			await(i);
	for (size_t i = 0; i < CALLS; i++)
		CHECK(calls[i].result < 0 || !waitpid(child[i], NULL, WNOHANG));
	CHECK(write(ends[1], "abcdefgh", 8) == 8);
	for (size_t i = 0; i < CALLS; i++)
		if (calls[i].result >= 0)
			await(i);
	CHECK(!semctl(semaphores, 0, IPC_RMID) && !msgctl(messages, IPC_RMID, NULL));
	return check_end();
}
