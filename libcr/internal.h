/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of libcr share.  init.c handles threads and forks, service.c
 * has the thread that answers requests, callback.c runs callbacks, critical.c
 * implements critical sections.
 *
 * cri.lock guards the lists and the start of the service thread.  It is never
 * held while a callback runs; cri_lock() blocks our signal meanwhile, so
 * that no callback interrupts a thread that holds it.
 */
#ifndef LIBCR_INTERNAL_H
#define LIBCR_INTERNAL_H

#include <libcr.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <linux/kcr.h>

/* cri.sections: the number of threads inside, and this: */
#define CRI_PENDING	0x80000000u	/* a checkpoint wants them out */

struct cri_callback {
	cr_callback_t func;		/* NULL: disabled */
	void *arg;
};

struct cri_callbacks {
	struct cri_callback *entry;	/* in the order of registration */
	unsigned int count;
	unsigned int room;
};

/* A request, while it lasts. */
struct cri_request {
	struct kcr_notice notice;
	char dest[KCR_PATH_MAX];
	char source[KCR_PATH_MAX];	/* once it is restarted */
	struct cr_checkpoint_info checkpoint;
	struct cr_restart_info restart;
	int result;			/* of cr_checkpoint() */
	int code;			/* a callback returned it; 0: none */
	unsigned int over;		/* result is valid; threads sleep on it (futex) */
	int flags;			/* the worst that a thread gave to cr_checkpoint() */
};

/*
 * Callbacks of one context of one thread, while they run.  Each is called from
 * within the cr_checkpoint() of the one before; reach() is called by the
 * innermost and returns when the checkpoint is over.
 */
struct cri_run {
	struct cri_callbacks callbacks;	/* a copy */
	unsigned int left;		/* not yet begun */
	unsigned int current;		/* index of the running one */
	int context;			/* CR_THREAD_CONTEXT, CR_SIGNAL_CONTEXT */
	bool called;			/* the running one has called cr_checkpoint() */
	bool reached;			/* reach() has returned */
	int flags;			/* of cr_checkpoint(): the first failure */
	struct cri_request *request;
	struct cri_callbacks *origin;	/* the original of callbacks */
	void (*reach)(struct cri_run *run);
};

/* What a thread has to do in a request; changed by it and by the service thread. */
enum cri_part {
	CRI_PART_NONE,
	CRI_PART_SENT,			/* the signal is on its way */
	CRI_PART_CLAIMED,		/* its callbacks run */
	CRI_PART_REACHED,		/* they wait for the outcome */
	CRI_PART_FINISHED,
};

struct cri_thread {
	unsigned int generation;	/* of cri, at cr_init(); 0: never called */
	cr_client_id_t id;
	unsigned int depth;		/* of critical sections */
	bool moving;			/* into an outermost one, or out of it */
	int persist;			/* cr_inc_persist() */
	unsigned int exits;		/* calls of on_thread_exit() */
	struct cri_run *run;		/* in a callback: the innermost group; or NULL */
	struct cri_thread *next;	/* cri.threads */
	pid_t tid;
	int hold;			/* CR_HOLD_*, of scope THREAD */
	struct cri_callbacks callbacks;	/* of signal context */
	unsigned int part;		/* enum cri_part; the service sleeps on it (futex) */
	struct cri_run part_run;
	sigset_t mask;			/* before cri_lock() */
};

struct cri {
	pthread_mutex_t lock;
	unsigned int generation;	/* one more in every forked child; from 1 */
	cr_client_id_t next_id;
	int client;			/* descriptor, -1: no service thread */
	unsigned int sections;
	struct cri_callbacks thread_callbacks;
	struct cri_thread *threads;	/* that called cr_init() */
	cr_hook_fn_t hook[CR_NUM_HOOKS];
	int hold_init, hold_uninit;	/* CR_HOLD_* */
	pthread_mutex_t forwarding;	/* a client has one FORWARD at a time */
};

extern struct cri cri;
extern __thread struct cri_thread cri_self;

void cri_lock(void);
void cri_unlock(void);

/* Makes fork(2) take cri.lock, so that what it guards is consistent in children. */
void cri_watch_forks(void);

/* Sleeps while *word is value (may return early); errno is kept. */
void cri_sleep(unsigned int *word, unsigned int value, const struct timespec *timeout);
void cri_wake(unsigned int *word);
/* CLOCK_MONOTONIC, and the time left until `end`, at least 0. */
struct timespec cri_now(void);
struct timespec cri_time_left(const struct timespec *end);

/* Has the calling thread called cr_init()?  If not: false, errno CR_ENOINIT. */
bool cri_is_init(void);

/* Is the calling thread in a callback or a hook? */
bool cri_is_busy(void);

/* A descriptor, or -1 with errno: ENOSYS: no module; else see open(2) and kcr(4). */
int cri_open_device(void);

