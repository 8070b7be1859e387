/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of /dev/kcr, used by the module and by the tools alike.
 *
 * An open file of /dev/kcr is one job: either a checkpoint (ADD … RELEASE) or
 * a restart (CLONE … RESUME).  The job belongs to the process that opened it;
 * the first close in its descriptor table, whatever causes it, ends the job:
 * parked programs run on, half-restored processes are killed, everything is freed.
 *
 * A program that wants to be notified of checkpoints is a client: another kind of
 * open file, see kcr_client.h.
 *
 * Every structure starts with `size` (sizeof as the caller knows it) and
 * `flags`; unknown flags are EINVAL.  It is copied in once and, where it has
 * results, out once, after an error too.  It may grow at its end, which changes
 * the ioctl's number: what the caller does not know counts as 0, what the
 * module does not know must be 0 (else E2BIG).  Array records never grow.
 * open: EPERM jobs are switched off; EDQUOT the user has max_jobs of them.
 * PIDs are those of the caller's namespace, lengths are bytes.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_H
#define _UAPI_LINUX_KCR_H

#include <linux/ioctl.h>
#include <linux/types.h>

#include "kcr_arch.h"
#include "kcr_async.h"
#include "kcr_client.h"
#include "kcr_hold.h"
#include "kcr_memory.h"
#include "kcr_packet.h"
#include "kcr_settings.h"
#include "kcr_socket.h"
#include "kcr_sysv.h"

#define KCR_DEVICE		"/dev/kcr"
#define KCR_ABI_VERSION		2

/* ---- what the module is and can do -------------------------------------- */

#define KCR_FEATURE_SNAPSHOT	(1 << 0)	/* KCR_IOC_SNAPSHOT works */
#define KCR_FEATURE_CLONE	(1 << 1)	/* KCR_IOC_CLONE works */
#define KCR_FEATURE_TRACK	(1 << 2)	/* KCR_IOC_TRACK works */
#define KCR_FEATURE_GUARD	(1 << 3)	/* KCR_RESUME_GUARD works */
#define KCR_FEATURE_HOLD	(1 << 4)	/* KCR_IOC_HOLD works */
#define KCR_FEATURE_NO_SUM	(1 << 5)	/* KCR_PAGES_NO_SUM is known */
#define KCR_FEATURE_READ_BACK	(1 << 6)	/* KCR_IOC_READ works in a restart */
#define KCR_FEATURE_RELEASE_TEST (1 << 7)	/* KCR_RELEASE_TEST is known */

struct kcr_info {
	__u32 size;
	__u32 flags;		/* 0 */
	__u32 abi;		/* out: KCR_ABI_VERSION */
	__u32 features;		/* out: KCR_FEATURE_* */
	__u32 xstate_size;	/* out: bytes of a thread's XSAVE area */
	__u32 pad;
};

/* ---- checkpoint: choosing and stopping ---------------------------------- */

/*
 * Adds a process to the job.  mem_fd is an open /proc/PID/mem (of a process
 * whose leader has exited: /proc/PID/task/TID/mem): the kernel's own ptrace
 * check ran when it was opened.  Nothing is stopped yet.  What the process
 * forks from now on joins the job automatically, until RELEASE.
 * Allowed before and after PARK: the next PARK stops it.
 * EBADF mem_fd is not a /proc/PID/mem; ESRCH no such process, a zombie, or
 * mem_fd is of another address space (the program called exec: reopen it);
 * EPERM a kernel thread or another PID namespace; EDEADLK the caller itself;
 * EACCES the caller itself may not trace it; EEXIST already in this job; EBUSY
 * in another job; EINPROGRESS in one that is still loading its memory (KCR_RESUME_GUARD);
 * EDQUOT the user's jobs have max_processes processes.
 */
struct kcr_add {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__s32 mem_fd;
};

