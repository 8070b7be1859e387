/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interpreter that finishes a process from within, once nothing of
 * cr_restart is mapped any more.  Its code and everything it reads are in one
 * address range that neither cr_restart nor the saved program uses (the
 * blob, see blob.h).  script.c writes what it executes.
 */
#ifndef KCR_REBUILD_RESTORER_H
#define KCR_REBUILD_RESTORER_H

#include <stdint.h>

enum restorer_kind {
	RESTORER_CALL,		/* a system call */
	RESTORER_TIMER,		/* clock, event, id */
	RESTORER_CLONE,		/* a system call that creates a thread */
	RESTORER_COPY,		/* to, from, length */
	RESTORER_ENTER,		/* job, struct kcr_enter, XSAVE area: the last one */
};

enum restorer_check {
	RESTORER_SUCCEEDS,	/* not an errno */
	RESTORER_EQUALS,	/* exactly `expected` */
	RESTORER_IGNORED,
	RESTORER_OR_NEXT,	/* if it succeeds, the next operation is left out */
	RESTORER_OR_NOTED,	/* likewise; else it is noted for process `expected` */
};

struct restorer_op {
	uint32_t kind;
	uint32_t check;
	int64_t nr;
	int64_t expected;	/* CLONE: the saved thread ID, whatever is checked */
	uint64_t label;		/* address of a string */
	uint64_t arg[6];
};

#define RESTORER_LABEL	200
#define RESTORER_NOTES	256

/* Shared by all processes of a restart: the first failure, and what was lost without one. */
struct restorer_status {
	uint32_t taken;		/* claimed by a writer */
	uint32_t written;
	int32_t pid;
	int32_t tid;		/* saved ID of a thread that could not be created; else 0 */
	int64_t result;		/* what the call returned */
	char label[RESTORER_LABEL];
	uint32_t nr_noted;	/* may be more than there is room for */
	int32_t noted[RESTORER_NOTES];	/* saved process IDs, one for each thread */
};

/* What one thread executes. */
struct restorer_script {
	uint64_t status;	/* address of the struct restorer_status */
	uint64_t op;		/* address of the array */
	uint64_t count;
};

/* Does not return. Call the copy in the blob, on a stack in the blob. */
void restorer_run(const struct restorer_script *script)
	__attribute__((noreturn, visibility("hidden")));

/* The code to copy; restorer_run() is somewhere in it. */
extern const char __start_kcr_restorer[] __attribute__((visibility("hidden")));
extern const char __stop_kcr_restorer[] __attribute__((visibility("hidden")));

#endif /* KCR_REBUILD_RESTORER_H */
