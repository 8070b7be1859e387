/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What libcr offers beyond the BLCR interface: memory that need not be
 * saved, names for regions, the program's own values in its context
 * files, and whether it was restarted.
 *
 * None of these calls needs cr_init(), a callback or the kernel module.  All
 * may be called by any thread, in callbacks of thread context too; none is
 * async-signal-safe.  What they set belongs to the process: a child of fork(2)
 * begins with a copy, a restarted process has what was saved, exec(2) discards
 * it.  They return -1 and set errno on failure; ENOMEM: no memory for the
 * record (or no memfd_create(2)).
 *
 * Link with -lcr (pkg-config libcr).  See kcr_exclude(3).
 */
#ifndef KCR_H
#define KCR_H

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KCR_MAX_RANGES		1024	/* excluded, adjacent ones joined */
#define KCR_MAX_REGIONS		256
#define KCR_MAX_NAME		63	/* bytes of a region's name or a key */
#define KCR_MAX_VALUES		65536	/* bytes of all values, with 68 more for each */

/* ---- memory that is not saved ------------------------------------------------------ */

/*
 * Leaves the pages of 4096 bytes that lie wholly in [start, start + length) out
 * of context files: in a restarted process they hold zeros.  Applies to private
 * memory; shared memory (MAP_SHARED, System V) is saved all the same.  The
 * range need not be mapped yet, and stays excluded when something else is
 * mapped there: include it before it is freed.  Huge pages (hugetlb) are left
 * out if they lie wholly in the range.
 * 0; EINVAL (wraps around the address space), ENOSPC (KCR_MAX_RANGES exist).
 */
int kcr_exclude(const void *start, size_t length);

/*
 * Undoes that for every page that [start, start + length) touches; parts that
 * were not excluded are no error.  Errors as above: a range may be split in two.
 */
int kcr_include(const void *start, size_t length);

/* ---- regions ----------------------------------------------------------------------- */

/*
 * Names a range of memory (bytes) for the readers of context files: cr_info(1)
 * shows it.  A name is unique: another range replaces the first; length 0
 * removes it.
 * 0; EINVAL (range; name empty or longer than KCR_MAX_NAME), ENOENT (length 0,
 * and no such name), ENOSPC (KCR_MAX_REGIONS exist).
 */
int kcr_name_region(const char *name, const void *start, size_t length);

/* ---- the program's own values --------------------------------------------------------- */

/*
 * Saves `length` bytes at `value` as `key` in every context file from now on;
 * cr_info(1) shows them.  A value with the same key is replaced; value NULL
 * removes it.  Their total is limited by KCR_MAX_VALUES.
 * 0; EINVAL (key empty or longer than KCR_MAX_NAME), ENOENT (value NULL, and
 * no such key), ENOSPC.
 */
int kcr_set_value(const char *key, const void *value, size_t length);

/*
 * Copies at most `size` bytes of a value to `buffer` (NULL with size 0).
 * The length of the value, which may be more; -1 with ENOENT or EINVAL (key).
 */
ssize_t kcr_get_value(const char *key, void *buffer, size_t size);

/* ---- restarts -------------------------------------------------------------------------- */

/*
 * How often this process has been restarted (0: never), counted along the
 * chain of context files that led to it.  *when: the time of the last
 * restart (CLOCK_REALTIME).  source: a buffer of `size` bytes for the absolute
 * path of its context file; "": it came through a pipe or the like.  Both may
 * be NULL; both are left alone if the result is 0.
 * -1 with ERANGE: the path with its NUL has more than `size` bytes.
 */
int kcr_restarted(struct timespec *when, char *source, size_t size);

/* ---- leaving a process out ---------------------------------------------------------------- */

/*
 * From now on every checkpoint leaves out the calling process and what it forks
 * (until that calls exec(2)): as if a callback, registered before all others,
 * passed CR_CHECKPOINT_OMIT.  Implies cr_init() for the calling thread.
 * cr_run(1) --omit does this for a whole program.
 * 0; -1 with the errors of cr_init() or cr_register_callback().
 */
int kcr_omit(void);

#ifdef __cplusplus
}
#endif

#endif /* KCR_H */
