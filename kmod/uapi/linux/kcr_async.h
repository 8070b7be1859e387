/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kcr and asynchronous input and output: contexts of io_setup(2) and instances of
 * io_uring(7), in what the kernel does not tell of them otherwise.  The rules for structures
 * are in kcr.h, which includes this file.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_ASYNC_H
#define _UAPI_LINUX_KCR_ASYNC_H

#include <linux/types.h>

#define KCR_AIO_WAITS		(1 << 0)	/* a request waits for an event (IOCB_CMD_POLL) */

/* A context of io_setup(2). */
struct kcr_aio_context {
	__u64 id;		/* as for io_submit(2): the address of its ring … */
	__u64 length;		/* … and its length in bytes */
	__u64 references;	/* as many as to a new context: no request is in flight */
	__u32 max_reqs;		/* as passed to io_setup(2) */
	__u32 nr_events;	/* of its ring */
	__u32 tail;		/* the kernel's own */
	__u32 flags;		/* KCR_AIO_* */
};

/*
 * Lists the contexts of a parked process; pid 0: of the caller.
 * EOPNOTSUPP: this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF), or has others.
 */
struct kcr_aio {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 contexts;		/* struct kcr_aio_context[count] */
};

/*
 * Requests of a parked process to any io_uring.  `fd`: -1, or one of its descriptors: if that is
 * an io_uring its threads first do what io_uring_enter(2) with IORING_ENTER_GETEVENTS does for
 * requests that are done.  pid 0: of the calling thread; no fd.
 * EOPNOTSUPP: as for AIO.
 */
struct kcr_uring_requests {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__s32 fd;
	__u64 in_flight;	/* out */
	__u32 nr_registered;	/* out: descriptors that threads have registered (RING_FDS) */
	__u32 pad;
};

#define KCR_URING_IN_USE	(1 << 0)	/* programs run: what comes and goes does not count */
#define KCR_URING_NAME		32

/*
 * An io_uring, of which the caller has the descriptor `fd`.  `like`: -1, or another one, made
 * with the same flags and never used: differs[] gets the name of the first member of the
 * kernel's structure that tells `fd` from it by more than how far it has got; "": none.
 * EBADF: not an io_uring; EOPNOTSUPP: as for AIO.
 */
struct kcr_uring {
	__u32 size;
	__u32 flags;		/* KCR_URING_* */
	__s32 fd;
	__s32 like;
	__u32 setup_flags;	/* out: IORING_SETUP_* */
	__u32 sq_entries;	/* out */
	__u32 cq_entries;	/* out */
	__u32 sq_head;		/* out: the kernel's own */
	__u32 cq_tail;		/* out: the kernel's own */
	__s32 submitter;	/* out: the only thread that may submit; 0: any */
	char differs[KCR_URING_NAME];	/* out */
};

#endif /* _UAPI_LINUX_KCR_ASYNC_H */
