// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks started through proxies on one node: cr_rank and cr_node themselves, between a
 * simulated launcher and a simulated cr_mpirun.  All nodes do this at the same time.
 */
#include "scale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/rank_message.h"
#include "launch/reach.h"
#include "proc/proc.h"

extern char **environ;

static struct {
	uint32_t count, started;
	pid_t *pid;
	struct wire mpirun;		/* its end of the daemon's connection */
} sim;

static void start_one(uint32_t number, char *const *argv)
{
	posix_spawn_file_actions_t silent;	/* proxies say it when their job ends */

	posix_spawn_file_actions_init(&silent);
	posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	errno = posix_spawn(&sim.pid[number], argv[0], &silent, NULL, argv, environ);
	if (errno)
		scale_fail(argv[0]);
	posix_spawn_file_actions_destroy(&silent);
}

/* What the launcher sets for all, and for each. */
static void start_proxies(char *program, const char *root, int round)
{
	char *const argv[] = { program, "/bin/sleep", "1000", NULL };
	char text[32];

	snprintf(text, sizeof(text), "%08x%08x", getpid(), round);
	setenv(REACH_JOB_VARIABLE, text, 1);
	setenv(WIRE_ROOT_VARIABLE, root, 1);
	setenv(WIRE_SECRET_VARIABLE, SCALE_SECRET, 1);
	snprintf(text, sizeof(text), "%u", sim.count);
	setenv("OMPI_COMM_WORLD_SIZE", text, 1);
	for (uint32_t i = 0; i < sim.count; i++) {
		snprintf(text, sizeof(text), "%u", i);
		setenv("OMPI_COMM_WORLD_RANK", text, 1);
		start_one(i, argv);
	}
}

static double start_directly(void)
{
	char *const argv[] = { "/bin/sleep", "1000", NULL };
	double start = scale_now();

	for (uint32_t i = 0; i < sim.count; i++)
		start_one(i, argv);
	return scale_now() - start;
}

static void take(size_t number, const struct wire_header *h, const uint8_t *data)
{
	struct rank_message m;
	size_t length;

	(void)number;
	if (rank_message_read(h, &data, &m, &length))
		sim.started += m.type == RANK_STARTED;
}

static int all_started(void)
{
	return sim.started == sim.count;
}

/* Is it the daemon of these proxies? */
static bool is_daemon(pid_t pid)
{
	char assignment[64], **environment = proc_environment(pid);
	bool same = false;

	snprintf(assignment, sizeof(assignment), REACH_JOB_VARIABLE "=%s", getenv(REACH_JOB_VARIABLE));
	for (char **each = environment; each && *each && !same; each++)
		same = !strcmp(*each, assignment);
	free(environment);
	for (uint32_t i = 0; i < sim.count; i++)
		same &= sim.pid[i] != pid;
	return same;
}

/* The first one: the ranks' environment is its own but for what proxies need. */
static pid_t find_daemon(void)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (all && !found && (entry = readdir(all))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 0 && pid != getpid() && is_daemon(pid))
			found = pid;
	}
	closedir(all);
	errno = ESRCH;
	if (!found)
		scale_fail("cr_node");
	return found;
}

static void end_all(void)
{
	for (uint32_t i = 0; i < sim.count; i++)
		kill(sim.pid[i], SIGKILL);
	for (uint32_t i = 0; i < sim.count; i++)
		waitpid(sim.pid[i], NULL, 0);
}

static void measure(char *program, int round, double *all, double *daemon, double *proxy)
{
	char root[SCALE_ROOT];
	int listener = scale_listen(root);
	double start = scale_now();
	pid_t pid;

	sim.started = 0;
	start_proxies(program, root, round);
	scale_accept(listener, &sim.mpirun);
	scale_serve(&sim.mpirun, 1, -1, all_started, take);
	*all = scale_now() - start;
	pid = find_daemon();
	*daemon = scale_used(pid);
	*proxy = 0;
	for (uint32_t i = 0; i < sim.count; i++)
		*proxy += scale_used(sim.pid[i]) / sim.count;
	wire_close(&sim.mpirun);		/* which ends the job */
	end_all();
}

void scale_launch(const char *bin, uint32_t count, int rounds, struct scale_launch *out)
{
	double all[SCALE_ROUNDS_MAX], daemon[SCALE_ROUNDS_MAX], proxy[SCALE_ROUNDS_MAX];
	double direct[SCALE_ROUNDS_MAX];
	char program[4096];

	snprintf(program, sizeof(program), "%s/cr_rank", bin);
	sim.count = count;
	sim.pid = calloc(count, sizeof(*sim.pid));
	for (int i = 0; i < rounds; i++) {
		measure(program, i, &all[i], &daemon[i], &proxy[i]);
		direct[i] = start_directly();
		end_all();
	}
	*out = (struct scale_launch){
		.all_ms = scale_median(all, rounds), .daemon_ms = scale_median(daemon, rounds),
		.proxy_ms = scale_median(proxy, rounds), .direct_ms = scale_median(direct, rounds),
	};
	free(sim.pid);
}
