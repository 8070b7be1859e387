/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libcr: for programs that take part in their checkpoints and restarts.  No
 * program needs it to be checkpointed.  The interface is that of BLCR 0.8, so
 * that programs written for it build and run unchanged.
 *
 * A thread calls cr_init() before anything else.  Callbacks run when a
 * checkpoint was requested; each calls cr_checkpoint(), which returns once for
 * the program that goes on and once more in every program restarted from the
 * context file.  Critical sections hold checkpoints off for a while.  Requests
 * come from cr_checkpoint(1) or from programs (cr_request_checkpoint()).
 *
 * Unless it says otherwise a function
 *  - returns a negative value on failure and sets errno (CR_E… or E…);
 *  - may be called by any thread that has called cr_init(), fails with
 *    CR_ENOINIT in others, and is thread-safe;
 *  - is not async-signal-safe.
 *
 * Link with -lcr (pkg-config libcr).  See libcr(3).
 */
#ifndef LIBCR_H
#define LIBCR_H

#include <errno.h>
#include <sys/time.h>
#include <sys/types.h>

#include <blcr_common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- constants and types ------------------------------------------------------- */

#define CR_CHECKPOINT_ARGS_VERSION	1
#define CR_RESTART_ARGS_VERSION		1

/* Flags of cr_register_callback() and the like: where the callback runs. */
#define CR_SIGNAL_CONTEXT	0x2000000	/* in the thread that registered it */
#define CR_THREAD_CONTEXT	0x4000000	/* in a thread of libcr's own */
#define CR_MAX_CALLBACKS	0x1FFFFFF	/* of one context in a thread */

/* A client id to use in callbacks, where the thread's own is not known. */
#define CR_ID_CALLBACK		((cr_client_id_t)(-1))

/* cr_fd: make context.ID in the working directory (cr_request_checkpoint() only). */
#define CR_DEST_CWD		(-4096)

/* Flags of cr_checkpoint(): what this process wants. */
#define CR_CHECKPOINT_READY		0	/* go on with the checkpoint */
#define CR_CHECKPOINT_TEMP_FAILURE	1	/* cancel it; a later one may succeed */
#define CR_CHECKPOINT_PERM_FAILURE	2	/* cancel it and kill all its processes */
#define CR_CHECKPOINT_OMIT		4	/* leave this process out */
/* A failure with a code of 1 … 65535, which becomes the requester's errno. */
#define CR_CHECKPOINT_TEMP_FAILURE_CODE(code) \
	(CR_CHECKPOINT_TEMP_FAILURE | (((code) & 0xffff) << 16))
#define CR_CHECKPOINT_PERM_FAILURE_CODE(code) \
	(CR_CHECKPOINT_PERM_FAILURE | (((code) & 0xffff) << 16))

/* Results of cr_poll_checkpoint() and cr_poll_restart(); errno says why. */
#define CR_POLL_CHKPT_ERR_PRE	(-1)	/* waiting failed; the request may go on */
#define CR_POLL_CHKPT_ERR_POST	(-2)	/* the request failed */
#define CR_POLL_CHKPT_ERR_LOG	(-3)	/* it is complete, the messages are lost */
#define CR_POLL_RSTRT_ERR_PRE	(-1)
#define CR_POLL_RSTRT_ERR_POST	(-2)
#define CR_POLL_RSTRT_ERR_LOG	(-3)

/* Results of cr_status(). */
enum {
	CR_STATE_IDLE = 0,	/* no checkpoint */
	CR_STATE_PENDING = 1,	/* a checkpoint waits for critical sections to end */
	CR_STATE_ACTIVE = 2	/* this thread is in a callback */
};

