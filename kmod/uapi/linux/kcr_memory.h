/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/kcr and the memory of a job's processes: address space, VMAs, the files
 * they map, which pages are worth saving or were written to, and their bytes.
 * The rules for structures are in kcr.h, which includes this file.  See kcr(4).
 */
#ifndef _UAPI_LINUX_KCR_MEMORY_H
#define _UAPI_LINUX_KCR_MEMORY_H

#include <linux/types.h>

#define KCR_AUXV_WORDS		64

struct kcr_mm {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 nr_vmas;		/* out */
	__u64 start_code, end_code, start_data, end_data;
	__u64 start_brk, brk, start_stack;
	__u64 arg_start, arg_end, env_start, env_end;
	__u64 vdso;		/* out: 0: none */
	__u64 auxv[KCR_AUXV_WORDS];
	__u32 keys;		/* out: protection keys allocated, a bit each; 0: none here */
	__u32 execute_key;	/* out: the kernel's, not in keys, for execute-only memory; 0: none */
};

/* Flags of a VMA: the kernel's VM_* values differ between versions, these do not. */
#define KCR_VMA_READ		(1ULL << 0)
#define KCR_VMA_WRITE		(1ULL << 1)
#define KCR_VMA_EXEC		(1ULL << 2)
#define KCR_VMA_SHARED		(1ULL << 3)	/* MAP_SHARED */
#define KCR_VMA_MAYWRITE	(1ULL << 4)
#define KCR_VMA_GROWSDOWN	(1ULL << 5)
#define KCR_VMA_NORESERVE	(1ULL << 6)
#define KCR_VMA_LOCKED		(1ULL << 7)
#define KCR_VMA_LOCKONFAULT	(1ULL << 8)
#define KCR_VMA_DONTFORK	(1ULL << 9)
#define KCR_VMA_WIPEONFORK	(1ULL << 10)
#define KCR_VMA_DONTDUMP	(1ULL << 11)
#define KCR_VMA_MERGEABLE	(1ULL << 12)
#define KCR_VMA_HUGEPAGE	(1ULL << 13)
#define KCR_VMA_NOHUGEPAGE	(1ULL << 14)
#define KCR_VMA_SEQ_READ	(1ULL << 15)
#define KCR_VMA_RAND_READ	(1ULL << 16)
#define KCR_VMA_HUGETLB		(1ULL << 17)
#define KCR_VMA_IO		(1ULL << 18)	/* VM_IO or VM_PFNMAP: a device */
#define KCR_VMA_UFFD		(1ULL << 19)
#define KCR_VMA_VDSO		(1ULL << 20)
#define KCR_VMA_VVAR		(1ULL << 21)
#define KCR_VMA_SPECIAL		(1ULL << 22)	/* other special mapping, e.g. uprobes */
#define KCR_VMA_SYSV		(1ULL << 23)	/* System V shared memory */
#define KCR_VMA_SHMEM		(1ULL << 24)	/* tmpfs, memfd, shared anonymous */
#define KCR_VMA_SEALED		(1ULL << 25)	/* mseal(2) */
#define KCR_VMA_DROPPABLE	(1ULL << 26)	/* MAP_DROPPABLE */

struct kcr_vma {
	__u64 start;
	__u64 end;
	__u64 flags;		/* KCR_VMA_* */
	__u64 offset;		/* bytes into the file */
	__u64 ino;		/* of the file, 0: none */
	__u32 dev_major;
	__u32 dev_minor;
	__u32 pkey;
	__u32 path;		/* offset into `strings`, 0: none */
	__u32 page_size;	/* HUGETLB: size of its pages; else 4096 */
	__u32 pad;
};

/*
 * `offset` of a mapping without a file says, in bytes, at which address its first
 * page would have been when its pages were first touched: mremap(2) moves pages,
 * not that.
 */
#define KCR_VMAS_ORIGINS	(1 << 0)

/* ENOSPC: count or strings_len return what is needed. */
struct kcr_vmas {
	__u32 size;
	__u32 flags;		/* KCR_VMAS_* */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 vmas;		/* struct kcr_vma[count] */
	__u64 strings;		/* paths, NUL-terminated; byte 0 is unused */
	__u32 strings_len;	/* in: capacity; out: bytes used */
	__u32 pad;
};

#define KCR_POLICY_NODES	1024

/* One that set_mempolicy(2) or mbind(2) has set, as they take it. */
struct kcr_mempolicy {
	__u64 start, end;	/* of a mapping; of a thread: 0 */
	__s32 tid;		/* of a thread; of a mapping: 0 */
	__u32 mode;		/* MPOL_* and MPOL_F_*, of <linux/mempolicy.h> */
	__s32 home_node;	/* set_mempolicy_home_node(2), -1: none */
	__u32 pad;
	__u64 nodes[KCR_POLICY_NODES / 64];
};

/*
 * Lists the memory policies of a process, on machines with several NUMA nodes: of those of its
 * threads, and then of its mappings, that have one.  What others have set of shared memory is not
 * here.  ENOSPC: count returns what is needed.
 */
struct kcr_mempolicies {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 policies;		/* struct kcr_mempolicy[count] */
};

#define KCR_FILE_EXE		(1 << 0)	/* the executable; address is unused */
#define KCR_FILE_SAME		(1 << 1)	/* is it that of fd?  Returns 1 or 0, no descriptor */

/*
 * Returns a new close-on-exec descriptor of the very file mapped at address
 * (as opening /proc/PID/map_files/… would).  pid 0: the caller itself, for shared
 * memory that it may write to.
 * It is open for writing if the mapping is shared and may be writable.
 * Without CAP_CHECKPOINT_RESTORE callers get files that they own or can open by
 * their path, and, read-only, files that they may read but not write to; shared
 * memory (System V, memfd) that they own or with CAP_IPC_OWNER.  EXE: always.
 * ENOENT: no file there.  EACCES: not a file that the caller may have.
 */
