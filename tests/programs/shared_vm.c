// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes, not threads, that share their memory (CLONE_VM), but not the working
 * folder, the file mode mask, a limit and the table of descriptors, of which the second one has a copy.
 * With an argument that is in a `session` or `group` of its own, or has a `child`, or is `uncle` to
 * it: a child of a third one; or has opened an `epoll` or its `memory`, itself; or is `stopped`, which
 * wait(2) has yet to report; or the first one has a `pidfd` of it, or has opened its `status`, or lets
 * signals of a pipe go to it (`owner`).
 */
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

static volatile int there, answer;
static struct rlimit limit;
static int ends[2], watch, own_status, own_exe;

/* A process that does nothing, and ends with its parent's. */
static void idle(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static int child(void *argument)
{
	const char *what = argument;
	char now[PATH_MAX];
	struct rlimit own;
	int reaps = 0;

	if (chdir("/usr"))
		return 8;
	if (!strcmp(what, "session"))
		setsid();
	else if (!strcmp(what, "group"))
		setpgid(0, 0);
	else if (!strcmp(what, "child"))
		idle();
	else if (!strcmp(what, "epoll"))
		epoll_create1(0);
	else if (!strcmp(what, "memory"))
		open("/proc/self/mem", O_RDWR);
	dup2(watch, 60);
	open("/proc/meminfo", O_RDONLY);
	close(ends[1]);			/* of the copy */
	umask(0123);
	getrlimit(RLIMIT_SIGPENDING, &limit);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	there = 1;
	while (!answer)
		usleep(10000);
	if (!getcwd(now, sizeof(now)) || strcmp(now, "/usr") || umask(0) != 0123)
		return 9;
	if (epoll_wait(watch, &(struct epoll_event){}, 1, 0) != 1 || fcntl(ends[1], F_GETFD) != -1 ||
	    epoll_wait(60, &(struct epoll_event){}, 1, 0) != 1 || pread(own_status, now, 5, 0) != 5)
		return 10;
	if (prctl(PR_GET_CHILD_SUBREAPER, &reaps, 0, 0, 0) || reaps != 1 ||
	    getrlimit(RLIMIT_SIGPENDING, &own) || memcmp(&own, &limit, sizeof(own)))
		return 11;
	return answer == 5 ? 6 : 7;
}

/* It stays stopped, wait(2) reports that once, and SIGCONT lets it run on. */
static void check_stopped(pid_t pid)
{
	siginfo_t info = { 0 };
	int status;

	check_sleep_ms(200);
	CHECK(!waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT | WNOHANG) && info.si_pid == pid);
	CHECK(waitpid(pid, &status, WUNTRACED | WNOHANG) == pid && WIFSTOPPED(status) &&
	      WSTOPSIG(status) == SIGSTOP);
	CHECK(waitpid(pid, &status, WUNTRACED | WNOHANG) == 0);
	CHECK(!kill(pid, SIGCONT));
}

static char stack[2][1 << 16];

static int uncle(void *argument)
{
	return clone(child, stack[1] + sizeof(stack[1]), CLONE_VM | SIGCHLD, argument) < 0 ||
	       wait(NULL) < 0;
}

int main(int argc, char **argv)
{
	char *what = argc > 3 ? argv[3] : "";
	bool is_uncle = !strcmp(what, "uncle");
	struct rlimit lower, own;
	char path[32];
	struct stat st;
	siginfo_t info;
	int status;
	pid_t pid;

	check_begin(argc, argv);
	NEED(!pipe(ends) && write(ends[1], "x", 1) == 1);
	watch = epoll_create1(EPOLL_CLOEXEC);
	NEED(!epoll_ctl(watch, EPOLL_CTL_ADD, ends[0], &(struct epoll_event){ .events = EPOLLIN }));
	own_status = open("/proc/self/status", O_RDONLY);
	own_exe = open("/proc/self/exe", O_PATH | O_NOFOLLOW);
	NEED(own_status >= 0 && own_exe >= 0);
	pid = clone(is_uncle ? uncle : child, stack[0] + sizeof(stack[0]), CLONE_VM | SIGCHLD, what);
	NEED(pid > 0);
	while (!there)
		check_sleep_ms(1);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	NEED(strcmp(what, "pidfd") || syscall(SYS_pidfd_open, pid, 0) >= 0);
	NEED(strcmp(what, "status") || open(path, O_RDONLY) >= 0);
	NEED(strcmp(what, "owner") || !fcntl(ends[0], F_SETOWN, pid));
	lower = (struct rlimit){ limit.rlim_cur / 2, limit.rlim_max / 2 };
	NEED(!setrlimit(RLIMIT_SIGPENDING, &lower));
	if (!strcmp(what, "stopped"))
		NEED(!kill(pid, SIGSTOP) && !waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT));
	check_ready();
	check_wait();
	CHECK(epoll_wait(watch, &(struct epoll_event){}, 1, 0) == 1 && fcntl(ends[1], F_GETFD) == 0);
	CHECK(!fstat(own_exe, &st) && S_ISLNK(st.st_mode));
	CHECK(!getrlimit(RLIMIT_SIGPENDING, &own) && !memcmp(&own, &lower, sizeof(own)));
	answer = 5;
	if (!strcmp(what, "stopped"))
		check_stopped(pid);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == (is_uncle ? 0 : 6));
	return check_end();
}