/* Events of cr_register_hook(). */
typedef enum {
	/* The program goes on after a checkpoint … */
	CR_HOOK_CONT_SIGNAL_CONTEXT = 0,	/* in threads that have called cr_init() */
	CR_HOOK_CONT_THREAD_CONTEXT = 1,	/* in the thread of thread-context callbacks */
	CR_HOOK_CONT_NO_CALLBACKS = 2,		/* in all others; see cr_register_hook() */
	/* … or after a restart. */
	CR_HOOK_RSTRT_SIGNAL_CONTEXT = 3,
	CR_HOOK_RSTRT_THREAD_CONTEXT = 4,
	CR_HOOK_RSTRT_NO_CALLBACKS = 5,
	CR_NUM_HOOKS = 6
} cr_hook_event_t;

typedef void (*cr_hook_fn_t)(cr_hook_event_t event);
#define CR_HOOK_FN_ERROR	((cr_hook_fn_t)~0UL)

/* Scopes of cr_hold_ctrl(). */
enum {
	CR_HOLD_SCOPE_THREAD = 0,	/* the calling thread */
	CR_HOLD_SCOPE_INIT = 1,		/* threads that called cr_init(): their default */
	CR_HOLD_SCOPE_UNINIT = 2	/* threads that did not */
};

typedef int cr_client_id_t;
typedef int cr_callback_id_t;
typedef unsigned int cr_version_t;
typedef unsigned long cr_checkpoint_handle_t;	/* a file descriptor */
typedef unsigned long cr_restart_handle_t;	/* likewise */

/*
 * A callback.  0: success.  Anything else ends the request for everybody: the
 * requester gets it as its error number (at a restart, CR_ERSTRTABRT).
 */
typedef int (*cr_callback_t)(void *arg);

typedef volatile unsigned int cr_spinlock_t;
#define CR_SPINLOCK_INITIALIZER	0U

/* Arguments of cr_request_checkpoint(); cr_initialize_checkpoint_args_t() first. */
typedef struct cr_checkpoint_args {
	cr_version_t cr_version;	/* CR_CHECKPOINT_ARGS_VERSION */
	cr_scope_t cr_scope;		/* must be set */
	pid_t cr_target;		/* 0: the caller, its group, its session */
	int cr_fd;			/* open for writing, or CR_DEST_CWD; must be set */
	int cr_signal;			/* sent to every process afterwards; 0: none */
	unsigned int cr_timeout;	/* seconds; 0: no limit */
	unsigned int cr_flags;		/* CR_CHKPT_* */
} cr_checkpoint_args_t;

/* Arguments of cr_request_restart(); cr_initialize_restart_args_t() first. */
typedef struct cr_restart_args {
	cr_version_t cr_version;	/* CR_RESTART_ARGS_VERSION */
	int cr_fd;			/* the context file, open for reading; must be set */
	int cr_signal;			/* sent to every process; 0: none */
	unsigned int cr_flags;		/* CR_RSTRT_* */
	struct cr_rstrt_relocate *cr_relocate;	/* or NULL */
} cr_restart_args_t;

/*
 * The checkpoint under way.  dest is absolute; a directory ends in "/."; ""
 * if it is not in a file system (a pipe, a socket).
 */
struct cr_checkpoint_info {
	int signal;		/* will be sent afterwards; 0: none */
	const char *dest;
	pid_t requester;
	pid_t target;
	cr_scope_t scope;
};

/* The restart under way; src as dest above. */
struct cr_restart_info {
	pid_t requester;
	const char *src;
};

/* ---- initialisation -------------------------------------------------------------- */

/*
 * Makes the calling thread known to libcr, and the process to the kernel
 * module.  Once per thread; further calls return the same id.  A child of
 * fork(2) starts afresh: it calls cr_init() and registers its own callbacks.
 * Returns the thread's id, from 0 on (0 in a thread-context callback), to be
 * passed to cr_enter_cs() and the like; negative with ENOSYS (no module),
 * EACCES (this user may not open the device), EPERM (the administrator has
 * switched it off), EDQUOT (too many jobs of this user are open), CR_EVERSION
 * (another version of the module) or ENOMEM.
 */
cr_client_id_t cr_init(void);

/*
 * Naming this symbol for the linker (-u cr_link_me) makes sure that a program
 * is linked with libcr even if it calls none of its functions.
 */
