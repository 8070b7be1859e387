/* SPDX-License-Identifier: GPL-2.0 */
/* cr_check PID: would this program be saved, and what would that be like? */
#ifndef KCR_CHECK_PROGRAM_H
#define KCR_CHECK_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

struct program_options {
	pid_t pid;			/* with all its descendants */
	const char *folder;		/* where the context file would go */
	bool stop;			/* stop it for a moment, to see what shows only then */
	bool json;
};

/* Prints what is found.  True: it would be saved. */
bool program_examine(const struct program_options *o);

#endif /* KCR_CHECK_PROGRAM_H */