struct kcr_mapped_file {
	__u32 size;
	__u32 flags;		/* KCR_FILE_* */
	__s32 pid;
	__s32 fd;		/* SAME: of the caller; else 0 */
	__u64 address;
};

struct kcr_run {
	__u64 address;		/* a multiple of 4096, plus KCR_RUN_* as the result of a SCAN */
	__u64 nr_pages;		/* of 4096 bytes */
};

#define KCR_SCAN_SNAPSHOT	(1 << 0)	/* scan the snapshot */
#define KCR_SCAN_PRIVATE	(1 << 1)	/* private file mapping: copied pages only */
#define KCR_SCAN_ALL		(1 << 3)	/* every page, touched or not (vdso) */
#define KCR_SCAN_KEEP_ZERO	(1 << 4)	/* also pages that hold only zeros */
#define KCR_SCAN_CHANGES	(1 << 5)	/* also say which are unchanged, see TRACK */
#define KCR_SCAN_MARKERS	(1 << 6)	/* also entries without a page, see KCR_RUN_MARKER */

/*
 * CHANGES: nobody has written to these pages since tracking began, and they are
 * anonymous memory; whether they hold only zeros was not looked at.
 */
#define KCR_RUN_UNCHANGED	(1 << 0)
/* MARKERS: no pages, but the kernel remembers something of each address: see /proc/PID/pagemap. */
#define KCR_RUN_MARKER		(1 << 1)

/*
 * Finds the pages worth saving in [start, end), at most max_pages of them and
 * max_runs runs.  The range must be in one VMA.  next < end: there is more.
 * EOPNOTSUPP: memory of memfd_secret(2).
 */
struct kcr_scan {
	__u32 size;
	__u32 flags;		/* KCR_SCAN_* */
	__s32 pid;
	__u32 count;		/* in: max_runs; out: runs found */
	__u64 start;
	__u64 end;
	__u64 max_pages;
	__u64 runs;		/* struct kcr_run[count] */
	__u64 next;		/* out: where to go on */
	__u64 nr_pages;		/* out */
};

#define KCR_TRACK_TEST		(1 << 0)	/* begin nothing: is it tracked since `id`? */

/*
 * Begins to track which pages of a process are written to, as SCAN (CHANGES)
 * says.  Called for a parked process just after a 4 was written to its
 * /proc/PID/clear_refs; `id` names that moment for a later TEST.  Tracking
 * survives the job.  It ends with the program's end or exec, when somebody else
 * clears these bits, and when it begins again for the same memory; a child does
 * not inherit it.
 * TEST: 0 it has been tracked since `id`, without a gap; ENODATA it has not.
 * EOPNOTSUPP: the kernel has no soft-dirty bits, or the process no vdso; EBUSY:
 * a process that is not parked uses the same memory; EINVAL: id 0 is no moment.
 */
struct kcr_track {
	__u32 size;
	__u32 flags;		/* KCR_TRACK_* */
	__s32 pid;
	__u32 pad;
	__u64 id;
};

#define KCR_PAGES_SNAPSHOT	(1 << 0)	/* of the snapshot */
#define KCR_PAGES_NO_SUM	(1 << 1)	/* READ, STORE: no `sum` (KCR_FEATURE_NO_SUM) */

/*
 * Copies pages.  WRITE: memory → file `fd`; READ: memory → `buffer`;
 * FILL: file → memory; STORE: buffer → memory (these two: processes that
 * entered a restart; with KCR_FEATURE_READ_BACK, READ does those, too).
 * Files are used at their current offset, which advances.
 * `sum` is the XXH64 (seed 0) of all bytes in order, unless NO_SUM says that it is not
 * wanted.  After an error `bytes` says how far it got.
 * ENODATA: the file ended early; EFAULT: a page of a run is not mapped (any
 * more); EINTR: a signal interrupted a wait for a pipe or a socket, or killed.
 */
struct kcr_pages {
	__u32 size;
	__u32 flags;		/* KCR_PAGES_* */
	__s32 pid;
	__s32 fd;
	__u64 runs;		/* struct kcr_run[count] */
	__u32 count;
	__u32 pad;
	__u64 buffer;
	__u64 bytes;		/* out: copied */
	__u64 sum;		/* out */
};

struct kcr_userfault_range {
	__u64 start, end;
	__u32 mode;		/* UFFDIO_REGISTER_MODE_* */
	__u32 pad;
};

#define KCR_USERFAULT_BEGUN	(1U << 31)	/* UFFDIO_API was called */

/*
 * A userfaultfd, of which the caller has the descriptor `fd`, and the mappings of a parked
 * process whose faults it gets, by address.  pid 0: only the userfaultfd.
 * EBADF: not a userfaultfd; ENOSPC: count returns what is needed; EOPNOTSUPP: as for AIO, or
 * before Linux 5.16.
 */
struct kcr_userfault {
	__u32 size;
	__u32 flags;		/* 0 */
	__s32 pid;
	__s32 fd;
	__u32 made_with;	/* out: flags of userfaultfd(2) */
	__u32 features;		/* out: UFFD_FEATURE_* that UFFDIO_API was called with; _BEGUN */
	__u32 own;		/* out: 1: it is the memory of this process that it serves */
	__u32 count;		/* in: capacity; out: how many there are */
	__u64 ranges;		/* struct kcr_userfault_range[count] */
};

#endif /* _UAPI_LINUX_KCR_MEMORY_H */