void cr_link_me(void);

/* ---- callbacks --------------------------------------------------------------------- */

/*
 * Adds a callback, to be run with `arg` in every checkpoint.  flags: one of
 * CR_THREAD_CONTEXT and CR_SIGNAL_CONTEXT.  All thread-context ones run first,
 * in one thread of libcr with all signals blocked; then the signal-context
 * ones of each thread in that thread.  Callbacks of one group nest in reverse
 * order of registration: cr_checkpoint() of one runs the next.
 * Returns an id for cr_replace_callback(), which includes the context's flag;
 * -1 with CR_ENOINIT, EINVAL (flags), EBUSY (called from a callback), ENOMEM
 * or ENOSPC (CR_MAX_CALLBACKS exist).
 */
cr_callback_id_t cr_register_callback(cr_callback_t func, void *arg, int flags);

/*
 * Replaces the function of a callback; func NULL: none, the callback stays
 * registered.  Signal-context ones only of the calling thread.
 * 0; -1 with CR_ENOINIT, EINVAL (no such id, or flags are of another
 * context) or EBUSY (called from a callback).
 */
int cr_replace_callback(cr_callback_id_t id, cr_callback_t func, void *arg, int flags);

/*
 * Likewise for the running callback, with effect from the next checkpoint on.
 * 0; -1 with EINVAL (flags are of another context) or CR_ENOTCB.
 */
int cr_replace_self(cr_callback_t func, void *arg, int flags);

/*
 * In a callback: runs the callbacks nested in it and then, in the innermost one,
 * lets the checkpoint happen.  flags: CR_CHECKPOINT_READY, or a failure or
 * OMIT, which skips the callbacks of this group that have not begun.  A
 * callback that returns without having called this does it implicitly.
 * 0: the program goes on; > 0: it was restarted, by the process with this
 * PID; < 0: -CR_ETEMPFAIL, -CR_EPERMFAIL, -CR_EOMITTED (or the negated code
 * of a callback): there was no checkpoint of this process; -CR_ENOTCB.
 * errno is not set.
 */
int cr_checkpoint(int flags);

/*
 * In a callback: information on the checkpoint, or, once cr_checkpoint()
 * has returned > 0, on the restart.  NULL otherwise (errno CR_ENOTCB outside
 * callbacks).  Valid until the callback returns.
 */
const struct cr_checkpoint_info *cr_get_checkpoint_info(void);
const struct cr_restart_info *cr_get_restart_info(void);

/*
 * In a callback before cr_checkpoint(): adds further processes to the
 * checkpoint; processes that are in it already are no error.  target as in
 * cr_checkpoint_args_t, 0: the caller's.
 * 0; -1 with ESRCH, EPERM, EINVAL (scope), CR_ENOTCB, ECANCELED (the checkpoint is
 * over: somebody else has ended it), or EDEADLK (it would add the requester, which
 * prohibits that: CR_CHKPT_PROHIBIT_SELF).
 */
int cr_forward_checkpoint(cr_scope_t scope, pid_t target);

/* ---- critical sections ---------------------------------------------------------------- */

/*
 * Between enter and leave no checkpoint happens.  Any number of threads may be
 * inside; sections nest.  enter waits while a checkpoint is pending or under
 * way (not if this thread is inside already); tryenter returns 1 instead.
 * Leaving the last one lets a pending checkpoint happen before it returns.
 * `id`: of the calling thread, from cr_init().  In a callback they do nothing.
 * Some 10 ns, and no system call while no checkpoint is pending.  Handlers of
 * signals may call them, and cr_status(), once a section was entered or a callback
 * registered, and leave what they enter.
 * 0; -1 with CR_ENOINIT or EINVAL (leave: not inside).
 */
int cr_enter_cs(cr_client_id_t id);
int cr_tryenter_cs(cr_client_id_t id);
int cr_leave_cs(cr_client_id_t id);

/* CR_STATE_*, as this thread sees it; -1 with CR_ENOINIT. */
int cr_status(void);

