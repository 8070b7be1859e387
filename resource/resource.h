/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel resources: one .c file each, its save and its rebuild side by side.
 * Two tables: kinds of open files (resource/file.c: file_kinds[]) and
 * attributes of a process (resource/attribute.c: attributes[]).
 *
 * Save happens in cr_checkpoint while the program is parked; nothing in it may
 * change the program.  Rebuild happens in cr_restart and in the processes that
 * it creates.  All functions return 0 or -errno and report_fail() a message that
 * names process, file descriptor and kind.
 */
#ifndef KCR_RESOURCE_H
#define KCR_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include "image/context.h"

struct script;

/* ---- save ------------------------------------------------------------------- */

/* An open file being saved: `fd` is our duplicate of the program's descriptor. */
struct file_probe {
	int fd;
	pid_t pid;			/* a process that has it … */
	int number;			/* … as this descriptor; -1: only mapped */
	pid_t thread;			/* as in struct process_probe */
	struct stat st;
	struct statfs fs;
	int flags;			/* F_GETFL */
	const char *link;		/* readlink of /proc/THREAD/fd/N, e.g. "pipe:[123]" */
	const char *fdinfo;		/* text of /proc/THREAD/fdinfo/N ("" if only mapped) */
	bool passed;			/* in flight: `thread` and `number` are our own */
	bool mapped;			/* some VMA maps it */
	bool mapped_exec_or_private;	/* its contents matter for a mapping */
	bool keep_contents;		/* FILE_MAPPED_KEPT */
};

/*
 * How a mapping uses a file.  FILE_MAPPED: clean pages are read from it again;
 * FILE_MAPPED_KEPT: shared, and its contents are to be saved although it has a name.
 */
enum file_mapping {
	FILE_NOT_MAPPED = 0, FILE_MAPPED = 1, FILE_MAPPED_SHARED = 2, FILE_MAPPED_KEPT = 3,
};

struct file_table;			/* resource/file_table.c */

struct file_table *file_table_new(bool skip_unsupported);
void file_table_free(struct file_table *t);
/* What only the module knows of a file is asked of it by this job; without one it is not saved. */
void file_table_use_job(struct file_table *t, int job);

/*
 * Registers an open file of process `pid`, of which `thread` is alive; takes over
 * `fd` (a duplicate in our process).
 * Files are the same if kcmp(2) says so.  *id gets the File's id.  Nothing is
 * saved yet.
 */
int file_table_add(struct file_table *t, int fd, pid_t pid, pid_t thread, int number,
		   enum file_mapping mapped, uint32_t *id);
/* Likewise a descriptor in flight, which we have received; `via`: the socket. */
int file_table_add_passed(struct file_table *t, int fd, const struct file_probe *via, uint32_t *id);
/* Is the descriptor that was added last close-on-exec? */
bool file_table_cloexec(const struct file_table *t);

/*
 * After all files are registered: saves every one by its kind's save().
 * -EOPNOTSUPP: a file of a kind that cannot be saved (and no skip_unsupported).
 */
int file_table_save(struct file_table *t);
/*
 * The dry run, before anything is stopped: as file_table_save(), but leaves
 * queues and counters of the running programs alone.  `failed` is called for each file that
 * cannot be saved, with the message recorded, and returns 0 to go on; NULL: the first
 * one ends it.
 */
int file_table_check(struct file_table *t, int (*failed)(void *arg, int err), void *arg);
size_t file_table_count(const struct file_table *t);
const Kcr__File *file_table_get(const struct file_table *t, uint32_t id);

/* For save(): the id of the file with this socket inode / the same description; 0: not in the table. */
uint32_t file_table_find_inode(const struct file_table *t, dev_t dev, ino_t ino);
/* Has one of the processes this file open, and not only for writing? */
bool file_table_is_read(const struct file_table *t, const struct stat *file);
uint32_t file_table_find_fd(const struct file_table *t, pid_t pid, int number);
const struct file_probe *file_table_probe(const struct file_table *t, uint32_t id);
/* Fills p->posix_lock: the locks that process p->pid holds through registered descriptors. */
int file_table_posix_locks(const struct file_table *t, Kcr__Process *p);

