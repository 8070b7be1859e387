/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a job's next run and `cr_batch --status` need to know of it: NAME.json in its
 * folder, replaced at each event.
 */
#ifndef KCR_BATCH_STATE_H
#define KCR_BATCH_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "batch/folder.h"

#define STATE_SUFFIX	"json"

enum state_phase {
	STATE_NEW,			/* there has been no run yet */
	STATE_RUNNING,
	STATE_SAVED,			/* left after a warning, to be continued */
	STATE_ENDED,			/* the command has ended by itself */
	STATE_FAILED,			/* could not be restarted */
};

/* A process, told apart from later ones of the same PID. */
struct state_process {
	pid_t pid;			/* 0: none */
	int64_t start;			/* of /proc/PID/stat, in ticks since boot */
	char boot[40];			/* ID of the boot */
};

struct state {
	enum state_phase phase;
	char **command;			/* NULL-terminated; NULL: not known */
	struct state_process leader;	/* of the run */
	unsigned int restarts;
	unsigned int fruitless;		/* restarts since the last new checkpoint */
	int status;			/* of the command, as of waitpid(2), when it has ended */
	struct state_last {		/* the last checkpoint */
		uint32_t number;	/* 0: none */
		time_t time;
		uint64_t bytes;
		double cost_s;
	} last;
	unsigned int failures;		/* saves that failed since then */
	unsigned int all_failures;	/* … since the job began */
	time_t next_due;		/* 0: none */
	char **scratch;			/* folders of the runs so far (scratch.h) */
};

/* Reads it; without a file *s is that of a new job.  0, or -errno with a message. */
int state_load(struct state *s, const struct folder *f, const char *name);
/* Writes it.  0 or -errno, no message. */
int state_save(const struct state *s, const struct folder *f);
void state_free(struct state *s);

/* Remembers the command, of which there was none.  0 or -ENOMEM. */
int state_set_command(struct state *s, char *const command[]);

/* The word for a phase, as in the file. */
const char *state_phase_name(enum state_phase phase);

/* Remembers a process that runs here. */
void state_set_leader(struct state *s, pid_t pid);
/* Does the remembered process still run here? */
bool state_leader_runs(const struct state *s);
/* Did it run on another machine, or before this one was booted? */
bool state_leader_elsewhere(const struct state *s);

#endif /* KCR_BATCH_STATE_H */
