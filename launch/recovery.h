/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cr_mpirun --recover does when a rank or a node is lost: the whole job goes back to its
 * newest snapshot.  This process becomes cr_restart of that snapshot, which becomes
 * cr_mpirun again: same PID, input, output and, in the end, exit status.
 */
#ifndef LAUNCH_RECOVERY_H
#define LAUNCH_RECOVERY_H

#include <stdbool.h>

/* How many failures the job has survived so far. */
#define RECOVERY_VARIABLE	"KCR_MPI_RECOVERIES"

struct recovery {
	unsigned int used, most;	/* failures; most 0: each ends the job */
	bool from_start;		/* also without a snapshot */
	char *snapshot;			/* made by this process; NULL: none yet */
	bool due;			/* to be done once all ranks have ended */
};

void recovery_init(struct recovery *r, unsigned int most, bool from_start);
/* There is a new snapshot. */
void recovery_saved(struct recovery *r, const char *path);
/*
 * A failure that `text` names.  True: it is due now, and the user has been told; false: the
 * job is to end.
 */
bool recovery_begin(struct recovery *r, const char *text);
/* Does it, in place of cr_mpirun with `arguments`.  -errno with a message (report.h). */
int recovery_go(const struct recovery *r, char *const *arguments);
void recovery_free(struct recovery *r);

#endif /* LAUNCH_RECOVERY_H */
