/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of one checkpoint, shared by the files of this folder.
 */
#ifndef KCR_CHECKPOINT_INTERNAL_H
#define KCR_CHECKPOINT_INTERNAL_H

#include "checkpoint/changes.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/destination.h"
#include "checkpoint/increment.h"
#include "checkpoint/scope.h"
#include "proc/time_namespace.h"
#include "resource/resource.h"

struct chooser;			/* image/chooser.h */
struct family;			/* family.h */
struct duplicates;		/* duplicates.h */
struct forward;			/* forward.c */
struct mapped_file;		/* address_space.c */
struct opened;			/* opened.c */
struct address_space;		/* below */

/* Processes that are excluded (precheck.c) or were continued (clients.c). */
struct pid_list {
	pid_t *pid;
	size_t count;
};

/* stop.c: the stopped processes that belong to the scope, parents first. */
struct members {
	struct kcr_process *process;
	int *handle;			/* of each (proc/handle.h), if they are to get a signal */
	size_t count;
	bool outsiders;			/* processes outside the scope are stopped, too */
	bool released;			/* all run again before the attempt has ended */
};

/* clients.c: programs with callbacks. */
struct clients {
	size_t count;			/* clients waiting for the outcome */
	bool cancelled;			/* they were told that the attempt has failed */
};

/* clocks.c: the clocks of a time namespace. */
struct time_view {
	uint64_t id;
	struct time_offsets ahead;	/* of ours */
};

/* describe.c, address_space.c: the state of the members. */
struct description {
	struct file_table *files;
	Kcr__Preamble preamble;
	Kcr__Process **process;
	size_t nr_processes;
	struct address_space *space;	/* one per distinct mm */
	size_t nr_spaces;
	struct mapped_file *mapped;	/* files of mappings seen so far */
	size_t nr_mapped;
	struct time_view *view;		/* of each of preamble.clocks */
	uint64_t time_ns;		/* CLOCK_BOOTTIME, when nothing was running */
	bool written;
};

/*
 * One attempt, from an empty job to the complete file under its temporary name.
 * A retry is a new object.
 */
struct attempt {
	int job;			/* /dev/kcr, or -1 */
	struct kcr_info info;
	struct scope scope;		/* as last collected */
	struct members members;
	struct clients clients;
	struct description description;
	struct context_writer *writer;
	struct family *family;		/* pages that processes have in common; NULL: none */
	struct duplicates *duplicates;	/* pages that are equal; NULL: they are not looked for */
	struct chooser *chooser;	/* of adaptive compression; NULL: it is not wanted */
	struct writeback *writeback;	/* while memory is written; NULL: nothing waits for the disk */
	bool snapshot;			/* memory is read from copies */
	bool announced;			/* the caller was told that the processes run again */
	bool whole;			/* all was read before anything stopped was continued or died */
	bool in_flight;			/* requests were waited for in vain: they would be again */
	uint64_t written_bytes;		/* of memory, for progress */
};

/* What all attempts have in common. */
struct checkpoint {
	const struct checkpoint_options *options;
	struct checkpoint_result *result;
	uint64_t start_ns;
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC; 0: none */
	uint64_t expected_bytes;	/* of memory: an estimate */
	bool has_socket_memory;		/* a process has some mapped */
	uint64_t expected_content;	/* bytes of files that are saved with their contents */
	/* Only an examination: is told of what cannot be saved, and all is looked at; or NULL. */
	void (*obstacle)(void *arg, const char *message);
	void *obstacle_arg;
	struct destination *destination;	/* NULL: not open yet */
	struct increment *increment;	/* NULL: not wanted */

	struct pid_list excluded;
	struct pid_list skipped;	/* those of a tree that are excluded with their descendants */
	bool omission;			/* a callback has excluded its process */
	struct pid_list woken;		/* stopped, but continued to run their callbacks */
	int *woken_handle;		/* of each */
	struct forward *forward;	/* added to the scope by callbacks */
	size_t nr_forwards;
	struct opened *opened;		/* files of mappings, opened before the stop */
	size_t nr_opened;

	struct attempt attempt;
};

/* How the pages of a mapping are saved. */
enum save_pages {
	SAVE_NONE,		/* saved elsewhere, or not at all */
	SAVE_TOUCHED,		/* present and not zero */
	SAVE_PRESENT,		/* present: under a userfaultfd, which tells that from zero */
	SAVE_COPIED,		/* private file mapping: written to */
	SAVE_ALL,		/* all: the restart does not need the file */
};

