// SPDX-License-Identifier: GPL-2.0
/*
 * Filters of system calls still forbid what they forbade, and count as before.  The
 * argument is `threads` (several filters, without no_new_privs: one thread has one more,
 * another waits in a call that must not see EINTR, a child has them all), `tsync` (threads
 * that share their filters can get one more together), `few` (nothing is allowed but what
 * the program needs), `strict` (strict mode), or `ask` (a filter that asks a listener).
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define NUMBER	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(what)	BPF_STMT(BPF_RET | BPF_K, (what))
#define IF(number)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1)
#define LENGTH(array)	(sizeof(array) / sizeof(*(array)))

static long install(unsigned int flags, struct sock_filter *code, size_t length)
{
	struct sock_fprog program = { .len = length, .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* This call returns this error from now on. */
static long forbid(unsigned int flags, int number, int error)
{
	struct sock_filter code[] = {
		NUMBER, IF(number), RETURN(SECCOMP_RET_ERRNO | error), RETURN(SECCOMP_RET_ALLOW),
	};

	return install(flags, code, LENGTH(code));
}

static bool fails(int number, int error)
{
	return syscall(number, 0, 0, 0) == -1 && errno == error;
}

/* What /proc says of this thread's filters. */
struct shown {
	int mode, filters, no_new_privs;
};

static struct shown shown(void)
{
	struct shown s = { -1, -1, -1 };
	FILE *status = fopen("/proc/thread-self/status", "re");
	char line[256];

	while (status && fgets(line, sizeof(line), status)) {
		sscanf(line, "Seccomp: %d", &s.mode);
		sscanf(line, "Seccomp_filters: %d", &s.filters);
		sscanf(line, "NoNewPrivs: %d", &s.no_new_privs);
	}
	if (status)
		fclose(status);
	return s;
}

static bool same(struct shown a, struct shown b)
{
	return a.mode == b.mode && a.filters == b.filters && a.no_new_privs == b.no_new_privs;
}

/* ---- threads ----------------------------------------------------------------------- */

static pthread_barrier_t set_up, checked;
static int wake;

static void *with_more(void *unused)
{
	struct shown before;

	NEED(!forbid(SECCOMP_FILTER_FLAG_LOG, SYS_getpgrp, 77));
	before = shown();
	NEED(before.filters == 3);
	pthread_barrier_wait(&set_up);
	pthread_barrier_wait(&checked);
	CHECK(same(shown(), before));
	CHECK(fails(SYS_getpgrp, 77) && fails(SYS_getppid, 78) && fails(SYS_getsid, 79));
	return unused;
}

static void *waiting(void *unused)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	NEED(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event));
	pthread_barrier_wait(&set_up);
	CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
	CHECK(fails(SYS_getppid, 78) && syscall(SYS_getpgrp) > 0);
	return unused;
}

static void child(int from, struct shown before)
{
	char byte;

	CHECK(read(from, &byte, 1) == 1);
	CHECK(same(shown(), before));
	CHECK(fails(SYS_getppid, 78) && fails(SYS_getsid, 79));
	_exit(check_failures ? 1 : 0);
}

