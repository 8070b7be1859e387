// SPDX-License-Identifier: GPL-2.0
/*
 * Asleep in calls on pipes, timers, futexes, children and signals: blocking.h.
 */
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <linux/futex.h>

#include "blocking.h"

static int id;
static pid_t child;
static volatile int word;
static sem_t semaphore;
static char big[1 << 16];

/* ---- pipes, and what can be waited for of them ---- */

static void pipe_up(void) { NEED(!pipe(ends)); }

static void do_write(void)
{
	while (write(ends[1], big, sizeof(big)) == sizeof(big) && word++ < 3)
		;
}

static void drain(void)
{
	size_t total = 0;
	ssize_t got;

	while (total < 4 * sizeof(big) && (got = read(ends[0], big, sizeof(big))) > 0)
		total += got;
	CHECK(total == 4 * sizeof(big));
}

static void do_poll(void)
{
	struct pollfd p = { ends[0], POLLIN, 0 };

	CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLIN);
	got_ab();
}

static void do_poll_timeout(void)
{
	struct pollfd p = { ends[0], POLLIN, 0 };

	CHECK(poll(&p, 1, 1000000) == 1 && p.revents == POLLIN);
	got_ab();
}

static void do_ppoll(void)
{
	struct pollfd p = { ends[0], POLLIN, 0 };
	struct timespec limit = { 10000, 0 };
	sigset_t mask;

	sigfillset(&mask);
	CHECK(ppoll(&p, 1, &limit, &mask) == 1 && p.revents == POLLIN);
	got_ab();
}

static void do_select(void)
{
	struct timeval limit = { 10000, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	CHECK(select(ends[0] + 1, &set, NULL, NULL, &limit) == 1 && FD_ISSET(ends[0], &set));
	got_ab();
}

static void do_pselect(void)
{
	fd_set set;
	sigset_t mask;

	sigfillset(&mask);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	CHECK(pselect(ends[0] + 1, &set, NULL, NULL, NULL, &mask) == 1 && FD_ISSET(ends[0], &set));
	got_ab();
}

static void epoll_up(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0x123456789abcull };

	pipe_up();
	id = epoll_create1(EPOLL_CLOEXEC);
	NEED(id >= 0 && !epoll_ctl(id, EPOLL_CTL_ADD, ends[0], &event));
}

static void do_epoll_wait(void)
{
	struct epoll_event event;

	CHECK(epoll_wait(id, &event, 1, -1) == 1 && event.data.u64 == 0x123456789abcull);
	got_ab();
}

static void do_epoll_pwait(void)
{
	struct epoll_event event;
	sigset_t mask;

	sigfillset(&mask);
	CHECK(epoll_pwait(id, &event, 1, 1000000, &mask) == 1 &&
	      event.data.u64 == 0x123456789abcull);
	got_ab();
}

static void do_splice(void)
{
	int out[2];
	char two[3] = "";

	NEED(!pipe(out));
	CHECK(splice(ends[0], NULL, out[1], NULL, 2, 0) == 2);
	CHECK(read(out[0], two, 2) == 2 && !strcmp(two, "ab"));
}

/* ---- time ---- */

static void nothing(void) { }

static void slept(const struct timespec *start, time_t seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK(now.tv_sec - start->tv_sec + (now.tv_nsec - start->tv_nsec) / 1e9 >= seconds);
}

static void do_nanosleep(void)
{
	struct timespec length = { 5, 0 }, left = { 0, 0 }, start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK(nanosleep(&length, &left) == 0);
	slept(&start, 5);
}

static void do_clock_nanosleep(void)
{
	struct timespec length = { 5, 0 }, start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL) == 0);
	slept(&start, 5);
}

static void do_clock_nanosleep_until(void)
{
	struct timespec until, start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	until = start;
	until.tv_sec += 5;
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
	slept(&start, 5);
}

static void do_poll_sleep(void)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	CHECK(poll(NULL, 0, 5000) == 0);
	slept(&start, 4);
}

