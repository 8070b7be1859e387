/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cr_mpirun --recover does when a rank or a node is lost: the whole job goes back to its
 * newest snapshot.  This process becomes cr_restart of that snapshot, which becomes
 * cr_mpirun again: same PID, input, output and, in the end, exit status.
 */
#ifndef LAUNCH_RECOVERY_H
#define LAUNCH_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>

struct show;

struct recovery {
	unsigned int used, most;	/* failures; most 0: each ends the job */
	bool from_start;		/* also without a snapshot */
	bool exits;			/* also from ranks that end with a status other than 0 */
	unsigned int silence_s;		/* after which the loss of a node is known */
	unsigned int late_s;		/* after which nodes that do not end their ranks are given up */
	unsigned int start_s;		/* after which ranks that do not come back are given up; 0: never */
	unsigned int loading_s;		/* likewise once all are started, and read their images */
	char *snapshot;			/* made by this process; NULL: none yet */
	char *lost;			/* nodes that are left out, with commas; NULL: none */
	char *suspects;			/* likewise those that have failed, but answer */
	char *avoided;			/* likewise those of `lost` that were suspects */
	char *nodes;			/* these, and those that had daemons (silent.h); NULL: not known */
	unsigned int unstarted;		/* starts in a row that have failed, and were tried again */
	bool pauses;			/* before the next one, which is tried as the last one was */
	struct show *show;		/* of what the user is told (show_say()) */
	bool due;			/* to be done once all ranks have ended */
};

/* Takes what the process before has left from the environment. */
void recovery_init(struct recovery *r, unsigned int most, bool from_start);
/* A node, or the daemon there, has gone; `silent`: the node does not answer. */
void recovery_node_gone(struct recovery *r, const char *name, bool silent);
/* The nodes that have daemons, as silent.h takes them; takes it over.  NULL: none. */
void recovery_has_nodes(struct recovery *r, char *nodes);
/* All ranks are there: what nodes had failed by before is over. */
void recovery_done(struct recovery *r);
/*
 * There are too few nodes: those that answer, and those that did when they were given up, are not lost
 * any more.  Were there any?
 */
bool recovery_take_back(struct recovery *r);
/* The path of the snapshot to go back to, or NULL. */
const char *recovery_snapshot(const struct recovery *r);
/* There is a new snapshot. */
void recovery_saved(struct recovery *r, const char *path);
/*
 * A failure that `text` names.  True: it is due now, and the user has been told; false: the
 * job is to end.
 */
bool recovery_begin(struct recovery *r, const char *text);
/*
 * `launcher` could not start the ranks: is that a failure, which `text` then names, to go back
 * to the snapshot after?  Without the nodes that do not answer or, if all do, that had failed before;
 * with all that answer, if it was tried without them; or as it is, as what has failed may have been a
 * network.  Else the user has been told.
 */
bool recovery_starts_again(struct recovery *r, const char *launcher, char *text, size_t size);
/* Does it, in place of cr_mpirun with `arguments`.  -errno with a message (report.h). */
int recovery_go(const struct recovery *r, char *const *arguments);
void recovery_free(struct recovery *r);

#endif /* LAUNCH_RECOVERY_H */