static void threads(void)
{
	pthread_t more, other;
	struct shown before;
	int way[2], status;
	pid_t pid;

	wake = eventfd(0, EFD_CLOEXEC);
	NEED(wake >= 0 && !pipe(way));
	pthread_barrier_init(&set_up, NULL, 3);
	pthread_barrier_init(&checked, NULL, 2);
	if (forbid(0, SYS_getppid, 78) && errno == EACCES)
		check_skip("only root may have filters without no_new_privs");
	NEED(!forbid(0, SYS_getsid, 79));
	before = shown();
	NEED(before.mode == 2 && before.filters == 2 && !before.no_new_privs);
	NEED(!pthread_create(&more, NULL, with_more, NULL));
	NEED(!pthread_create(&other, NULL, waiting, NULL));
	pthread_barrier_wait(&set_up);
	pid = fork();
	NEED(pid >= 0);
	if (!pid)
		child(way[0], before);
	check_ready();
	check_wait();
	CHECK(same(shown(), before));
	CHECK(fails(SYS_getppid, 78) && fails(SYS_getsid, 79) && syscall(SYS_getpgrp) > 0);
	CHECK(write(way[1], "x", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	pthread_barrier_wait(&checked);
	CHECK(!eventfd_write(wake, 1));
	CHECK(!pthread_join(more, NULL) && !pthread_join(other, NULL));
}

/* ---- threads that share theirs ----------------------------------------------------- */

static void *sharing(void *unused)
{
	pthread_barrier_wait(&set_up);
	pthread_barrier_wait(&checked);
	CHECK(fails(SYS_getppid, 78) && fails(SYS_getsid, 79));
	return unused;
}

static void tsync(void)
{
	pthread_t thread;

	pthread_barrier_init(&set_up, NULL, 2);
	pthread_barrier_init(&checked, NULL, 2);
	NEED(!pthread_create(&thread, NULL, sharing, NULL));
	NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED(!forbid(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, 78));
	pthread_barrier_wait(&set_up);
	check_ready();
	check_wait();
	CHECK(shown().no_new_privs == 1);
	CHECK(!forbid(SECCOMP_FILTER_FLAG_TSYNC, SYS_getsid, 79));
	pthread_barrier_wait(&checked);
	CHECK(!pthread_join(thread, NULL));
}

/* ---- little is allowed -------------------------------------------------------------- */

static void few(void)
{
	static const int allowed[] = {
		SYS_read, SYS_write, SYS_close, SYS_openat, SYS_access, SYS_stat, SYS_newfstatat,
		SYS_faccessat, SYS_nanosleep, SYS_clock_nanosleep, SYS_restart_syscall, SYS_clone,
		SYS_rt_sigprocmask, SYS_wait4, SYS_set_robust_list, SYS_rseq, SYS_exit_group,
	};
	struct sock_filter code[2 * LENGTH(allowed) + 2] = { NUMBER };
	size_t n = 1;
	int status;
	pid_t pid;

	for (size_t i = 0; i < LENGTH(allowed); i++) {
		code[n++] = (struct sock_filter)IF(allowed[i]);
		code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
	NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED(!install(0, code, n));
	check_ready();
	check_wait();
	pid = fork();
	if (!pid) {
		syscall(SYS_ioctl, 0, 0, 0);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

/* ---- strict mode --------------------------------------------------------------------- */

static void strict_child(int from, int to)
{
	char byte;

	NEED(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	syscall(SYS_write, to, "s", 1);
	while (syscall(SYS_read, from, &byte, 1) == 1) {
		if (byte == 'f')
			syscall(SYS_getpid);
		syscall(SYS_write, to, &byte, 1);
	}
	syscall(SYS_exit, 1);
}

static void strict(void)
{
	char byte, path[64], line[256];
	int mode = -1, there[2], back[2], status;
	FILE *file;
	pid_t pid;

	NEED(!pipe(there) && !pipe(back));
	pid = fork();
	NEED(pid >= 0);
	if (!pid)
		strict_child(there[0], back[1]);
	close(back[1]);
	NEED(read(back[0], &byte, 1) == 1);
	check_ready();
	check_wait();
	CHECK(write(there[1], "a", 1) == 1 && read(back[0], &byte, 1) == 1 && byte == 'a');
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "Seccomp: %d", &mode);
	if (file)
		fclose(file);
	CHECK(mode == SECCOMP_MODE_STRICT);
	CHECK(write(there[1], "f", 1) == 1 && read(back[0], &byte, 1) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- what cannot be saved ------------------------------------------------------------ */

static void ask(void)
{
	struct sock_filter code[] = {
		NUMBER, IF(SYS_getppid), RETURN(SECCOMP_RET_USER_NOTIF), RETURN(SECCOMP_RET_ALLOW),
	};

	NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED(!install(0, code, LENGTH(code)));
	check_ready();
	check_wait();
}

int main(int argc, char **argv)
{
	static const struct check kinds[] = {
		{ "threads", threads }, { "tsync", tsync }, { "few", few }, { "strict", strict },
		{ "ask", ask }, { NULL, NULL },
	};

	return check_one(argc, argv, kinds);
}
