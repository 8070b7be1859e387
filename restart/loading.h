/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How others see that a cr_restart loads memory while the programs run (lazy.h): by its name, which
 * outlives it until it is waited for.
 */
#ifndef KCR_RESTART_LOADING_H
#define KCR_RESTART_LOADING_H

#include <stdbool.h>
#include <sys/types.h>

struct loading {
	char name[32];			/* of this process otherwise */
};

/* From now on this process loads memory; any of its threads may say so. */
void loading_begin(struct loading *l);
/* All is loaded. */
void loading_end(const struct loading *l);

/* Does the process load memory?  Or, if it has ended and was not waited for: had it not loaded all? */
bool loading_is(pid_t pid);

#endif /* KCR_RESTART_LOADING_H */
