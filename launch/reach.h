/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a proxy finds the daemon of its node.  The daemon's socket has an abstract name, made
 * of the job's number and the node's name: nothing is left behind, and of the proxies of
 * a job, which start at the same time, the one that gets the name starts the daemon.
 */
#ifndef LAUNCH_REACH_H
#define LAUNCH_REACH_H

#include <stdbool.h>
#include <stddef.h>

/* The number of the job, REACH_JOB hexadecimal digits, which is no secret. */
#define REACH_JOB_VARIABLE	"KCR_MPI_JOB"
#define REACH_JOB		16

/*
 * Connects to the daemon of this node for `job`; starts it if there is none: the program
 * cr_node beside this one, with the listening socket as descriptor REACH_LISTENER.
 * A file descriptor, or -errno with a message (report.h).
 */
int reach_daemon(const char *job);

#define REACH_LISTENER	3

/* For a proxy: the daemon is started by others, with this argument; it only waits for it. */
#define REACH_STEP_VARIABLE	"KCR_MPI_STEP"
#define REACH_STEP_ARGUMENT	"--step"

/* In such a daemon: opens REACH_LISTENER.  0, or -errno with a message. */
int reach_serve(const char *job);

/*
 * What the daemon calls its node: the host's name; `by_step`, as the task of a step: the one that
 * Slurm has for it, which its options --nodelist and --exclude need.
 */
void reach_name_node(bool by_step, char *name, size_t room);

#endif /* LAUNCH_REACH_H */
