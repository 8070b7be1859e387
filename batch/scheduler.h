/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cr_batch asks of a batch scheduler: a table of operations for each, chosen by the
 * environment that it gives its jobs.
 */
#ifndef KCR_BATCH_SCHEDULER_H
#define KCR_BATCH_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHEDULER_ANSWER_S	15	/* after that a command of a scheduler is ended */

struct scheduler {
	const char *name;		/* as in --requeue=NAME */
	const char *title;		/* for messages */
	const char *mark;		/* a variable that only its jobs have */
	const char *id[3];		/* variables with the ID, the first that is set counts; NULL */
	const char *array;		/* variable with the ID of the array, in a task of one, or NULL */
	const char *task[3];		/* variables with the number of an array task, likewise */
	const char *no_task;		/* what that is in other jobs, or NULL: it is not set */
	const char *step, *rank;	/* variables with the numbers of a step and of a task in it; NULL */
	bool (*is_task)(void);		/* is it one, if `task` is set?  NULL: yes */
	/*
	 * The seconds until the allocation ends, -1: not known; `anew`: as it is now, if that may
	 * have changed since the job's start.  NULL: it cannot tell.
	 */
	int64_t (*seconds_left)(bool anew);
	bool says_length;		/* … those from the start of the job on, instead */
	/*
	 * Asks for the job to run again: 0, or -errno with a message (-ECANCELED: it is not for
	 * this process to ask, as the scheduler has ended the run, or other tasks are still
	 * being saved); NULL: by the code alone.
	 */
	int (*requeue)(void);
	/*
	 * The exit code that goes with it; 0: that of --exit-code, which is all there is if
	 * `requeue` is NULL as well.
	 */
	int requeue_code;
	int hold_code;			/* … that has it wait until its user lets it run again; 0: none */
	int ends_by;			/* signal that says: this run is over, whatever its code; 0 */
	bool overlaps;			/* a run may begin while the one before is still being saved */
	int save_signal;		/* that asks for a save after which the program runs on; 0: none */
	const char *(*folder)(void);	/* the site's folder for checkpoints, or NULL; may be NULL */
	bool (*is_deleted)(void);	/* is the job being deleted?  NULL: it cannot tell */
};

/*
 * The seconds until the allocation ends, of a job that has begun that many seconds ago; if its
 * length is given, not -1, nobody is asked.  -1: not known.  `anew` as above.
 */
int64_t scheduler_seconds_left(const struct scheduler *s, int64_t length, int64_t since_start,
			       bool anew);

/* The one whose job this is; NULL: none. */
const struct scheduler *scheduler_detect(void);

/* That of a name; NULL: there is none. */
const struct scheduler *scheduler_named(const char *name);

/*
 * The folder for checkpoints unless the user names one: the site's, in which each user has one if
 * its path is absolute; else "kcr".
 */
void scheduler_folder(const struct scheduler *s, char *out, size_t size);

/*
 * A name for the job, the same each time that it runs: ID or ID_TASK, in a task of a step
 * followed by "-stepS-taskR"; made of letters, digits, "_", "-" and "."; "job" if `s` is NULL.
 */
void scheduler_job_name(const struct scheduler *s, char *out, size_t size);

/*
 * In a task of an array, adds _TASK to a name that was chosen for the job, as all tasks have the
 * same, unless it ends with that number.  0, or -ENAMETOOLONG: there is no room.
 */
int scheduler_task_name(const struct scheduler *s, char *name, size_t size);

#endif /* KCR_BATCH_SCHEDULER_H */