struct region {
	uint64_t start, end;
	uint64_t origin;	/* of `start`, see kcr.h; if `anonymous` */
	enum save_pages how;
	bool anonymous;		/* memory without a file */
	bool early;		/* not in a snapshot: written before the release */
	bool large;		/* a lazy restart may leave its pages in the file … */
	bool elsewhere;		/* … and so do we: postponed.h */
	bool common;		/* pages may be common with other processes … */
	uint64_t kind;		/* … which have a mapping of this kind: CONTEXT_SHARING_KIND */
};

struct address_space {
	pid_t pid;
	struct region *region;
	size_t nr_regions;
	struct changes changes;
	struct kcr_run *shared;	/* pages that were saved by family.c, in order */
	size_t nr_shared;
};

#define BUSY_US		10000		/* before a retry of what is busy for a moment */

/* ---- precheck.c ---- */

/*
 * Checks the processes of the scope while they run and refuses what is sure
 * to fail, so that nothing is stopped in vain.
 */
int precheck(struct checkpoint *c);
/* Refuses processes that can never be saved: init, kernel threads. */
int check_kind(const struct checkpoint *c, const struct scope_process *p);
/* Two processes with one table of descriptors, but not of memory: -EOPNOTSUPP, reported. */
int refuse_shared_table(pid_t pid, pid_t other);
/* Likewise with one working folder and umask. */
int refuse_shared_folder(pid_t pid, pid_t other);
/* Threads with descriptors of their own; a PID namespace of its own, or for its children. */
int refuse_own_spaces(const struct scope_process *p);
/* Excludes a process and warns; `why` ends the message. */
int exclude(struct checkpoint *c, pid_t pid, const char *why);
bool is_excluded(const struct checkpoint *c, pid_t pid);
/* 0 or -ENOMEM, reported. */
int pid_list_add(struct pid_list *list, pid_t pid);
bool pid_list_has(const struct pid_list *list, pid_t pid);

/* ---- debuggers.c ---- */

/*
 * Refuses or excludes processes of the scope that are debugged or debug others, as the options
 * say, and adds up what memory they have.
 */
int check_debuggers(struct checkpoint *c);
/* Does it descend from a process that is excluded with its descendants? */
bool is_below_skipped(const struct checkpoint *c, pid_t pid);

/* ---- mapped_object.c ---- */

/*
 * Refuses, -EOPNOTSUPP, memory of a kernel object that a restart could not map, such as of
 * memfd_secret(2), perf events or BPF maps, by a line of /proc/PID/maps.
 */
int mapped_object_check(const struct checkpoint *c, const struct scope_process *p, const char *line);

/* ---- launcher.c ---- */

/*
 * Is the program one that stands for others elsewhere, such as srun?  0, or -EOPNOTSUPP with
 * a message; with skip_unsupported 0.  -EBUSY, reported: a cr_restart that stands for nothing yet.
 * `thread`: a living thread of process pid.
 */
int refuse_launcher(const struct checkpoint *c, pid_t pid, pid_t thread);

/* ---- stop.c ---- */

/* Adds and stops every process of the scope, until no new one shows up. */
int stop_processes(struct checkpoint *c);
/* 1: it is excluded, now or earlier; 0: it belongs to the checkpoint; -errno. */
int leave_out(struct checkpoint *c, pid_t pid);
/* Reports that all processes of the scope were excluded or have exited: -ESRCH. */
int stop_nobody(const struct checkpoint *c);
/*
 * When all that is read of stopped processes has been read: has one been continued or
 * killed meanwhile, so that it may be torn?  0, or -EAGAIN, reported.
 */
int stop_verify(struct checkpoint *c);
/* RELEASE, which forgives what has happened since stop_verify(): the image has it all. */
int stop_run_on(struct checkpoint *c, int signal);
/*
 * Adds a process to the job, as device_add(); one that a lazy restart still loads is waited for
 * within --time, unless the members are parked: -EBUSY.
 */
int stop_add(const struct checkpoint *c, const struct scope_process *p);
/*
 * A descriptor of a process that was added to the job (proc/handle.h), for signals when
 * it runs.  -errno, reported; but silently -ESRCH: it has ended.
 */