/* ---- requesting checkpoints ----------------------------------------------------------- */

/* Implements cr_initialize_checkpoint_args_t(); EINVAL: unknown version. */
int cri_init_checkpoint_args_t(cr_version_t version, cr_checkpoint_args_t *args);

/*
 * Sets defaults: scope and fd -1 (both must be set), the rest 0.  Returns 0.
 */
#define cr_initialize_checkpoint_args_t(args) \
	cri_init_checkpoint_args_t(CR_CHECKPOINT_ARGS_VERSION, (args))

/*
 * Requests a checkpoint.  Needs no cr_init().  0: it is under way and *handle
 * stands for it until it is reaped; the handle is a file descriptor, which
 * poll(2) finds readable when the request is complete.  A request for the
 * calling process itself, outside critical sections, is complete when the
 * call returns.
 * -1 with ESRCH (no such process), EPERM (may not be traced; a kernel
 * thread), EBUSY (a process is in another checkpoint, or called in a
 * callback), EDEADLK (CR_CHKPT_PROHIBIT_SELF), CR_EPTRACED, CR_EPTRACER,
 * CR_ENOSUPPORT, EINVAL (arguments), EBADF (cr_fd is not open for writing),
 * EMLINK (its file has several hard links), EACCES (may not open the device),
 * EDQUOT (the user is at a limit), ENOMEM or ENOSYS (no module, no
 * cr_checkpoint(1)).  With CR_CHKPT_ASYNC_ERR reaping reports most of them.
 */
int cr_request_checkpoint(cr_checkpoint_args_t *args, cr_checkpoint_handle_t *handle);

/*
 * Waits until the request is complete, at most `timeout` (NULL: for ever; as
 * in select(2)).  1: it is; 0: timed out; -1 with EINTR or EINVAL.
 */
int cr_wait_checkpoint(cr_checkpoint_handle_t *handle, struct timeval *timeout);

/*
 * Copies the messages of the request, one per line, NUL-terminated, into `buf`
 * of `len` bytes, truncated if need be.  May be called again; (handle, 0,
 * NULL) returns the size.  Before reaping.
 * Returns the bytes needed for all, with the NUL; 0: there are none; -1 with
 * EAGAIN (not complete) or EINVAL.
 */
int cr_log_checkpoint(cr_checkpoint_handle_t *handle, unsigned int len, char *buf);

/*
 * Returns the result and frees the handle (but not with EAGAIN).
 * 0: all processes were saved (BLCR's documentation promised > 0; its programs
 * test for < 0).  -1 with EAGAIN (not complete), EINVAL (no such handle),
 * ESRCH (no process was saved), CR_ERESTARTED (this process was restarted from
 * that checkpoint), CR_ETEMPFAIL, CR_EPERMFAIL or a callback's code, ETIMEDOUT
 * (cr_timeout), EIO, ENOSPC and others.
 */
int cr_reap_checkpoint(cr_checkpoint_handle_t *handle);

/*
 * Waits as cr_wait_checkpoint() does, then reaps.  1: all saved; 0: not
 * complete; CR_POLL_CHKPT_ERR_* with errno.  *msg gets the messages or NULL,
 * to be freed by the caller; msg may be NULL.
 */
int cr_poll_checkpoint(cr_checkpoint_handle_t *handle, struct timeval *timeout);
int cr_poll_checkpoint_msg(cr_checkpoint_handle_t *handle, struct timeval *timeout, char **msg);

/* ---- requesting restarts --------------------------------------------------------------- */

/* Implements cr_initialize_restart_args_t(); EINVAL: unknown version. */
int cri_init_restart_args_t(cr_version_t version, cr_restart_args_t *args);

/* Sets defaults: fd -1 (must be set), flags CR_RSTRT_RESTORE_PID, the rest 0. */
#define cr_initialize_restart_args_t(args) \
	cri_init_restart_args_t(CR_RESTART_ARGS_VERSION, (args))

