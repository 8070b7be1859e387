/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers and types that libcr shares with programs written for the BLCR
 * interface: errors, scopes, flags.  Programs include <libcr.h>, which
 * includes this file.  All values are fixed: binaries depend on them.
 */
#ifndef BLCR_COMMON_H
#define BLCR_COMMON_H

/* BLCR brought all of these along, and programs count on it. */
#include <features.h>
#include <sys/ioctl.h>
#include <sys/types.h>

/* ---- version ---------------------------------------------------------------- */

/* The release of BLCR whose interface this is, for programs that ask before they compile. */
#define CR_RELEASE_MAJOR	0
#define CR_RELEASE_MINOR	8
#define CR_RELEASE_PATCH	5
#define CR_RELEASE_VERSION	"0.8.5"

/* The library's own version there; LIBCR_MAJOR is in the name: libcr.so.0. */
#define LIBCR_MAJOR		0
#define LIBCR_MINOR		5
#define LIBCR_PATCH		5
#define LIBCR_VERSION		"0.5.5"

/* ---- errors ---------------------------------------------------------------- */

/*
 * Error numbers beyond those of <errno.h>: found in errno, or negated as a
 * result, as the function says.  cr_strerror() knows them.  A tool that fails
 * with one exits with its low byte (50 … 61).
 */
#define CR_MIN_ERRCODE	2353	/* all are greater than this … */
#define CR_MAX_ERRCODE	2366	/* … and less than this */

enum {
	CR_ETEMPFAIL = 2354,	/* a callback asked to try again later */
	CR_EPERMFAIL,		/* a callback failed for good: its processes were killed */
	CR_ENOSUPPORT,		/* the program does not support checkpoints */
	CR_EVERSION,		/* versions of library and kernel module do not match */
	CR_EOMITTED,		/* a callback left its process out of the checkpoint */
	CR_EBADARCH,		/* the context file is from another kind of machine */
	CR_EPTRACED,		/* the process is being debugged */
	CR_EPTRACER,		/* the process debugs another */
	CR_ERSTRTABRT,		/* a callback ended the restart */
	CR_ERESTARTED,		/* the requester was restarted from this checkpoint */
	CR_ENOTCB,		/* must be called from within a callback */
	CR_ENOINIT		/* this thread has not called cr_init() */
};

/* ---- scopes ----------------------------------------------------------------- */

/* Which processes a request is for; `target` is the ID of … */
typedef enum {
	CR_SCOPE_PROC = 0,	/* a process: only this one, all its threads */
	CR_SCOPE_PGRP = 1,	/* a process group */
	CR_SCOPE_SESS = 2,	/* a session */
	CR_SCOPE_TREE = 3	/* a process: it and all its descendants */
} cr_scope_t;

/* ---- flags of cr_request_checkpoint() ---------------------------------------- */

#define CR_CHKPT_PROHIBIT_SELF	0x001	/* EDEADLK if the caller is in the scope */
#define CR_CHKPT_PTRACED_ALLOW	0x002	/* take processes that are being debugged */
#define CR_CHKPT_PTRACED_SKIP	0x004	/* leave them out silently */
#define CR_CHKPT_PTRACER_SKIP	0x008	/* leave debuggers out silently */
#define CR_CHKPT_ASYNC_ERR	0x010	/* errors are reported by the handle, not by the call */
#define CR_CHKPT_DUMP_EXEC	0x200	/* save the pages of the executable, too */
#define CR_CHKPT_DUMP_PRIVATE	0x400	/* … of all privately mapped files */
#define CR_CHKPT_DUMP_SHARED	0x800	/* … of all files mapped shared */
#define CR_CHKPT_DUMP_ALL	(CR_CHKPT_DUMP_EXEC | CR_CHKPT_DUMP_PRIVATE | CR_CHKPT_DUMP_SHARED)

/* ---- flags of cr_request_restart() ------------------------------------------- */

#define CR_RSTRT_ASYNC_ERR	0x01	/* errors are reported by the handle, not by the call */
#define CR_RSTRT_RESTORE_PID	0x02	/* processes and threads get their old IDs */
#define CR_RSTRT_RESTORE_PGID	0x04	/* process groups, too */
#define CR_RSTRT_RESTORE_SID	0x08	/* sessions, too */

/* ---- relocation of paths ------------------------------------------------------ */

#define CR_MAX_RSTRT_RELOC	16	/* pairs at most */

/* Absolute paths; whole components are compared, the first pair that matches wins. */
struct cr_rstrt_relocate_pair {
	const char *oldpath;
	const char *newpath;
};

struct cr_rstrt_relocate {
	unsigned int count;		/* pairs that follow */
	__extension__ struct cr_rstrt_relocate_pair path[];
};

/* Bytes of a struct cr_rstrt_relocate with n pairs. */
#define CR_RSTRT_RELOCATE_SIZE(n) \
	(sizeof(struct cr_rstrt_relocate) + (n) * sizeof(struct cr_rstrt_relocate_pair))

/* ---- hold --------------------------------------------------------------------- */

/* Flags and results of cr_hold_ctrl(). */
#define CR_HOLD_READ	(-1)	/* query, change nothing */
#define CR_HOLD_NONE	0	/* never wait */
#define CR_HOLD_CONT	1	/* wait when continuing after a checkpoint */
#define CR_HOLD_RSTRT	2	/* wait when restarting */
#define CR_HOLD_BOTH	(CR_HOLD_CONT | CR_HOLD_RSTRT)
#define CR_HOLD_DFLT	4	/* a thread: as set for CR_HOLD_SCOPE_INIT */

/* ---- transport ---------------------------------------------------------------- */

/*
 * The signal that runs signal-context callbacks in their thread.  A program
 * that blocks, ignores or handles it can be checkpointed all the same: then
 * these callbacks run in libcr's own thread.
 */
#define CR_SIGNUM	64

#endif /* BLCR_COMMON_H */