/* Does the module know which requests to an io_uring are in flight?  Tried out once. */
bool io_uring_is_counted(int job);
/*
 * Is the thread that alone may use an io_uring the first one of a process that has it?  0 or
 * -EOPNOTSUPP, reported.
 */
int io_uring_check(const struct file_table *t, Kcr__Process *const *process, size_t count);

/* Is this, of /proc/PID/maps, memory of a socket? */
bool socket_memory_is(const char *path);
/*
 * Could a restart map it again?  file: the socket; NULL: no process of the image has it open.  0 or
 * -EOPNOTSUPP, reported.
 */
int socket_memory_check(pid_t pid, const Kcr__File *file, uint64_t offset, uint64_t length,
			bool shared);
/* Likewise all that these processes have mapped. */
int socket_memories_check(const struct file_table *t, Kcr__Process *const *process, size_t count);

/*
 * Refuses timers on the CPU time of a process that is not among these, warns of numbers that take
 * long.  0 or -EOPNOTSUPP, reported.
 */
int timers_check(Kcr__Process *const *process, size_t count);

/*
 * Refuses what is made in each process that has it, in one that shares its memory with another but
 * has a table of its own, unless it has got it from there.  0 or -EOPNOTSUPP, reported.
 */
int sharers_check(const struct file_table *t, Kcr__Process *const *process, size_t count);

/* Names files whose signals would go to nobody after a restart (F_SETOWN). */
void owners_warn(const struct file_table *t, Kcr__Process *const *process, size_t count);

/* Names files of /proc/PID of processes that are not among those saved. */
void own_proc_warn(const struct file_table *t, Kcr__Process *const *process, size_t count);

/* Names pidfds of living processes that are not among those saved. */
void pidfd_warn(const struct file_table *t, Kcr__Process *const *process, size_t count);

/* Names System V segments that others are attached to, and so cannot be restarted beside them. */
void segments_warn(const struct file_table *t, Kcr__Process *const *process, size_t count);

/*
 * Names POSIX shared memory and bound sockets that others have, too, which were there at this time of
 * CLOCK_BOOTTIME: they cannot be restarted beside them.  It takes time.
 */
void held_outside_warn(const struct file_table *t, Kcr__Process *const *process, size_t count,
		       uint64_t time_ns);

/*
 * Saves the System V semaphores and message queues that these processes use, or seem to have made,
 * with one of them; their adjustments of semaphores are known.  0 or -errno, reported.
 */
int sysv_describe(Kcr__Process *const *process, size_t count);

/* Writes the CONTENT sections of all files that have contents (sparse). */
int file_table_write_contents(struct file_table *t, struct context_writer *w);
/* The number of bytes of these, for progress. */
uint64_t file_table_content_bytes(const struct file_table *t);
/* Closes our duplicates (before the program runs on). */
void file_table_close(struct file_table *t);

/* ---- rebuild ---------------------------------------------------------------- */

/* A file to be used instead of what a process has as a descriptor: resource/redirect.h. */
struct redirect {
	pid_t pid;			/* as saved; 0: the leader */
	int fd;
	const char *file;		/* as open(2) takes it */
	uint32_t id;			/* the File that is replaced; 0: not found yet */
};

/* The state of a restart: one per cr_restart, inherited by the processes it forks. */
enum borrowed {
	NOT_BORROWED,
	BORROWED,			/* its flags are not ours */
	REOPENED,			/* the file is not ours, but its description is */
};

