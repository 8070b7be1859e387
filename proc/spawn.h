/* SPDX-License-Identifier: GPL-2.0 */
/* Starting a program, and hearing whether it could be executed. */
#ifndef KCR_PROC_SPAWN_H
#define KCR_PROC_SPAWN_H

#include <sys/types.h>

/*
 * Starts argv[0], found in PATH, as a child; `prepare` (or NULL) is called in the child before.
 * Returns its PID when it is executed, or -errno if it cannot be (there is no child then).
 */
pid_t spawn_program(char *const *argv, void (*prepare)(void));

/* The path of `name` in the folder of the program that runs here; malloc()ed or NULL. */
char *spawn_beside(const char *name);

#endif /* KCR_PROC_SPAWN_H */