static void timer_up(void)
{
	struct itimerspec set = { { 0, 0 }, { 5, 0 } };

	ends[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	NEED(ends[0] >= 0 && !timerfd_settime(ends[0], 0, &set, NULL));
}

/* ---- futexes ---- */

static void do_futex(void)
{
	CHECK(!syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
}

static void do_futex_timeout(void)
{
	struct timespec limit = { 10000, 0 };

	CHECK(!syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &limit, NULL, 0));
}

static void futex_wake(void)
{
	/* Not changed: a wait that starts again must sleep again. */
	do {
		usleep(1000);
	} while (syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0) +
		 syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
}

static void sem_up(void) { NEED(!sem_init(&semaphore, 0, 0)); }
static void do_sem_wait(void) { CHECK(!sem_wait(&semaphore)); }
static void do_sem_timedwait(void)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 10000;
	CHECK(!sem_timedwait(&semaphore, &limit));
}
static void sem_wake(void) { CHECK(!sem_post(&semaphore)); }

/* ---- children and signals ---- */

static void child_up(void)
{
	NEED(!pipe(ends));
	child = fork();
	NEED(child >= 0);
	if (!child) {
		char byte;

		close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 1 ? 31 : 1);
	}
	close(ends[0]);
}

static void child_wake(void) { CHECK(write(ends[1], "x", 1) == 1); }

static void do_wait4(void)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 31);
}

static void do_waitid(void)
{
	siginfo_t info = { 0 };

	CHECK(!waitid(P_ALL, 0, &info, WEXITED) && info.si_pid == child && info.si_status == 31);
}

static void signal_up(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ends[0] = signalfd(-1, &set, 0);
	NEED(ends[0] >= 0);
}

static void do_sigwait(void)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK(sigwaitinfo(&set, &info) == SIGRTMIN + 1 && info.si_value.sival_int == 12);
}

static void do_sigtimedwait(void)
{
	struct timespec limit = { 10000, 0 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK(sigtimedwait(&set, &info, &limit) == SIGRTMIN + 1 && info.si_value.sival_int == 12);
}

static void do_signalfd(void)
{
	struct signalfd_siginfo info;

	CHECK(read(ends[0], &info, sizeof(info)) == sizeof(info) &&
	      info.ssi_signo == (uint32_t)SIGRTMIN + 1 && info.ssi_int == 12);
}

static void signal_wake(void)
{
	CHECK(!sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 12 }));
}

static void on_signal(int signal) { word = signal; }

static void handler_up(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	NEED(!sigaction(SIGUSR1, &action, NULL));
}

static void do_pause(void) { CHECK(pause() < 0 && errno == EINTR && word == SIGUSR1); }
static void do_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	CHECK(sigsuspend(&none) < 0 && errno == EINTR && word == SIGUSR1);
}
static void handler_wake(void) { CHECK(!pthread_kill(sleeper, SIGUSR1)); }

static const struct call calls[] = {
	{ "read", pipe_up, got_ab, pipe_wake },
	{ "write", pipe_up, do_write, drain },
	{ "poll", pipe_up, do_poll, pipe_wake },
	{ "poll_timeout", pipe_up, do_poll_timeout, pipe_wake },
	{ "ppoll", pipe_up, do_ppoll, pipe_wake },
	{ "select", pipe_up, do_select, pipe_wake },
	{ "pselect", pipe_up, do_pselect, pipe_wake },
	{ "epoll_wait", epoll_up, do_epoll_wait, pipe_wake },
	{ "epoll_pwait", epoll_up, do_epoll_pwait, pipe_wake },
	{ "splice", pipe_up, do_splice, pipe_wake },
	{ "nanosleep", nothing, do_nanosleep, nothing },
	{ "clock_nanosleep", nothing, do_clock_nanosleep, nothing },
	{ "clock_nanosleep_until", nothing, do_clock_nanosleep_until, nothing },
	{ "poll_sleep", nothing, do_poll_sleep, nothing },
	{ "timerfd", timer_up, do_read_8, nothing },
	{ "futex", nothing, do_futex, futex_wake },
	{ "futex_timeout", nothing, do_futex_timeout, futex_wake },
	{ "sem_wait", sem_up, do_sem_wait, sem_wake },
	{ "sem_timedwait", sem_up, do_sem_timedwait, sem_wake },
	{ "wait4", child_up, do_wait4, child_wake },
	{ "waitid", child_up, do_waitid, child_wake },
	{ "sigwaitinfo", signal_up, do_sigwait, signal_wake },
	{ "sigtimedwait", signal_up, do_sigtimedwait, signal_wake },
	{ "signalfd", signal_up, do_signalfd, signal_wake },
	{ "pause", handler_up, do_pause, handler_wake },
	{ "sigsuspend", handler_up, do_sigsuspend, handler_wake },
	{ }
};

int main(int argc, char **argv)
{
	return blocking_main(argc, argv, calls);
}
