/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of one checkpoint, shared by the files of this folder.
 */
#ifndef KCR_CHECKPOINT_INTERNAL_H
#define KCR_CHECKPOINT_INTERNAL_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/destination.h"
#include "checkpoint/scope.h"
#include "resource/resource.h"

struct forward;			/* forward.c */
struct mapped_file;		/* address_space.c */
struct opened;			/* opened.c */
struct address_space;		/* below */

/* Processes that are left out (precheck.c), or had to run (clients.c). */
struct pid_list {
	pid_t *pid;
	size_t count;
};

/* stop.c: what is stopped and belongs to the scope, parents first. */
struct members {
	struct kcr_process *process;
	size_t count;
	bool outsiders;			/* others are stopped as well */
	bool released;			/* all run again, before the end of the attempt */
};

/* clients.c: programs with callbacks. */
struct clients {
	size_t count;			/* that wait for the outcome */
	bool cancelled;			/* they know that the attempt has failed */
};

/* describe.c, address_space.c: what the members are. */
struct description {
	struct file_table *files;
	Kcr__Preamble preamble;
	Kcr__Process **process;
	size_t nr_processes;
	struct address_space *space;	/* one per distinct mm */
	size_t nr_spaces;
	struct mapped_file *mapped;	/* files of mappings seen so far */
	size_t nr_mapped;
	bool written;
};

/*
 * One try, from an empty job to the complete file under its temporary name.  The
 * next one is a new object.
 */
struct attempt {
	int job;			/* /dev/kcr, or -1 */
	struct kcr_info info;
	struct scope scope;		/* as last seen */
	struct members members;
	struct clients clients;
	struct description description;
	struct context_writer *writer;
	bool snapshot;			/* memory is read from copies */
	uint64_t written_bytes;		/* of memory, for progress */
};

/* What all attempts have in common. */
struct checkpoint {
	const struct checkpoint_options *options;
	struct checkpoint_result *result;
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC; 0: none */
	uint64_t expected_bytes;	/* of memory: an estimate */
	struct destination *destination;	/* NULL: not open yet */

	struct pid_list excluded;
	bool omission;			/* a callback has excluded its process */
	struct pid_list woken;		/* stopped ones that had to run their callbacks */
	struct forward *forward;	/* what callbacks have added to the scope */
	size_t nr_forwards;
	struct opened *opened;		/* files of mappings, opened before the stop */
	size_t nr_opened;

	struct attempt attempt;
};

/* How the pages of a mapping are saved. */
enum save_pages {
	SAVE_NONE,		/* elsewhere, or not at all */
	SAVE_TOUCHED,		/* those that exist and are not zero */
	SAVE_COPIED,		/* private file mapping: those that were written to */
	SAVE_ALL,		/* every one: its file is not needed at the restart */
};

struct region {
	uint64_t start, end;
	enum save_pages how;
	bool early;		/* not in a snapshot: before the release */
};

struct address_space {
	pid_t pid;
	struct region *region;
	size_t nr_regions;
};

#define BUSY_US		10000		/* between two looks at what should pass */

/* ---- precheck.c ---- */

/*
 * Looks at the processes of the scope while they run and refuses what is sure
 * to fail, so that nothing is stopped in vain.
 */
int precheck(struct checkpoint *c);
/* Processes that no checkpoint can have: init, kernel threads … */
int check_kind(const struct scope_process *p);
/* Leaves a process out; `why` completes a sentence for the user. */
int exclude(struct checkpoint *c, pid_t pid, const char *why);
bool is_excluded(const struct checkpoint *c, pid_t pid);
/* 0 or -ENOMEM, reported. */
int pid_list_add(struct pid_list *list, pid_t pid);
bool pid_list_has(const struct pid_list *list, pid_t pid);

/* ---- stop.c ---- */

/* Adds and stops every process of the scope, until no new one shows up. */
int stop_processes(struct checkpoint *c);
/* -ESRCH, reported: whoever was in the scope is left out or gone. */
int stop_nobody(const struct checkpoint *c);
/* Whether the stopped (SIGSTOP) ones still are: 0, or -EAGAIN. */
int stop_verify(struct checkpoint *c);
/* Lets them run on, with a signal. */
int stop_release(struct checkpoint *c, int signal);