/*
 * Stops every thread of every process of the job at a clean point, all or
 * nothing.  May be called again after further ADDs.  On failure the members
 * stay in the job, except one that called exec.
 * EBUSY: a thread did not come to rest in time (failed_pid names it, all run
 * on); EAGAIN: failed_pid called exec meanwhile, all run on: add it again;
 * EINTR: the caller got a signal, all run on; ESRCH: no process is left;
 * EINPROGRESS: NOTIFY again, all run on; EACCES: the caller may not trace
 * failed_pid any more, all run on; EDQUOT, ENOMEM: a process that a member has
 * forked could not be followed, all run on.  EINVAL: after RELEASE (HOLD).
 */
struct kcr_park {
	__u32 size;
	__u32 flags;		/* 0 */
	__u32 timeout_ms;	/* 0: 10,000 */
	__s32 failed_pid;	/* out */
	__u32 nr_processes;	/* out */
	__u32 nr_threads;	/* out */
	__u64 elapsed_ns;	/* out: from the call to the last arrival */
};

#define KCR_PROCESS_STOPPED	(1 << 0)	/* by a stop signal */
#define KCR_PROCESS_FORKED	(1 << 1)	/* joined automatically */
#define KCR_PROCESS_SUBREAPER	(1 << 2)	/* PR_SET_CHILD_SUBREAPER */
#define KCR_PROCESS_COMPAT	(1 << 3)	/* 32-bit program */
#define KCR_PROCESS_IO_URING	(1 << 4)	/* has used io_uring */
#define KCR_PROCESS_TRACED	(1 << 5)	/* a debugger is attached */
#define KCR_PROCESS_STOP_SEEN	(1 << 6)	/* stopped, and wait(2) has reported it */
#define KCR_PROCESS_TRACER	(1 << 7)	/* it debugs others */
#define KCR_PROCESS_LEADERLESS	(1 << 8)	/* its first thread has ended, others run */
#define KCR_PROCESS_MDWE	(1 << 9)	/* PR_SET_MDWE */
#define KCR_PROCESS_MDWE_OWN	(1 << 10)	/* … with PR_MDWE_NO_INHERIT */
#define KCR_PROCESS_AIO		(1 << 11)	/* has used io_setup(2) */
#define KCR_PROCESS_RESTRICTED	(1 << 12)	/* a thread's io_urings are restricted (Linux 7.0) */
#define KCR_PROCESS_AUTOREAP	(1 << 13)	/* CLONE_AUTOREAP (Linux 7.1) */
#define KCR_PROCESS_UPROBES	(1 << 14)	/* uprobes(9) are in its code, or have been hit */

/* Ids are equal where the object is shared (CLONE_VM, CLONE_FILES …). */
struct kcr_process {
	__s32 pid;
	__u32 flags;		/* KCR_PROCESS_* */
	__u32 nr_threads;
	__u32 exit_signal;
	__u32 stop_signal;	/* if STOPPED */
	__u32 dumpable;		/* as PR_GET_DUMPABLE */
	__u32 mm_id;
	__u32 files_id;
	__u32 fs_id;
	__u32 sighand_id;
	__u64 mm_def_flags;	/* KCR_VMA_LOCKED, _LOCKONFAULT: mlockall(MCL_FUTURE) */
	__u32 leader_exit;	/* LEADERLESS: the leader's status, as in wait(2) */
	__u32 pad;
};

/* Lists the processes of a parked job, in the order in which they joined. */
struct kcr_list {
	__u32 size;
	__u32 flags;		/* 0 */
	__u32 count;		/* in: capacity; out: how many there are */
	__u32 pad;
	__u64 processes;	/* struct kcr_process[count] */
};

/* ---- checkpoint: thread state ------------------------------------------- */

#define KCR_RESTART_NONE	0
#define KCR_RESTART_NANOSLEEP	1	/* data: clock, type, rmtp, ns left */
#define KCR_RESTART_FUTEX	2	/* data: uaddr, val|flags<<32, bitset, ns left */

