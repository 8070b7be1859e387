// SPDX-License-Identifier: GPL-2.0
/*
 * Starting, restarting and ending the program; see program.h.
 *
 * cr_restart is asked for a status line (util/status.h): then it does not stand for the
 * program, but ends once it runs, and the leader becomes the child of its nearest
 * subreaper, this process.  So the program is a descendant in any case, and may be saved
 * where Yama lets nobody else look at it.
 */
#include "batch/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/command.h"
#include "job/request.h"
#include "proc/clock.h"
#include "proc/spawn.h"
#include "proc/status.h"
#include "proc/tree.h"
#include "report/report.h"
#include "util/follow.h"

#define MPIRUN_PATIENCE_NS	(10 * 1000000000ull)

int program_adopt(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) ?
		report_errno(-errno, "cannot become the parent of restarted programs") : 0;
}

/* ---- starting ---------------------------------------------------------------------- */

pid_t program_start(char *const command[])
{
	pid_t child = spawn_program(command, follow_end);

	return child < 0 ? report_errno(child, "cannot start %s", command[0]) : child;
}

/* ---- restarting -------------------------------------------------------------------- */

/* What nobody would watch is not rebuilt; cr_restart takes that back once the program runs. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EINTR);
}

static void become_restart(const struct program_restart *how, int to_parent)
{
	char *tool = spawn_beside("cr_restart"), option[32];
	const char *argv[6 + 2 * PROGRAM_RULES_MAX];
	int count = 0;

	snprintf(option, sizeof(option), "--status-fd=%d", to_parent);
	argv[count++] = tool;
	if (!how->mpi) {		/* its options would be mpirun's */
		argv[count++] = option;
		fcntl(to_parent, F_SETFD, 0);
		if (how->new_ids)
			argv[count++] = "--no-restore-pid";
		if (how->pid_namespace)
			argv[count++] = "--pid-namespace";
		for (int i = 0; how->rules && how->rules[i] && i < PROGRAM_RULES_MAX; i++) {
			argv[count++] = "--relocate";
			argv[count++] = how->rules[i];
		}
	}
	argv[count++] = how->path;
	argv[count] = NULL;
	follow_end();
	if (tool)
		execvp(tool, (char *const *)argv);
	fprintf(stderr, "cr_batch: cannot run %s: %s\n", tool ? tool : "cr_restart",
		strerror(errno));
	_exit(ENOENT);
}

/* The leader's PID from cr_restart's line; 0: it ended without one for success. */
static pid_t read_leader(int fd)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;
	pid_t leader = 0;
	int err, pid;

	if (!in) {
		close(fd);
		return 0;
	}
	while (getline(&line, &size, in) > 0)
		if (sscanf(line, "\001done %d %d", &err, &pid) == 2 && !err)
			leader = pid;
	free(line);
	fclose(in);
	return leader;
}

/* Does such a signal come from somebody who ends processes, and not from a fault of this one? */
static bool is_sent(int signal)
{
	static const int faults[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (signal == faults[i])
			return false;
	return true;
}

/* Until cr_restart has ended without a restarted program: -errno. */
static int wait_for_failure(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFSIGNALED(status))
		return is_sent(WTERMSIG(status)) ? -EINTR : -EIO;
	return WEXITSTATUS(status) ? -WEXITSTATUS(status) : -EIO;
}

int program_restart(const struct program_restart *how, pid_t *leader, pid_t *child)
{
	pid_t tool, self = getpid();
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return report_errno(-errno, "cannot run cr_restart");
	tool = fork();
	if (!tool && !how->mpi)
		end_with(self);
	if (!tool)
		become_restart(how, ends[1]);
	close(ends[1]);
	if (tool < 0) {
		err = report_errno(-errno, "cannot run cr_restart");
		close(ends[0]);
		return err;
	}
	*leader = read_leader(ends[0]);
	if (how->mpi)
		*leader = tool;		/* it becomes the mpirun */
	*child = how->mpi || how->pid_namespace ? tool : *leader;
	if (*child == tool && *leader > 0)
		return 0;
	err = wait_for_failure(tool);
	return *leader > 0 ? 0 : err;
}

/* ---- looking ----------------------------------------------------------------------- */

struct stray_search {
	pid_t known;			/* of the children of an adopter: the one that is no stray */
	int (*fn)(void *arg, pid_t stray);
	void *arg;
};

static int unless_known(void *arg, pid_t child)
{
	const struct stray_search *search = arg;

	return child == search->known ? 0 : search->fn(search->arg, child);
}

void program_each_stray(pid_t leader, pid_t child, int (*fn)(void *arg, pid_t stray), void *arg)
{
	struct stray_search search = { child, fn, arg };
	pid_t init;

	proc_each_child(getpid(), unless_known, &search);
	if (leader == child)
		return;
	/* The leader's parent, part of cr_restart, is a child of the namespace's process 1. */
	search.known = stat_parent(leader);
	init = stat_parent(search.known);
	if (search.known > 1 && init > 1 && init != child)
		proc_each_child(init, unless_known, &search);
}

/* ---- ending ------------------------------------------------------------------------ */

bool program_is_mpi(pid_t leader)
{
	int fd = job_connect(leader);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool ends_in_time(pid_t leader)
{
	uint64_t deadline = now_ns() + MPIRUN_PATIENCE_NS;

	while (now_ns() < deadline) {
		siginfo_t info = {};

		if (waitid(P_PID, leader, &info, WEXITED | WNOHANG | WNOWAIT) ? kill(leader, 0) :
		    info.si_pid == leader)
			return true;
		usleep(20000);
	}
	return false;
}

void program_end(pid_t leader)
{
	if (!program_is_mpi(leader) || kill(leader, SIGTERM) || !ends_in_time(leader))
		program_kill(leader);
}

/* To all of it. */
static void signal_tree(pid_t leader, int signal)
{
	pid_t *all;
	ssize_t count = proc_tree(leader, &all);

	if (count < 0) {
		kill(leader, signal);
		return;
	}
	for (ssize_t i = 0; i < count; i++)
		kill(all[i], signal);
	free(all);
}

void program_kill(pid_t leader)
{
	signal_tree(leader, SIGKILL);
}

void program_run_on(pid_t leader)
{
	if (program_is_mpi(leader))
		kill(leader, SIGCONT);	/* it has all ranks go on, on all nodes */
	else
		signal_tree(leader, SIGCONT);
}
