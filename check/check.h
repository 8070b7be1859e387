/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cr_check: what is asked of a machine before anybody relies on its checkpoints.  machine.c
 * asks the module and the kernel, open_mpi.c looks for components, slurm.c for plugins, self_test.c saves and
 * restarts a little program.
 */
#ifndef KCR_CHECK_CHECK_H
#define KCR_CHECK_CHECK_H

enum check_result {
	CHECK_OK,
	CHECK_NOTE,		/* something works in another way, or is left out */
	CHECK_FAILED,
};

struct check_answer {
	enum check_result result;
	char text[512];		/* what was found: one line */
	char advice[512];	/* what to do about it; "": nothing */
};

/* Sets all of an answer; `advice` may be "". */
void check_answer(struct check_answer *answer, enum check_result result, const char *advice,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Sets it to a failure with the message that report_fail() has recorded, and clears that. */
void check_failed(struct check_answer *answer, int err);

/* The module is loaded, of this release, and this user may open it. */
void check_module(struct check_answer *answer);
/* cr_checkpoint --snapshot, and old process IDs. */
void check_features(struct check_answer *answer);
/* What of the processor a restart elsewhere may need. */
void check_processor(struct check_answer *answer);
/* Who may look at another process here. */
void check_tracing(struct check_answer *answer);
/* Open MPI and its components of this release. */
void check_open_mpi(struct check_answer *answer);
/* Slurm, the plugin for sbatch --kcr, and kcr.lua. */
void check_slurm(struct check_answer *answer);
/* A program with two threads, a pipe, a file and a TCP connection is saved, killed, restarted and ends well. */
void check_self(struct check_answer *answer);

#endif /* KCR_CHECK_CHECK_H */
