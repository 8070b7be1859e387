/* SPDX-License-Identifier: GPL-2.0 */
/* What a launcher leaves behind that was killed. */
#ifndef LAUNCH_LEFTOVERS_H
#define LAUNCH_LEFTOVERS_H

#include <sys/types.h>

/* Removes the session directory of an mpirun with this PID on this node, if it is this user's. */
void leftovers_remove(pid_t launcher);

#endif /* LAUNCH_LEFTOVERS_H */