#define KCR_FUTEX_SHARED	(1 << 0)	/* flags of KCR_RESTART_FUTEX */
#define KCR_FUTEX_REALTIME	(1 << 1)
#define KCR_FUTEX_TIMEOUT	(1 << 2)

/* What a signal does, whose handler runs before the call goes on. */
#define KCR_INTERRUPT_NEVER	0	/* nothing */
#define KCR_INTERRUPT_SA	1	/* the call returns EINTR unless the handler has SA_RESTART */
#define KCR_INTERRUPT_ALWAYS	2	/* the call returns EINTR */

struct kcr_restart_block {
	__u32 kind;		/* KCR_RESTART_* */
	__u32 interrupt;	/* KCR_INTERRUPT_*: the thread is about to make this call again */
	__u64 data[4];
};

#define KCR_THREAD_STOPPED	(1 << 0)	/* was in a group stop */
#define KCR_THREAD_HELD		(1 << 1)	/* is to wait for callbacks at a restart */
#define KCR_THREAD_NO_TSC	(1 << 2)	/* PR_SET_TSC: PR_TSC_SIGSEGV */
#define KCR_THREAD_MCE_EARLY	(1 << 3)	/* PR_MCE_KILL_SET: PR_MCE_KILL_EARLY */
#define KCR_THREAD_MCE_LATE	(1 << 4)	/* … PR_MCE_KILL_LATE */
#define KCR_THREAD_IO_FLUSHER	(1 << 5)	/* PR_SET_IO_FLUSHER */
#define KCR_THREAD_IO_PORTS	(1 << 6)	/* may use some: ioperm(2), iopl(2) */
#define KCR_THREAD_SEGMENTS	(1 << 7)	/* of its own, or its process's: modify_ldt(2), set_thread_area(2) */
#define KCR_THREAD_LANDLOCK	(1 << 8)	/* has landlock(7) rules that its requester has not */

/*
 * One thread.  The registers are ready to run: an interrupted system call is
 * set up to restart (or to go on, with `restart`, which also says what a signal
 * does to it).
 */
struct kcr_thread {
	__s32 tid;
	__u32 flags;		/* KCR_THREAD_* */
	__u64 regs[KCR_NR_REGS];
	__u64 sigmask;
	__u64 altstack_sp;
	__u64 altstack_size;
	__u32 altstack_flags;
	__u32 pdeath_signal;
	__u64 robust_list;	/* 0: none */
	__u64 clear_child_tid;
	__u64 rseq;		/* 0: not registered */
	__u32 rseq_len;
	__u32 rseq_sig;
	__u32 securebits;
	__u32 xstate_size;	/* bytes that follow this structure */
	struct kcr_restart_block restart;
};

/*
 * The threads of a process, the leader first unless it has ended: `count` records
 * of `stride` bytes, each a struct kcr_thread and its XSAVE area as in NT_X86_XSTATE.
 */
struct kcr_threads {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u32 stride;		/* in: at least sizeof + xstate_size of kcr_info */
	__u32 pad;
	__u64 buffer;
};

/* Queued signals, oldest first.  tid 0: those of the process. */
struct kcr_signals {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__s32 tid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u32 pad;
	__u64 siginfo;		/* siginfo_t[count], 128 bytes each */
};

/* Handlers of signals 1 … 64 in the layout of rt_sigaction(2). */
struct kcr_sigactions {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 pad;
	__u64 action[64][4];	/* out: handler, flags, restorer, mask */
};

#define KCR_TIMER_ITIMER	0	/* id: ITIMER_REAL, _VIRTUAL, _PROF */
#define KCR_TIMER_POSIX		1	/* id: as returned by timer_create(2) */

struct kcr_timer {
	__u32 kind;		/* KCR_TIMER_* */
	__s32 id;
	/* POSIX: clockid; a CPU clock of its own process or thread in the caller's IDs. */
	__s32 clock;
	__s32 notify;		/* POSIX: SIGEV_* */
	__s32 signal;		/* POSIX */
	__s32 tid;		/* POSIX: SIGEV_THREAD_ID, else 0 */
	__u64 value;		/* POSIX: sigev_value */
	__u64 remaining_ns;	/* 0: disarmed */
	__u64 interval_ns;
	__s32 overrun;
	__u32 pad;
};