int stop_handle(const struct checkpoint *c, pid_t pid);
/* May all processes be sent signals?  0, or -EPERM, reported. */
int stop_may_signal(const struct checkpoint *c);
/* Lets all run and sends them `signal` (0, or that of the options). */
int stop_release(struct checkpoint *c, int signal);

/* ---- requests.c ---- */

/*
 * Waits until no asynchronous request of the stopped processes is in flight.  0; -EBUSY, with
 * attempt.in_flight: they are not done in time; -errno; reported.
 */
int requests_await(struct checkpoint *c);

/* ---- clients.c ---- */

/* Notifies processes with callbacks, waits until they are ready; may be called again. */
int clients_notify(struct checkpoint *c);
/* Waits for callbacks to finish, while all other threads are still stopped. */
int clients_finish(struct checkpoint *c);
bool clients_was_stopped(const struct checkpoint *c, pid_t pid);
/* Stops those that were continued to run their callbacks. */
void clients_stop_again(struct checkpoint *c);
/* The attempt ends: the same, before the job is closed. */
void clients_give_up(struct checkpoint *c);
/* Leaves those as they are. */
void clients_forget_stopped(struct checkpoint *c);

/* ---- forward.c ---- */

struct kcr_notify;
/* A callback adds processes: it gets notify->result.  -errno: the checkpoint fails. */
int forward_add(struct checkpoint *c, struct kcr_notify *notify);
/* Adds the processes that callbacks asked for to the attempt's scope. */
int forward_collect(struct checkpoint *c, const pid_t *member, size_t nr_members);

/* ---- omit.c ---- */

/*
 * Has this process inherited the omission from its parent, but not yet declared it
 * itself?  Reliable only for a stopped process.
 */
bool omit_is_inherited(const struct checkpoint *c, pid_t pid);

/* ---- describe.c, address_space.c, descriptors.c ---- */

/* Describes the host: before the processes are stopped. */
int describe_host(struct checkpoint *c);
/* Fills in c->attempt.description; nothing is written yet. */
int describe(struct checkpoint *c);
/* Writes PREAMBLE, FILEs and PROCESSes. */
int describe_write(struct checkpoint *c);
void describe_free(struct description *d);

/* The address space of `member` into *mm and *space. */
/* Adds the guard regions of an address space, by one of its threads.  guard.c */
int guard_save(pid_t thread, Kcr__Mm *mm);
int describe_mm(struct checkpoint *c, const struct kcr_process *member, Kcr__Mm *mm,
		struct address_space *space);
/* Frees the list of mapped files. */
void mapped_free(struct description *d);
/*
 * Registers the open files of a process in `files` and lists its file descriptors
 * in `process` (NULL: only registers; the process is running).
 */
int describe_descriptors(const struct checkpoint *c, struct file_table *files, pid_t pid,
			 Kcr__Process *process);

/* ---- user_faults.c ---- */

/* Why memory that sends its faults to a userfaultfd cannot be saved as such; NULL: it can. */
const char *user_faults_refusal(uint64_t vma_flags, bool anonymous);
/*
 * After the files: which userfaultfd works on whose memory, and what is registered there.  0 or
 * -errno, reported.
 */
int user_faults_describe(struct checkpoint *c);

/* ---- thread.c ---- */

/* Lists the threads of a stopped process in `p`. */
int describe_threads(struct checkpoint *c, const struct process_probe *probe, Kcr__Process *p);
/* Tells, if asked for, of threads for which only the same kernel will do. */
void describe_within_vdso(const Kcr__Process *p);
/* Where this machine's processor has what is in the states of threads. */
int describe_xstate(Kcr__Preamble *preamble);
/* The recorded thread with this ID, maybe the one of index `likely`; NULL: none. */
Kcr__Thread *describe_find_thread(const Kcr__Process *p, pid_t tid, size_t likely);

/* ---- settings.c ---- */

/* Records what prctl(2) has set of a stopped process, whose threads are listed in `p`. */
int describe_settings(const struct checkpoint *c, Kcr__Process *p);

/* ---- undos.c ---- */

/*
 * Records what the end of a stopped process undoes of its semaphore operations.  -EOPNOTSUPP,
 * reported: it shares that with another one.
 */
int describe_undos(const struct checkpoint *c, Kcr__Process *p);
/* If there may have been some that the kernel does not tell, and semaphores are saved. */
void undos_warn(const struct checkpoint *c);

/* ---- mempolicies.c ---- */

