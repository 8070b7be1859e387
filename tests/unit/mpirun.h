/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For tests that talk to the coordinator of a job: it runs in a process of its own, an
 * mpirun without MPI.
 */
#ifndef TESTS_UNIT_MPIRUN_H
#define TESTS_UNIT_MPIRUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "job/coordinator/root.h"
#include "job/coordinator/wire.h"

struct access {
	char address[1024];
	char secret[WIRE_SECRET + 1];
};

extern struct access job;
extern pid_t mpirun;
extern struct root_settings mpirun_settings;	/* set before it is started */

/* For cmocka: the last one fails if mpirun has ended by itself. */
int start_mpirun(void **state);
int start_heard_mpirun(void **state);	/* whose standard error mpirun_says() waits for */
int end_mpirun(void **state);
void mpirun_says(const char *text);	/* within a few seconds */
bool mpirun_has_said(const char *text);

double now(void);			/* CLOCK_MONOTONIC, s */
int try_connect(void);			/* to its port: a descriptor or -errno */
int come(void);				/* the same, where it has to work */
/* A daemon gets in within so many seconds, however often it has to try. */
void daemon_comes(struct wire *w, const char *secret, double patience);

#endif /* TESTS_UNIT_MPIRUN_H */
