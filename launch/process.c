// SPDX-License-Identifier: GPL-2.0
/* A rank as the daemon's child.  See process.h. */
#include "launch/process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/wire.h"
#include "launch/reach.h"
#include "launch/settings.h"
#include "launch/start.h"
#include "proc/tree.h"

void process_init(struct process *p)
{
	p->pid = 0;
	p->pidfd = -1;
	p->rank = WIRE_ALL;
	p->size = 0;
	for (int n = 0; n < STREAMS; n++)
		p->other[n] = -1;
}

/*
 * What only daemon and proxy need, the secret above all: images and printed environments
 * must not contain it.
 */
static bool is_ours(const char *assignment)
{
	static const char *const names[] = {
		WIRE_SECRET_VARIABLE, WIRE_SILENCE_VARIABLE, WIRE_DAEMON_VARIABLE,
		REACH_JOB_VARIABLE, SETTINGS_VARIABLE, SETTINGS_COMPONENTS_VARIABLE,
		SETTINGS_OUTPUT_VARIABLE, REACH_STEP_VARIABLE,
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(assignment, names[i], length) && assignment[length] == '=')
			return true;
	}
	return false;
}

/* `daemon` is the assignment to be added, or NULL. */
static char **environment_of(const struct launch_start *s, char *daemon)
{
	size_t count = 0, n = 0;
	char **out;

	while (s->environment[count])
		count++;
	out = calloc(count + 2, sizeof(*out));
	for (char **each = s->environment; out && *each; each++)
		if (!is_ours(*each))
			out[n++] = *each;
	if (out && daemon)
		out[n] = daemon;
	return out;
}

/* The value of this variable of the program, or `otherwise`. */
static uint32_t number_of(const struct launch_start *s, const char *name, uint32_t otherwise)
{
	size_t length = strlen(name);

	for (char **each = s->environment; *each; each++)
		if (!strncmp(*each, name, length) && (*each)[length] == '=')
			return strtoul(*each + length + 1, NULL, 10);
	return otherwise;
}

/* In the child, in this process's memory: it changes nothing there. */
static __attribute__((noinline)) void become(const struct launch_start *s,
					     const struct streams *streams, char **environment,
					     pid_t parent)
{
	sigset_t none;
	int err;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* a daemon that dies takes its ranks with it */
	if (getppid() != parent)		/* it has done so before */
		_exit(126);
	for (int n = 0; n < STREAMS; n++)
		dup2(streams->rank[n], n);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	err = start_apply(s);
	if (err) {
		dprintf(STDERR_FILENO, "KCR: cannot enter %s: %s\n", s->cwd, strerror(-err));
		_exit(126);
	}
	err = start_execute(s, environment);
	dprintf(STDERR_FILENO, "KCR: cannot start %s: %s\n", s->argv[0], strerror(-err));
	_exit(err == -ENOENT ? 127 : 126);
}

/*
 * Without a copy of this process's memory, which takes as long as the program's start.  It waits
 * until the program is executed, as the launcher does for each of its own.  No handler runs
 * in the child.
 */
static pid_t split(const struct launch_start *s, const struct streams *streams, char **environment)
{
	pid_t parent = getpid(), child;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = vfork();
	if (!child)
		become(s, streams, environment, parent);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return child < 0 ? -errno : child;
}

static int start(struct process *p, const struct launch_start *s, struct streams *streams,
		 const char *daemon)
{
	char assignment[sizeof(WIRE_DAEMON_VARIABLE) + 128];
	char **environment;
	pid_t child;
	int err;

	snprintf(assignment, sizeof(assignment), "%s=%s", WIRE_DAEMON_VARIABLE, daemon ?: "");
	environment = environment_of(s, daemon ? assignment : NULL);
	if (!environment)
		return -ENOMEM;
	child = split(s, streams, environment);
	free(environment);
	if (child < 0)
		return child;
	p->pid = child;
	p->pidfd = syscall(SYS_pidfd_open, child, 0);
	if (p->pidfd >= 0)
		return 0;
	err = -errno;
	process_signal(p, SIGKILL);
	waitpid(child, NULL, 0);
	p->pid = 0;
	return err;
}

int process_start(struct process *p, int description, const int given[STREAMS],
		  const char *daemon)
{
	struct launch_start s;
	struct streams streams;
	int err = start_read(description, &s);

	if (err)
		return err;
	p->rank = number_of(&s, "OMPI_COMM_WORLD_RANK", WIRE_ALL);
	p->size = number_of(&s, "OMPI_COMM_WORLD_SIZE", 0);
	err = streams_open(&streams, given);
	if (!err) {
		err = start(p, &s, &streams, daemon);
		streams_close(streams.rank);
		if (err)
			streams_close(streams.other);
		memcpy(p->other, streams.other, sizeof(p->other));
	}
	start_free(&s);
	return err;
}

/* Nobody between passes it on: a shell, or cr_restart above a restored rank. */
static bool is_for_all(int number)
{
	return number == SIGKILL || number == SIGSTOP || number == SIGCONT;
}

void process_signal(const struct process *p, int number)
{
	pid_t *all = NULL;
	ssize_t count;

	if (p->pid <= 0)
		return;
	count = is_for_all(number) ? proc_tree(p->pid, &all) : 0;
	if (kill(-p->pid, number))
		kill(p->pid, number);
	for (ssize_t i = 0; i < count; i++)
		kill(all[i], number);
	free(all);
}

int process_take(struct process *p)
{
	int status = 0;

	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(p->pidfd);
	p->pidfd = -1;
	p->pid = 0;
	return status;
}
