/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folders that a scheduler makes for each run, under another name each time, such as
 * TMPDIR: what a saved program had open in one is looked for in that of the new run.
 */
#ifndef KCR_BATCH_SCRATCH_H
#define KCR_BATCH_SCRATCH_H

#define SCRATCH_MAX	16	/* as many rules as cr_restart takes */

/*
 * Adds those of this run to a list of "VARIABLE=FOLDER", a vector of the caller's for
 * strings_free(): those of the newest runs, the newest last.  0 or -ENOMEM.
 */
int scratch_note(char ***list);

/*
 * For the list of the runs before: the rules for cr_restart --relocate, SCRATCH_MAX at most,
 * as a vector for strings_free(), with a line in the log for each.  There is one for each
 * folder that does not exist any more, if this run has one for it: the checkpoint may be of
 * any of these runs.  0 or -ENOMEM.
 */
int scratch_rules(char *const *before, char ***out);

#endif /* KCR_BATCH_SCRATCH_H */