struct kcr_timers {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 timers;		/* struct kcr_timer[count] */
};

/* ---- checkpoint: descriptors (memory: kcr_memory.h) ------------------------ */

/*
 * Returns a new close-on-exec duplicate of file descriptor fd of a member, parked
 * or not, as pidfd_getfd(2) would if that worked without the first thread.
 * EBADF: no such descriptor; ESRCH: no thread is left (or it called exec);
 * EACCES: the caller may not trace it now, or a security module denies it.
 */
#define KCR_DESCRIPTOR_CLOEXEC	(1 << 0)	/* no duplicate: returns 1 if exec closes it, else 0 */

struct kcr_descriptor {
	__u32 size;
	__u32 flags;		/* KCR_DESCRIPTOR_* */
	__s32 pid;
	__s32 fd;
};

/* ---- checkpoint: letting go ---------------------------------------------- */

/*
 * Makes a copy-on-write copy of every address space of the parked job.  The
 * copies live until the job ends and are read with the SNAPSHOT flags.
 * Shared, DONTFORK and WIPEONFORK ranges are not in it: save those first.
 * EOPNOTSUPP: this kernel can't, or a process has only stopped threads, private
 * hugetlb pages (the kernel may unmap them from a copy), uses userfaultfd,
 * or has prepared another PID or time namespace for its children;
 * EAGAIN, ENOMEM: a limit on processes or memory of a program; EEXIST: there
 * is one already; EINTR: the caller is dying.
 */
struct kcr_snapshot {
	__u32 size;
	__u32 flags;		/* 0 */
	__u64 elapsed_ns;	/* out */
};

/*
 * Only threads in CLIENT_ANSWER, and those that are not held, run on until the
 * next RELEASE.  After this only the snapshot can be read.
 */
#define KCR_RELEASE_HOLD	(1 << 0)

/* Lets nothing run, and only says whether what was read is whole: 0 or EAGAIN. */
#define KCR_RELEASE_TEST	(1 << 1)

/*
 * Lets every program run on; the snapshot stays.  Clients get the outcome
 * CONTINUED.
 * EAGAIN: a stopped process was continued meanwhile, or a process was killed, and
 * what was read may be torn: discard it (the programs run on all the same).
 * signal: sent to every process while still parked, 0: none.
 */
struct kcr_release {
	__u32 size;
	__u32 flags;		/* KCR_RELEASE_* */
	__u32 signal;		/* HOLD, TEST: 0 */
	__u32 pad;
	__u64 stopped_ns;	/* out: since the first PARK began */
};

/* ---- checkpoint: notifying clients ----------------------------------------- */

/* What NOTIFY returns for. */
#define KCR_EVENT_READY		0	/* all clients have answered READY */
#define KCR_EVENT_TEMPORARY	1	/* pid answered so; result: its code or 0 */
#define KCR_EVENT_PERMANENT	2
#define KCR_EVENT_OMIT		3	/* pid is not a member any more */
#define KCR_EVENT_FORWARD	4	/* pid asks to add scope, target; NOTIFY again */
#define KCR_EVENT_STOPPED	5	/* pid can't answer: it is stopped (SIGSTOP) */

/*
 * Notifies all clients among the members, those that join meanwhile too, and
 * waits for an event.  To be called again after every one but READY.
 * After FORWARD: pid and result (an error number or 0) return its outcome.
 * From the first NOTIFY on PARK fails with EINPROGRESS (all run on) if a
 * member that has not been notified became a client.
 * ETIMEDOUT: pid has not answered; EINTR.
 */