/* ---- clients.c ---- */

/* Tells processes with callbacks and waits until they are ready; may be called again. */
int clients_notify(struct checkpoint *c);
/* The others still stand still: waits until callbacks have come to their end. */
int clients_finish(struct checkpoint *c);
bool clients_was_stopped(const struct checkpoint *c, pid_t pid);
/* Those that were stopped when all began. */
void clients_stop_again(struct checkpoint *c);
/* Nothing comes of this attempt; before the job is closed: they are stopped again. */
void clients_give_up(struct checkpoint *c);

/* ---- forward.c ---- */

struct kcr_notify;
/* A callback wants to add processes: notify->result is for it.  -errno: all is over. */
int forward_add(struct checkpoint *c, struct kcr_notify *notify);
/* Adds to c->scope who belongs to it by that. */
int forward_collect(struct checkpoint *c, const pid_t *member, size_t nr_members);

/* ---- omit.c ---- */

/*
 * Has this process inherited from one that is left out, and not yet come so far
 * as to say so itself?  Certain only of one that stands still.
 */
bool omit_is_inherited(const struct checkpoint *c, pid_t pid);

/* ---- describe.c, address_space.c, descriptors.c ---- */

/* What does not depend on the processes: before they are stopped. */
int describe_host(struct checkpoint *c);
/* Fills in everything that describe.c owns in *c; nothing is written yet. */
int describe(struct checkpoint *c);
/* Writes PREAMBLE, FILEs and PROCESSes. */
int describe_write(struct checkpoint *c);
void describe_free(struct description *d);

/* The address space of `member` into *mm and *space. */
int describe_mm(struct checkpoint *c, const struct kcr_process *member, Kcr__Mm *mm,
		struct address_space *space);
/* Forgets the files that mappings have. */
void mapped_free(struct description *d);
/*
 * Registers the open files of a process in `files` and lists its descriptors
 * in `process` (NULL: only registers, of a process that runs).
 */
int describe_descriptors(const struct checkpoint *c, struct file_table *files, pid_t pid,
			 Kcr__Process *process);

/* ---- absolute_sleep.c ---- */

/* A call that sleeps until a moment of this boot is to go on for the time left. */
void absolute_sleep_settle(struct kcr_thread *thread);

/* ---- expiry.c ---- */

/* The timers of a process before its queued signals are read. */
struct expiry {
	struct kcr_timer *timers;
	int count;
};

int expiry_begin(const struct process_probe *probe, struct expiry *e);
/* After its signals and timers are in *p: reads both again if one has expired meanwhile. */
int expiry_settle(const struct process_probe *probe, Kcr__Process *p, struct expiry *e);
void expiry_end(struct expiry *e);

/* ---- record.c: what a process says about itself by libcr ---- */

/* Fills in mm->record; one that makes no sense is left out. */
int record_save(struct checkpoint *c, pid_t pid, const struct kcr_vma *vma, size_t count,
		const char *strings, Kcr__Mm *mm);
/* How many ranges are excluded. */
size_t record_ranges(const Kcr__Mm *mm);
/* The first excluded part of [start, end), in whole pages of this size; false: none. */
bool record_excluded(const Kcr__Mm *mm, uint64_t start, uint64_t end, uint64_t page_size,
		     uint64_t *from, uint64_t *to);

/* ---- opened.c ---- */

/* Opens a file that a process has mapped, for later; what fails is left for later. */
void opened_prepare(struct checkpoint *c, const char *path);
/* The descriptor of the file of a private mapping, now the caller's; -1: not opened. */
int opened_take(struct checkpoint *c, const struct kcr_vma *v, const char *path);
void opened_free(struct checkpoint *c);

/* ---- memory.c ---- */

/* Writes the regions that are early, or the others; from the snapshot or not. */
int memory_write(struct checkpoint *c, bool early, bool snapshot);
bool memory_has_early(const struct checkpoint *c);

#endif /* KCR_CHECKPOINT_INTERNAL_H */
