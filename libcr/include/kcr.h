/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What libcr offers beyond the interface of BLCR: memory that need not be
 * saved, names for regions, a record of the program's own in its context
 * files, and the question whether it was restarted.
 *
 * None of these calls needs cr_init(), a callback or the kernel module.  All
 * may be called by any thread, in callbacks of thread context too; none is
 * async-signal-safe.  What they set belongs to the process: a child of fork(2)
 * begins with a copy, a restarted process has what was saved, exec(2) forgets
 * it.  They return -1 and set errno on failure; ENOMEM: there is no room for
 * the record (or no memfd_create(2)).
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

#define KCR_MAX_RANGES		1024	/* excluded, after those that touch are joined */
#define KCR_MAX_REGIONS		256
#define KCR_MAX_NAME		63	/* bytes of a region's name or a key */
#define KCR_MAX_VALUES		65536	/* bytes of all values, with 68 more for each */

/* ---- memory that is not saved ------------------------------------------------------ */

/*
 * Leaves the pages of 4096 bytes that lie wholly in [start, start + length) out
 * of context files: in a restarted process they hold zeros.  Concerns private
 * memory; what is shared (MAP_SHARED, System V) is saved all the same.  The
 * range need not be mapped yet, and stays excluded when something else is
 * mapped there: include it before it is freed.  Huge pages (hugetlb) are left
 * out if they lie in it as a whole.
 * 0; EINVAL (beyond the end of memory), ENOSPC (KCR_MAX_RANGES are there).
 */
int kcr_exclude(const void *start, size_t length);

/*
 * Takes that back for every page that [start, start + length) touches; what was
 * never excluded does no harm.  Errors as above: a range may be cut in two.
 */
int kcr_include(const void *start, size_t length);

/* ---- regions ----------------------------------------------------------------------- */

/*
 * Names a range of memory (bytes) for the readers of context files: cr_info(1)
 * shows it.  A name is there once: another range takes its place; length 0
 * takes it away.
 * 0; EINVAL (range; name empty or longer than KCR_MAX_NAME), ENOENT (length 0,
 * and no such name), ENOSPC (KCR_MAX_REGIONS are there).
 */
int kcr_name_region(const char *name, const void *start, size_t length);

/* ---- values of the program's own ------------------------------------------------------ */

/*
 * Saves `length` bytes at `value` as `key` in every context file from now on;
 * cr_info(1) shows them.  A value with the same key is replaced; value NULL
 * takes it away.  All together are bounded by KCR_MAX_VALUES.
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
 * How often has this process been restarted: 0: never; the number counts along
 * the line of context files that led to it.  *when: the time of the last
 * restart (CLOCK_REALTIME).  source: room for `size` bytes, the absolute path
 * of its context file; "": it came through a pipe or the like.  Both may be
 * NULL; both are left alone if the result is 0.
 * -1 with ERANGE: the path with its NUL has more than `size` bytes.
 */
int kcr_restarted(struct timespec *when, char *source, size_t size);

/* ---- leaving a process out ---------------------------------------------------------------- */

/*
 * From now on every checkpoint leaves out the calling process and what it forks
 * (until that calls exec(2)): as if a callback, registered before all others,
 * said CR_CHECKPOINT_OMIT.  The calling thread has called cr_init() afterwards.
 * What cr_run(1) --omit does for a whole program.
 * 0; -1 with what cr_init() or cr_register_callback() fail with.
 */
int kcr_omit(void);

#ifdef __cplusplus
}
#endif

#endif /* KCR_H */
