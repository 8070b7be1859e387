/* SPDX-License-Identifier: GPL-2.0 */
/* What is the same in every snapshot of a job: how it was started. */
#ifndef JOB_DESCRIBE_H
#define JOB_DESCRIBE_H

#include "job/snapshot.h"

/*
 * `options` and `program` are those of this process's command line, `openmpi` is the
 * version of Open MPI.  A job that was restarted (RELAUNCH_VARIABLE) keeps its original
 * program and counts its snapshots on.  The environment is the one this process was
 * started with.  NULL: no memory, or with a message what the restarted snapshot lacks.
 */
struct snapshot *job_describe(char *const *options, char *const *program, const char *openmpi);

#endif /* JOB_DESCRIBE_H */