struct kcr_notify {
	__u32 size;
	__u32 flags;		/* 0 */
	struct kcr_notice notice;
	__u64 path;		/* of the destination, "": no path; NUL-terminated */
	__u32 timeout_ms;	/* 0: no limit */
	__u32 event;		/* out: KCR_EVENT_* */
	__s32 pid;		/* in: after FORWARD; out */
	__s32 result;		/* in: after FORWARD; out: code */
	__u32 forward_scope;	/* out */
	__s32 forward_target;	/* out */
	__u32 nr_clients;	/* out: those notified that still exist */
	__u32 pad;
};

#define KCR_CANCEL_KILL		(1 << 0)	/* every member, with SIGKILL */

/* Cancels the checkpoint: clients get the outcome CANCELLED with this error. */
struct kcr_cancel {
	__u32 size;
	__u32 flags;		/* KCR_CANCEL_* */
	__u32 error;		/* an error number above 0 */
	__u32 pad;
};

/*
 * After RELEASE, CANCEL or RESUME: waits until all clients are DONE (or have ended).
 * code: the first that is not 0.  ETIMEDOUT: failed_pid is not done; EINTR.
 */
struct kcr_finish {
	__u32 size;
	__u32 flags;		/* 0 */
	__u32 timeout_ms;	/* 0: no limit */
	__s32 failed_pid;	/* out: the client with that code, or the late one */
	__u32 code;		/* out */
	__u32 pad;
};

/* ---- restart -------------------------------------------------------------- */

/*
 * clone(2) with a chosen PID, for callers that lack CAP_CHECKPOINT_RESTORE.
 * Returns the child's PID to the caller and 0 to the child, which goes on
 * at the same instruction with the stack pointer `stack` (0: the same).
 * clone_flags: 0, or CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|
 * CLONE_SYSVSEM for a thread, or CLONE_PARENT | CLONE_FILES | CLONE_FS |
 * CLONE_VM | CLONE_SIGHAND combinations for processes that share.
 * Processes created this way belong to the job and die with it until RESUME.
 * EEXIST: the PID is in use.  EDQUOT: max_processes.  EPERM: a seccomp filter
 * is in force; or, without the capability, the PID is below 300 in the initial
 * PID namespace or the administrator forbids choosing PIDs (restore_ids).
 */
struct kcr_clone {
	__u32 size;
	__u32 flags;		/* 0 */
	__u64 clone_flags;
	__u64 stack;
	__s32 tid;		/* 0: any */
	__u32 exit_signal;
};

/* Stop before running; done when RESUME returns.  A parent in the job gets no SIGCHLD. */
#define KCR_ENTER_STOPPED	(1 << 0)
/* Sleep on after RESUME (HOLD). */
#define KCR_ENTER_HELD		(1 << 1)
/*
 * The group leader does not enter but ends, by exit(2): another thread sets this
 * flag, and what is said below of the leader applies to that thread.  It counts
 * as entered only when the leader has ended.
 */
#define KCR_ENTER_LEADERLESS	(1 << 2)

/*
 * The calling thread becomes the saved thread: it blocks until RESUME, then
 * runs on with these registers and signal mask (its XSAVE area, FS and GS
 * are those it has at the call).  If these are about to make a system call that had been
 * interrupted (restart.interrupt), a signal that is pending then interrupts it.
 * The last call of every rebuilt thread.
 * Of the group leader:
 * exe_fd (-1: none), a file that the caller may execute and has open for reading,
 * becomes /proc/PID/exe and is closed at once;
 * job_fd (-1: none), this job's descriptor, is closed at RESUME;
 * the range unmap_start … is unmapped once all threads have entered, those
 * of processes created with CLONE_VM as well;
 * dumpable is set when no thread has its creator's credentials any more.
 * Returns only on an error.
 */
