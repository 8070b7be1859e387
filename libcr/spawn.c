// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Starts a tool beside the program: with none of its descriptors, with default
 * signals.  Between fork and exec(2) only system calls are made: other threads
 * of the program may hold any lock.
 *
 * exec(2) sets the exit signal of any process to SIGCHLD.  So that the program
 * does not see it, the tool is a grandchild; its parent has no exit signal.
 * That parent either ends at once, or stays until the tool has ended, so that
 * the program inherits what the tool leaves behind.
 */
#include "libcr/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_FD	3
#define FIRST_FREE	(CRI_TOOL_FD + 1)
#define MAX_PLACES	32
#define MAX_ARGUMENTS	64

struct plan {
	char place[MAX_PLACES][PATH_MAX];	/* where the tool may be, in order */
	int nr_places;
	char *argument[MAX_ARGUMENTS];
	int fd;					/* becomes CRI_TOOL_FD; -1: none */
	int status;				/* becomes STATUS_FD and the standard error */
};

static void add_place(struct plan *plan, const char *folder, size_t length, const char *suffix,
		      const char *tool)
{
	if (plan->nr_places < MAX_PLACES && length &&
	    (size_t)snprintf(plan->place[plan->nr_places], PATH_MAX, "%.*s%s/%s", (int)length,
			     folder, suffix, tool) < PATH_MAX)
		plan->nr_places++;
}

/*
 * The absolute path of the file with our code (a relative one may mean another file by
 * now).  "": unknown, or not to be trusted: if we are linked statically, the user who
 * starts a set-user-ID program chooses its path, by a link.
 */
static void find_self(char path[PATH_MAX])
{
	const struct link_map *map = NULL;
	ssize_t length;
	Dl_info info;

	path[0] = '\0';
	if (dladdr1((void *)(uintptr_t)cri_spawn, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
	    map->l_name[0] == '/') {
		if (strlen(map->l_name) < PATH_MAX)
			strcpy(path, map->l_name);
		return;
	}
	if (getauxval(AT_SECURE))
		return;
	length = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[length > 0 ? length : 0] = '\0';
}

/* Beside the library that this is, in PATH, in the usual place. */
static void find_places(struct plan *plan, const char *tool)
{
	const char *path = secure_getenv("PATH"), *slash, *end;
	char self[PATH_MAX];

	find_self(self);
	slash = strrchr(self, '/');
	if (slash) {
		add_place(plan, self, slash - self, "/../bin", tool);
		add_place(plan, self, slash - self, "/../../bin", tool);
	}
	for (; path && *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		add_place(plan, path, end - path, "", tool);
	}
	add_place(plan, "/usr/bin", 8, "", tool);
}

static void put(int from, int to)
{
	dup2(from, to);
}

/* In the new process. */
static void become_tool(const struct plan *plan)
{
	static const char failed[] = "\001done 38 0\n";	/* ENOSYS */
	struct sigaction plain = { .sa_handler = SIG_DFL };
	int status = fcntl(plan->status, F_DUPFD, FIRST_FREE + 3);
	int fd = plan->fd >= 0 ? fcntl(plan->fd, F_DUPFD, FIRST_FREE + 3) : -1;
	int null = open("/dev/null", O_RDWR);
	pid_t pid = syscall(SYS_getpid);
	sigset_t none;
	char byte;

	if (null < 0 || status < 0 || (plan->fd >= 0 && fd < 0))
		_exit(1);
	put(null, STDIN_FILENO);
	put(null, STDOUT_FILENO);
	put(status, STDERR_FILENO);
	put(status, STATUS_FD);
	if (fd >= 0)
		put(fd, CRI_TOOL_FD);
	syscall(SYS_close_range, fd >= 0 ? FIRST_FREE : CRI_TOOL_FD, ~0u, 0);
	/*
	 * Send our PID, then wait until we may begin.  The program's end of the socket is closed
	 * here by now: its death ends this.
	 */
	if (write(STATUS_FD, &pid, sizeof(pid)) != sizeof(pid) || read(STATUS_FD, &byte, 1) != 1)
		_exit(1);
	for (int i = 1; i <= 64; i++)
		sigaction(i, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < plan->nr_places; i++)
		execv(plan->place[i], plan->argument);
	if (write(STATUS_FD, failed, sizeof(failed) - 1) < 0)
		_exit(1);
	_exit(0);
}

static long plain_fork(int exit_signal)
{
	return syscall(SYS_clone, exit_signal, NULL, NULL, NULL, NULL);
}

/* Between the program and the tool. */
static void stand_between(const struct plan *plan, bool stay)
{
	pid_t tool = plain_fork(SIGCHLD);

	if (!tool)
		become_tool(plan);
	if (stay) {
		syscall(SYS_close_range, 0, ~0u, 0);
		while (tool > 0 && waitpid(tool, NULL, 0) < 0 && errno == EINTR)
			;
	}
	_exit(0);
}

/* 0 or an errno. */
static int start(const struct plan *plan, pid_t *between)
{
	pid_t pid = plain_fork(0);

	if (pid < 0)
		return errno;
	if (!pid)
		stand_between(plan, between);
	if (between)
		*between = pid;
	else
		cri_spawn_end(pid);
	return 0;
}

void cri_spawn_end(pid_t between)
{
	while (waitpid(between, NULL, __WALL) < 0 && errno == EINTR)
		;
}

int cri_spawn(const char *tool, const char *const *arguments, int fd, int status, pid_t *between)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	sigset_t all, old;
	int n = 0, err;

	if (!plan)
		return ENOMEM;
	find_places(plan, tool);
	plan->argument[n++] = (char *)(uintptr_t)tool;
	plan->argument[n++] = (char *)(uintptr_t)"--status-fd=3";
	for (; *arguments && n < MAX_ARGUMENTS - 1; arguments++)
		plan->argument[n++] = (char *)(uintptr_t)*arguments;
	plan->fd = fd;
	plan->status = status;
	/* No signal handler of the program may run in the new processes. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = start(plan, between);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	free(plan);
	return err;
}
