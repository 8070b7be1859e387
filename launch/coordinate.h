/* SPDX-License-Identifier: GPL-2.0 */
/* A job whose coordinator is this process. */
#ifndef LAUNCH_COORDINATE_H
#define LAUNCH_COORDINATE_H

/*
 * Runs mpirun with `arguments` and proxies in the place of its programs; meanwhile this
 * process takes requests for checkpoints.  `version` is Open MPI's.  If the job cannot be
 * checkpointed it says why on standard error, and runs all the same.
 * As from waitpid(2), or -errno with a message (report.h).
 */
int coordinate(char *const *arguments, const char *version);

#endif /* LAUNCH_COORDINATE_H */