/*
 * Requests a restart; the restored processes become children of the caller.
 * Needs no cr_init().  0: it is under way, *handle stands for it.
 * -1 with EINVAL (arguments, or not a context file), EBADF, EISDIR,
 * CR_EBADARCH, EBUSY (a process or thread ID is in use), EACCES or EPERM (not
 * allowed), EDQUOT (the user is at a limit), ENOMEM or ENOSYS (no module, no
 * cr_restart(1)).  With CR_RSTRT_ASYNC_ERR reaping reports most of them.
 */
int cr_request_restart(cr_restart_args_t *args, cr_restart_handle_t *handle);

/*
 * As their counterparts above.  On success reap and poll return the PID of the
 * restored process that was the target.
 */
int cr_wait_restart(cr_restart_handle_t *handle, struct timeval *timeout);
int cr_log_restart(cr_restart_handle_t *handle, unsigned int len, char *buf);
int cr_reap_restart(cr_restart_handle_t *handle);
int cr_poll_restart(cr_restart_handle_t *handle, struct timeval *timeout);
int cr_poll_restart_msg(cr_restart_handle_t *handle, struct timeval *timeout, char **msg);

/* ---- what happens after the callbacks ------------------------------------------------- */

/*
 * Registers a function for an event, in place of any other; fn NULL: none.
 * Hooks belong to the process; one runs in every thread that the event concerns
 * after its callbacks and before the program goes on; it may run in a signal
 * handler and should call async-signal-safe functions only.  No hook runs if there
 * was no checkpoint of the process (cr_checkpoint() returned < 0).
 * Returns the previous function, or CR_HOOK_FN_ERROR with CR_ENOINIT or
 * EINVAL (event, or fn is CR_HOOK_FN_ERROR).
 * Threads that never called cr_init() run no hook, so those of NO_CALLBACKS never run.
 */
cr_hook_fn_t cr_register_hook(cr_hook_event_t event, cr_hook_fn_t fn);

/*
 * Whether threads wait, after a checkpoint (CR_HOLD_CONT) or a restart
 * (CR_HOLD_RSTRT), until all processes have run their callbacks.  Default:
 * BOTH for the scopes INIT and UNINIT, DFLT for a thread.
 * Returns the previous value; -1 with CR_ENOINIT or EINVAL (scope, or a
 * flag that this scope does not have).
 */
int cr_hold_ctrl(int scope, int flags);

/*
 * Count reasons to keep the calling thread's state while it ends: as long as its
 * count is not 0, destructors of thread-specific data (pthread_key_create(3)) may
 * use libcr, and critical sections are not left; not beyond the last round of
 * destructors.  From the first call on dlclose(3) does not unload libcr.
 * Return the count before; -1 with CR_ENOINIT or ERANGE (the count would become
 * negative or overflow).
 */
int cr_inc_persist(void);
int cr_dec_persist(void);

/* ---- helpers ---------------------------------------------------------------------------- */

/*
 * Spinlocks that may be used in signal handlers, for state that callbacks and
 * program share.  No cr_init() needed.  trylock returns non-zero if and only
 * if it has the lock.
 */
void cr_spinlock_init(cr_spinlock_t *lock);
void cr_spinlock_lock(cr_spinlock_t *lock);
void cr_spinlock_unlock(cr_spinlock_t *lock);
int cr_spinlock_trylock(cr_spinlock_t *lock);

/* The text for an error number, CR_E… or any errno.  Needs no cr_init(). */
const char *cr_strerror(int errnum);

/* ---- deprecated -------------------------------------------------------------------------- */

/*
 * Checkpoint the calling process (scope CR_SCOPE_PROC) and wait until done (in a
 * critical section: it happens when that is left): to context.PID in the working
 * directory, to a file, to a descriptor.  They abort(3) if the request is not accepted;
 * if it fails later, the program goes on, and a file that was named is removed.
 */
void cr_request(void);
void cr_request_file(const char *filename);
void cr_request_fd(int fd);

#ifdef __cplusplus
}
#endif

#endif /* LIBCR_H */