struct kcr_enter {
	__u32 size;
	__u32 flags;		/* KCR_ENTER_* */
	__s32 exe_fd;
	__u32 nr_threads;	/* of this process, all that enter */
	__s32 job_fd;
	/* STOPPED: what wait(2) reports to a parent in the job, 0: nothing; else 0. */
	__u32 stop_signal;
	__s32 dumpable;		/* for PR_GET_DUMPABLE, from RESUME on: 0, 1; -1: unchanged */
	__u32 pad;
	__u64 unmap_start;
	__u64 unmap_len;
	__u64 regs[KCR_NR_REGS];	/* orig_ax, bases and selectors are ignored */
	__u64 sigmask;
	struct kcr_restart_block restart;
	struct kcr_dispatch dispatch;
};

/*
 * Waits until all threads of process pid have entered; also for a process
 * that does not exist yet.  Half-restored processes may wait for each other.
 * timeout_ms 0: 10,000.
 * ETIMEDOUT; ECHILD: the process died; EINTR.
 */
struct kcr_wait {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 timeout_ms;
};

/* Threads that entered as HELD wait for another RESUME, or for the end of the job. */
#define KCR_RESUME_HOLD		(1 << 0)
/*
 * The owner will load memory on demand (userfaultfd(2)): until LOADED the processes and all
 * that they fork are killed if the job ends, and no other job can have them.
 */
#define KCR_RESUME_GUARD	(1 << 1)
/* Alone, once, after a RESUME (GUARD): they have all their memory. */
#define KCR_RESUME_LOADED	(1 << 2)

/*
 * Lets all entered threads run: the restart is complete.
 * EBUSY: a live process of the job has not entered, or GUARD: another job has one, try again;
 * ECHILD: one died; EOPNOTSUPP: GUARD needs Linux 5.16 with userfaultfd; EDQUOT, ENOMEM.
 */
struct kcr_resume {
	__u32 size;
	__u32 flags;		/* KCR_RESUME_* */
	__u32 nr_threads;	/* out */
	__u32 pad;
};

/*
 * As mmap(2) of memory of an io_uring, shared, in the calling half-restored process, at an
 * address that only the kernel may choose (since Linux 6.5): it is made to choose this one.
 * EEXIST: it is in use; EBADF: not an io_uring; EBUSY: another thread does so; otherwise as
 * mmap(2).
 */
struct kcr_map {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 fd;
	__u32 prot;		/* PROT_* */
	__u64 address;
	__u64 length;
	__u64 offset;
};

struct kcr_faulting_range {
	__u64 start, end;
	__u64 origin;		/* as KCR_VMAS_ORIGINS: the address of the first page once */
};

#define KCR_FAULTING_MAX	65536

/*
 * The mappings whose faults a userfaultfd of a guarded process gets, by address: `fd` is that of
 * one of the processes that this job restarted, or of what they forked.  Without those that a
 * fork was to empty (MADV_WIPEONFORK).
 * ENOENT: there are none; ENOSPC: count returns what is needed; EBADF.
 */
struct kcr_faulting {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 fd;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 ranges;		/* struct kcr_faulting_range[count] */
};