/* Starts the service thread unless it runs; cri.lock held.  0 or -1 with errno. */
int cri_service_start(void);
/* In a forked child: closes its descriptor. */
void cri_service_forget(void);

/* In a forked child: no request is under way, and it has none of its own. */
void cri_signal_forget(void);
void cri_requests_forget(void);

/* From now on dlclose(3) does not unload us. */
void cri_stay_loaded(void);
/* In a callback: asks for more processes.  0 or -1 with errno. */
int cri_service_forward(int scope, pid_t target);

/* ---- signal.c: callbacks in the threads that registered them ----------------------- */

/* Makes threads take part; cri.lock held.  0 or -1 with errno. */
int cri_signal_prepare(void);
/*
 * In the service thread: makes the threads that have a part run their callbacks;
 * when all have reached cr_checkpoint() the innermost calls `answer`, which
 * must set result and call cri_signal_over().
 */
void cri_signal_begin(struct cri_request *request, void (*answer)(struct cri_request *request));
/* The result is valid: they go on. */
void cri_signal_over(struct cri_request *request);
/* Waits until they have finished. */
void cri_signal_finish(void);
/* When no thread is held any more, that may have a lock of malloc(). */
void cri_signal_free(void);
/* The calling thread ends; cri.lock held. */
void cri_signal_leave(void);
/*
 * For ANSWER: threads whose hold differs from the default, as it was before the first signal; valid
 * until cri_signal_free().  Returns how many.
 */
uint32_t cri_signal_exceptions(const struct kcr_answer_thread **threads, uint32_t *flags);

/* ---- hook.c ------------------------------------------------------------------------- */

/* Runs the hook for threads of this kind (CR_HOOK_CONT_…), unless there was no checkpoint. */
void cri_hook_run(cr_hook_event_t kind, const struct cri_request *request);
/* Is there a hook for all threads that called cr_init(), with callbacks or not? */
bool cri_hook_for_all(void);

/* Frees a list. */
void cri_callbacks_free(struct cri_callbacks *callbacks);
/* A copy, so that callbacks may be replaced meanwhile.  False: no memory. cri.lock held. */
bool cri_callbacks_copy(struct cri_callbacks *copy, const struct cri_callbacks *of);
/*
 * Runs a group: `run` holds callbacks, context, request and reach.  Returns
 * when all have returned.
 */
void cri_callbacks_run(struct cri_run *run);

/* ---- record.c: what a process says about itself --------------------------------------- */

/* When the library is loaded, and when it is unloaded. */
void cri_record_begin(void);
void cri_record_end(void);
/* The program that has asked for the last restart; 0: none has. */
pid_t cri_record_requester(void);
/* In a forked child: leaves it out of checkpoints if its parent is left out. */
void cri_omit_child(void);

/* ---- nscd.c --------------------------------------------------------------------------- */

/* When the library is loaded: LIBCR_DISABLE_NSCD. */
void cri_nscd_begin(void);

/* ---- request.c: tools run for the program ------------------------------------------ */

/*
 * spawn.c: 0 or an errno; fd becomes CRI_TOOL_FD (-1: none).  On `status` the
 * tool sends its PID (a pid_t), waits for a byte, begins.
 * between: NULL, or gets the PID of a process for cri_spawn_end(): the parent
 * of the tool and our child as long as the tool runs.
 */
int cri_spawn(const char *tool, const char *const *arguments, int fd, int status,
	      pid_t *between);
/* Waits until the tool has ended and its children have become ours. */
void cri_spawn_end(pid_t between);

/* Runs a tool; arguments end with NULL and may name descriptor CRI_TOOL_FD, which is `fd`. */
#define CRI_TOOL_FD	4
/* The handle, or -1 with errno.  self: this process is to be saved: the tool traces it. */
int cri_job_start(const char *tool, const char *const *arguments, int fd, bool restart,
		  bool self);
/* Waits until the request is accepted or over.  0, or an error number: over, and freed. */
int cri_job_accepted(unsigned long handle);
/* For a caller in a critical section: waits until the request is pending, or over. */
void cri_job_pending(unsigned long handle);
/* 1: over; 0: timed out; -1 with errno.  timeout NULL: for ever; else it gets what is left. */
int cri_job_wait(unsigned long handle, struct timeval *timeout, bool restart);
int cri_job_log(unsigned long handle, unsigned int length, char *buffer, bool restart);
/* The result is 0 or a PID; -1 with errno. */
int cri_job_reap(unsigned long handle, bool restart);
int cri_job_poll(unsigned long handle, struct timeval *timeout, char **message, bool restart);

/* Keeps critical sections out and waits until all threads have left theirs. */
void cri_sections_close(void);
void cri_sections_open(void);
/* Does a checkpoint want threads out? */
bool cri_sections_are_closed(void);
/* Waits until sections are open, for at most `seconds`; not in one, nor in a callback. */
void cri_sections_await_open(int seconds);

#endif /* LIBCR_INTERNAL_H */
