/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The program that a proxy was to be, as it goes to the daemon of the node: what the
 * launcher has chosen for this process and the program is to have.
 */
#ifndef LAUNCH_START_H
#define LAUNCH_START_H

#include <stdint.h>
#include <sys/resource.h>

#define START_CPUS	1024		/* bytes: a bit for each of 8192 processors */

struct launch_start {
	uint32_t mask;			/* umask */
	uint32_t cpus_length;		/* bytes of `cpus` that are used */
	uint8_t cpus[START_CPUS];	/* as sched_setaffinity(2) takes it */
	struct rlimit limit[RLIM_NLIMITS];
	char *cwd;
	char **argv, **environment;	/* NULL-terminated */
	char *strings;			/* all of them; start_free() frees it */
};

/*
 * Describes this process with the program `argv`, in an unnamed file that can no longer be
 * changed.  Its file descriptor or -errno.
 */
int start_describe(char *const *argv);

/* Reads such a file, which may be anything: 0 or -errno (-EINVAL: malformed). */
int start_read(int fd, struct launch_start *s);
void start_free(struct launch_start *s);

/* In a new process: takes everything over but the environment.  0 or -errno. */
int start_apply(const struct launch_start *s);

/*
 * Executes it in this process's place, found in the PATH of that environment, as execvp(3) does.
 * Returns -errno.  Both may be called after a vfork(2): they change nothing in memory.
 */
int start_execute(const struct launch_start *s, char *const *environment);

#endif /* LAUNCH_START_H */