struct rebuild {
	const struct context *context;
	int job;			/* /dev/kcr */
	int *file_fd;			/* file_fd[id - 1]: descriptor from high_fd on, -1: none */
	int *content_fd;		/* where CONTENT goes, -1: not yet or nowhere */
	pid_t leader;			/* the saved PID of the process that stands for all */
	struct redirect *redirect;	/* --redirect: nr_redirects of them */
	size_t nr_redirects;
	bool strict_files;		/* no ordinary file may have changed */
	bool restore_ids;		/* processes have their old PIDs */
	bool any_port;			/* internet sockets need not have their old ports */
	bool any_cpu;			/* cr_restart is bound to CPUs, for the first thread */
	bool leaves;			/* cr_restart, parent of some, ends before they do */
	struct lazy *lazy;		/* restart/lazy.h; NULL: all memory is filled first */
	int lazy_socket;		/* where processes offer what it needs; -1: none */
	struct inherited *inherited;	/* restart/inherited.h: memory; NULL: none */
	uint64_t *aio_ring;		/* in a process: where the ring of each context waits */
	int32_t *new_pid;		/* by index in context->process; = old if restore_ids */
	const char *source;		/* the context file, absolute; "": no path */
	pid_t requester;		/* the program that has asked for it; 0: none */
	const char *(*relocate)(const char *path);	/* --relocate; returns path itself or a new string */
	/* Set by files_open(), which also makes file_fd and content_fd: */
	int high_fd;			/* saved descriptors are below this, ours from it on */
	int stdio[3];			/* high duplicates of cr_restart's own, -1: closed */
	enum borrowed *borrowed;	/* is file_fd[i] one of these, or the caller's (--redirect)? */
	const Kcr__Credentials **holder; /* holder[id - 1]: whose rights open it; NULL: ours */
	int *giver_fd;			/* [id - 1]: the other end of what stands for a userfaultfd
					 * (user_fault.c), -1: that is there */
	int dead_pidfd;			/* pidfd of a process that has ended, -1: none yet */
};

struct file_kind {
	Kcr__File__KindCase kind;
	const char *name;		/* for people: "pipe" */

	/* Is it of this kind?  Called in table order. */
	bool (*match)(const struct file_probe *probe);
	/* Fills `file` (id and flags are set; the framework sets position, owner, locks). */
	int (*save)(struct file_table *t, const struct file_probe *probe, Kcr__File *file);
	/* When all are saved: ends what leads to a file that is left out; optional. */
	int (*leave_out)(struct file_table *t, const struct file_probe *probe, Kcr__File *file);
	/*
	 * Registers open files that can only be reached through this one, before any is
	 * saved; optional.
	 */
	int (*collect)(struct file_table *t, const struct file_probe *probe);
	/* Does this file have contents to store? Bytes; 0: none. */
	uint64_t (*content_size)(const struct file_probe *probe, const Kcr__File *file);

	/*
	 * In cr_restart before any process is created: opens r->file_fd[id - 1],
	 * and r->content_fd[id - 1] if contents follow.  Called in id order;
	 * may open other files' descriptors too (both ends of a pipe).
	 */
	int (*open)(struct rebuild *r, const Kcr__File *file);
	/* Could it be opened here?  Leaves no trace; optional. */
	int (*check)(struct rebuild *r, const Kcr__File *file);
	/* After all CONTENT sections: the final descriptor, seals, size … optional. */
	int (*complete)(struct rebuild *r, const Kcr__File *file);
	/* After all files are complete: puts descriptors on their way; optional. */
	int (*deliver)(struct rebuild *r, const Kcr__File *file);
	/* After all that: what would have kept others from coming; optional. */
	int (*conclude)(struct rebuild *r, const Kcr__File *file);
	/* In a process that has it as descriptor `number`, once its table is complete; optional. */
	int (*install)(struct rebuild *r, const Kcr__Process *process, int number,
		       const Kcr__File *file);
	/* In cr_restart once every process has its files and mappings (or on failure); optional. */
	void (*finish)(struct rebuild *r, const Kcr__File *file);
};