#define KCR_IOC_INFO		_IOWR(KCR_IOC_MAGIC, 0x00, struct kcr_info)
#define KCR_IOC_ADD		_IOW(KCR_IOC_MAGIC, 0x10, struct kcr_add)
#define KCR_IOC_PARK		_IOWR(KCR_IOC_MAGIC, 0x11, struct kcr_park)
#define KCR_IOC_LIST		_IOWR(KCR_IOC_MAGIC, 0x12, struct kcr_list)
#define KCR_IOC_THREADS		_IOWR(KCR_IOC_MAGIC, 0x13, struct kcr_threads)
#define KCR_IOC_SIGNALS		_IOWR(KCR_IOC_MAGIC, 0x14, struct kcr_signals)
#define KCR_IOC_SIGACTIONS	_IOWR(KCR_IOC_MAGIC, 0x15, struct kcr_sigactions)
#define KCR_IOC_TIMERS		_IOWR(KCR_IOC_MAGIC, 0x16, struct kcr_timers)
#define KCR_IOC_MM		_IOWR(KCR_IOC_MAGIC, 0x17, struct kcr_mm)
#define KCR_IOC_VMAS		_IOWR(KCR_IOC_MAGIC, 0x18, struct kcr_vmas)
#define KCR_IOC_MAPPED_FILE	_IOW(KCR_IOC_MAGIC, 0x19, struct kcr_mapped_file)
#define KCR_IOC_SCAN		_IOWR(KCR_IOC_MAGIC, 0x1a, struct kcr_scan)
#define KCR_IOC_WRITE		_IOWR(KCR_IOC_MAGIC, 0x1b, struct kcr_pages)
#define KCR_IOC_READ		_IOWR(KCR_IOC_MAGIC, 0x1c, struct kcr_pages)
#define KCR_IOC_SNAPSHOT	_IOWR(KCR_IOC_MAGIC, 0x1d, struct kcr_snapshot)
#define KCR_IOC_RELEASE		_IOWR(KCR_IOC_MAGIC, 0x1e, struct kcr_release)
#define KCR_IOC_NOTIFY		_IOWR(KCR_IOC_MAGIC, 0x1f, struct kcr_notify)
#define KCR_IOC_CANCEL		_IOW(KCR_IOC_MAGIC, 0x20, struct kcr_cancel)
#define KCR_IOC_FINISH		_IOWR(KCR_IOC_MAGIC, 0x21, struct kcr_finish)
#define KCR_IOC_DESCRIPTOR	_IOW(KCR_IOC_MAGIC, 0x23, struct kcr_descriptor)
#define KCR_IOC_TRACK		_IOW(KCR_IOC_MAGIC, 0x24, struct kcr_track)
#define KCR_IOC_AIO		_IOWR(KCR_IOC_MAGIC, 0x25, struct kcr_aio)
#define KCR_IOC_URING		_IOWR(KCR_IOC_MAGIC, 0x26, struct kcr_uring)
#define KCR_IOC_URING_REQUESTS	_IOWR(KCR_IOC_MAGIC, 0x27, struct kcr_uring_requests)
#define KCR_IOC_USERFAULT	_IOWR(KCR_IOC_MAGIC, 0x28, struct kcr_userfault)
#define KCR_IOC_PACKET_RING	_IOWR(KCR_IOC_MAGIC, 0x29, struct kcr_packet_ring)
#define KCR_IOC_MEMPOLICIES	_IOWR(KCR_IOC_MAGIC, 0x2a, struct kcr_mempolicies)
#define KCR_IOC_SOCKET		_IOWR(KCR_IOC_MAGIC, 0x2b, struct kcr_socket)
#define KCR_IOC_SETTINGS	_IOWR(KCR_IOC_MAGIC, 0x2c, struct kcr_settings)
#define KCR_IOC_UNDOS		_IOWR(KCR_IOC_MAGIC, 0x2d, struct kcr_undos)
#define KCR_IOC_CLONE		_IOW(KCR_IOC_MAGIC, 0x30, struct kcr_clone)
#define KCR_IOC_ENTER		_IOW(KCR_IOC_MAGIC, 0x31, struct kcr_enter)
#define KCR_IOC_WAIT		_IOW(KCR_IOC_MAGIC, 0x32, struct kcr_wait)
#define KCR_IOC_FILL		_IOWR(KCR_IOC_MAGIC, 0x33, struct kcr_pages)
#define KCR_IOC_STORE		_IOWR(KCR_IOC_MAGIC, 0x34, struct kcr_pages)
#define KCR_IOC_RESUME		_IOWR(KCR_IOC_MAGIC, 0x35, struct kcr_resume)
#define KCR_IOC_FAULTING	_IOWR(KCR_IOC_MAGIC, 0x36, struct kcr_faulting)
#define KCR_IOC_MAP		_IOW(KCR_IOC_MAGIC, 0x37, struct kcr_map)
#define KCR_IOC_HOLD		_IOWR(KCR_IOC_MAGIC, 0x40, struct kcr_hold)

#endif /* _UAPI_LINUX_KCR_H */