/* Records those of a stopped process, whose threads are listed in `p`, and its mappings in p->mm. */
int describe_mempolicies(const struct checkpoint *c, Kcr__Process *p);

/* ---- clocks.c ---- */

/* Notes which clocks a process sees; `thread`: a living one. */
int clocks_describe(struct description *d, pid_t thread, Kcr__Process *p);
/* CLOCK_MONOTONIC or CLOCK_BOOTTIME, in ns, as it sees it. */
uint64_t clocks_now(const struct description *d, const Kcr__Process *p, clockid_t clock);
/* At the end of the description. */
void clocks_read(struct description *d);
void clocks_free(struct description *d);

/* ---- absolute_sleep.c ---- */

/* Turns a sleep until an absolute time of this boot into one for the time left. */
void absolute_sleep_settle(const struct description *d, const Kcr__Process *p,
			   struct kcr_thread *thread);

/* ---- expiry.c ---- */

/* The timers of a process, as read before its queued signals. */
struct expiry {
	struct kcr_timer *timers;
	int count;
};

int expiry_begin(const struct process_probe *probe, struct expiry *e);
/* With its signals and timers in *p: reads both again if a timer has expired meanwhile. */
int expiry_settle(const struct process_probe *probe, Kcr__Process *p, struct expiry *e);
void expiry_end(struct expiry *e);

/* ---- record.c: what a process has declared through libcr ---- */

/* Fills in mm->record; malformed records are left out. */
int record_save(struct checkpoint *c, pid_t pid, const struct kcr_vma *vma, size_t count,
		const char *strings, Kcr__Mm *mm);
/* Number of excluded ranges. */
size_t record_ranges(const Kcr__Mm *mm);
/* The first excluded part of [start, end), in whole pages of page_size; false: none. */
bool record_excluded(const Kcr__Mm *mm, uint64_t start, uint64_t end, uint64_t page_size,
		     uint64_t *from, uint64_t *to);

/* ---- filters.c ---- */

/*
 * Has the seccomp filters of the scope read, in an interruption that the programs do not
 * notice; all: also in processes whose first thread has none.
 */
int filters_read(struct checkpoint *c, bool all);

/* ---- opened.c ---- */

/* Opens a mapped file in advance; a failure is left to the later, regular open. */
void opened_prepare(struct checkpoint *c, const char *path);
/* File descriptor of a private mapping's file, now owned by the caller; -1: not opened. */
int opened_take(struct checkpoint *c, const struct kcr_vma *v, const char *path);
void opened_free(struct checkpoint *c);

/* ---- memory.c ---- */

/* They are written in this order. */
enum memory_part {
	MEMORY_SHARED,		/* pages that processes have in common */
	MEMORY_EARLY,		/* the early regions */
	MEMORY_REST,
};

/* Writes a part, from the snapshot or the processes. */
int memory_write(struct checkpoint *c, enum memory_part part, bool snapshot);
bool memory_has_early(const struct checkpoint *c);
/* Bytes/s that the destination has taken; 0: not measured. */
double memory_target_rate(const struct checkpoint *c);

/* ---- postponed.c: with options.postponed ---- */

/* An attempt begins: nothing is left out yet. */
void postponed_begin(const struct checkpoint *c);
/* Marks the regions of an address space that are left out. */
void postponed_choose(const struct checkpoint *c, const Kcr__Mm *mm, struct address_space *space);
/* After the other memory: writes which pages these are, all of them in the snapshot. */
int postponed_write(struct checkpoint *c);
/* The processes have ended: what was left out is kept, and the job of the attempt with it. */
void postponed_keep(const struct checkpoint *c);
/* The attempt ends: is its job kept, so that it is not to be closed? */
bool postponed_end(const struct checkpoint *c);

/* ---- figures.c: what the result tells beside pages and bytes ---- */

/* Of the complete description. */
void figures_describe(struct checkpoint *c);
/* device_scan(), whose time counts. */
int figures_scan(struct checkpoint *c, struct kcr_scan *scan);
/*
 * If figures are wanted: of this part of the region (pid, start, end and flags of `range`) only
 * nr_found pages go on.  0 or -errno with a message.
 */
int figures_left_out(struct checkpoint *c, const struct region *r, const struct kcr_scan *range,
		     uint64_t nr_found);

#endif /* KCR_CHECKPOINT_INTERNAL_H */