extern const struct file_kind *const file_kinds[];	/* NULL-terminated */

/* What to do about programs with io_uring: advice for messages. */
#define WITHOUT_IO_URING "let the program do without it (MariaDB: innodb_use_native_aio=OFF; " \
	"all programs, since Linux 6.6: sysctl kernel.io_uring_disabled=2)"

/* In cr_restart, before it blocks signals: waits for ports of killed programs. */
void ports_await(const struct rebuild *r);
/* In cr_restart: open all files, store contents, complete them. */
int files_open(struct rebuild *r);
/*
 * Instead of that: opens the files and folders that must be there, and looks whether they are
 * what they were.  Makes nothing.
 */
int files_check(struct rebuild *r);
int files_content(struct rebuild *r, const struct context_item *item);
int files_complete(struct rebuild *r);
/*
 * In a skeleton process: its descriptor table becomes the saved one; the
 * descriptors still needed (job, mapped files, script) stay above
 * all saved ones and are close-on-exec.  Then the kinds' install().
 */
int files_install(struct rebuild *r, const Kcr__Process *process);
/*
 * Threads that own descriptors; POSIX locks, which any close of the same file would
 * drop: for the leader's script, after its threads are created and the descriptors from
 * r->high_fd on are closed.
 */
void files_script(struct rebuild *r, const Kcr__Process *process, struct script *s);
/* In cr_restart once every process has entered: closes everything opened for them. */
void files_close(struct rebuild *r);

/*
 * In a process of the restart, and in cr_restart: file_fd becomes the userfaultfd itself, once it
 * exists.  Does nothing for other files.
 */
int user_fault_bring(struct rebuild *r, const Kcr__File *file);

/*
 * In cr_restart, before any process is created: makes the System V semaphores and message queues
 * that are gone.
 */
int sysv_rebuild(struct rebuild *r);
/* Instead of that: could they be made?  Makes nothing. */
int sysv_could_rebuild(struct rebuild *r);
/* If the restart fails: removes those that were made. */
void sysv_drop(void);

/* ---- attributes of a process ------------------------------------------------- */

struct process_probe {
	int job;			/* parked job of /dev/kcr */
	pid_t pid;
	pid_t thread;			/* a live thread: the first one (pid), unless it
					 * has ended; /proc shows others by their TIDs too */
	const struct kcr_process *info;
	const char *status;		/* text of /proc/THREAD/status */
	const char *stat;		/* text of /proc/PID/stat */
};

struct attribute {
	const char *name;
	/* Refuses what save() would refuse, while the process still runs. */
	int (*check)(const struct process_probe *probe);
	int (*save)(const struct process_probe *probe, Kcr__Process *p);
	/* Per thread; `t` has its tid and module state already. */
	int (*save_thread)(const struct process_probe *probe, Kcr__Thread *t);
	/* As rebuild(), but before that of any process, and with the rights of this one. */
	int (*prepare)(struct rebuild *r, const Kcr__Process *p);
	/* In the skeleton process, single-threaded, old address space; in table order. */
	int (*rebuild)(struct rebuild *r, const Kcr__Process *p);
	/* System calls of the leader once its memory map is in place (before the threads exist). */
	int (*script)(struct rebuild *r, const Kcr__Process *p, struct script *s);
	/* System calls of every thread. */
	int (*script_thread)(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
			     struct script *s);
	/* System calls of the leader once all threads exist (POSIX timers, credentials last …). */
	int (*script_last)(struct rebuild *r, const Kcr__Process *p, struct script *s);
};

/*
 * The leader of a new session gets its controlling terminal,
 * if that is in the image: before it forks the others, which inherit it and could
 * not get it later.  0 or -errno, without a message.
 */
int terminal_take(const struct rebuild *r, const Kcr__Process *p);

extern const struct attribute *const attributes[];	/* NULL-terminated */

#endif /* KCR_RESOURCE_H */
