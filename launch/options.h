/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the user has asked cr_mpirun itself for: by options that mpirun does not get, or by
 * parameters (--mca schizo_cr_NAME), which came before them.
 */
#ifndef LAUNCH_OPTIONS_H
#define LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/command.h"

struct options {
	int signal;			/* saves the job; 0: none */
	uint64_t interval_ns, mttf_ns;	/* of struct root_settings */
	char *path;			/* of snapshots that signal or interval ask for; absolute */
	unsigned int keep;
	const char *local;		/* folder on every node, or NULL */
	const char *interfaces;		/* separated by commas, or NULL: all */
	bool stand_still;
	bool incremental;
	char **arguments;		/* of cr_checkpoint, for them; NULL: none */
	unsigned int silence_s;		/* of a node, until it is lost; 0: as ever */
	unsigned int answer_s;		/* of struct root_settings */
	unsigned int start_s;		/* of a restart in which nothing happens; 0: as ever */
	unsigned int spares;		/* hosts that are only used in the place of lost ones */
	unsigned int recoveries;	/* from failures, at most */
	bool from_start;		/* also if there is no snapshot yet */
	bool exits;			/* a rank's status other than 0 is a failure, too */
};

/* 0, or -EINVAL with a message (report.h), or -ENOMEM.  `c` must remain. */
int options_read(struct options *o, const struct command *c);
void options_free(struct options *o);

#endif /* LAUNCH_OPTIONS_H */
