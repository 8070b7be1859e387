// SPDX-License-Identifier: GPL-2.0
/*
 * cr_node: the daemon of a node, one for each job.  It is the parent of the job's ranks on
 * this node and saves them when cr_mpirun says so.  Started by cr_rank, with the
 * socket for the proxies open; see cr_node(8).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "job/coordinator/node.h"
#include "job/coordinator/wire.h"
#include "launch/keeper.h"
#include "launch/reach.h"
#include "launch/start.h"
#include "report/report.h"

#define PROXY_MS	10000		/* for the first rank of a node whose daemon cannot join */

static void output_to_null(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int n = STDIN_FILENO; n <= STDERR_FILENO; n++)
		dup2(null, n);
	close(null);
}

/* The launcher has bound the proxy that started this to the processors of one rank. */
static void use_all_processors(void)
{
	uint8_t all[START_CPUS];

	memset(all, 0xff, sizeof(all));
	syscall(SYS_sched_setaffinity, 0, sizeof(all), all);
}

/* Seven for each rank may be more than programs are allowed; these have limits of their own. */
static void allow_many_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/*
 * srun starts a daemon on each node of the allocation.  Where no ranks are, it may come when all ranks
 * have, and cr_mpirun does not listen any more.
 */
static bool has_ranks(bool by_step)
{
	struct pollfd p = { REACH_LISTENER, POLLIN, 0 };

	return !by_step || poll(&p, 1, PROXY_MS) > 0;
}

/* Connects to cr_mpirun.  A socket for messages about ranks, or -errno. */
static int join(bool by_step, char *name)
{
	const char *root = getenv(WIRE_ROOT_VARIABLE), *secret = getenv(WIRE_SECRET_VARIABLE);
	const char *silence = getenv(WIRE_SILENCE_VARIABLE);
	char host[HOST_NAME_MAX + 1];
	int job, err;

	reach_name_node(by_step, host, sizeof(host));
	err = root && secret && strlen(secret) == WIRE_SECRET ?
		node_start(root, secret, host, silence ? strtoul(silence, NULL, 10) : 0,
			   name, &job) : -EINVAL;
	if (!err)
		return job;
	if (has_ranks(by_step))
		fprintf(stderr, "KCR: the ranks on %s cannot be checkpointed and get no standard input: "
			"%s\n", host, report_error() == err ? report_message() : strerror(-err));
	return err;
}

/*
 * As a task of a step it would get what is sent to all steps of the job: only the end of
 * cr_mpirun, or SIGKILL, ends it.  The ranks begin with all signals at their default.
 */
static int serve_step(void)
{
	const char *name = getenv(REACH_JOB_VARIABLE);

	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD && number != SIGSEGV && number != SIGBUS && number != SIGFPE &&
		    number != SIGILL)
			signal(number, SIG_IGN);
	if (name && strlen(name) == REACH_JOB)
		return reach_serve(name);
	return report_fail(-EINVAL, "cr_node is started by cr_rank or cr_mpirun (see cr_mpirun(1))");
}

int main(int argc, char **argv)
{
	char name[NODE_NAME_MAX];
	int listening = 0, job;
	socklen_t length = sizeof(listening);
	bool by_step;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("cr_node (KCR) " KCR_VERSION);
		return 0;
	}
	report_set_program("KCR");
	by_step = argc == 2 && !strcmp(argv[1], REACH_STEP_ARGUMENT);
	if (by_step) {
		int err = serve_step();

		if (err) {
			report_print(err);
			return report_exit_code(err);
		}
	}
	if (getsockopt(REACH_LISTENER, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) ||
	    !listening) {
		fputs("cr_node is started by cr_rank (see cr_mpirun(1))\n", stderr);
		return EINVAL;
	}
	fcntl(REACH_LISTENER, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	use_all_processors();
	allow_many_files();
	job = join(by_step, name);
	unsetenv(WIRE_SECRET_VARIABLE);
	output_to_null();
	keeper_run(REACH_LISTENER, job < 0 ? -1 : job, job < 0 ? NULL : name);
	if (job >= 0)
		node_finish();
	return 0;
}
