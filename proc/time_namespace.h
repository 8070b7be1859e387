/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time namespaces (time_namespaces(7)): each shows CLOCK_MONOTONIC and CLOCK_BOOTTIME at an
 * offset of its own from those of the machine, wherever it was made.
 */
#ifndef KCR_PROC_TIME_NAMESPACE_H
#define KCR_PROC_TIME_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct time_offsets {
	int64_t monotonic_ns, boottime_ns;
};

/*
 * The namespace that a process is in: *id is different for each (0: this kernel has none).
 * -ESRCH: it has ended; -EACCES.
 */
int time_namespace_id(pid_t pid, uint64_t *id);
/* Does it make its children in another one? */
bool time_namespace_is_left(pid_t pid);

/*
 * What the clocks of a process are ahead of the machine's.  -EINVAL: that is not known, as
 * it makes its children in another namespace; -ESRCH, -EACCES as above.
 */
int time_namespace_offsets(pid_t pid, struct time_offsets *out);

/*
 * Makes a namespace with these offsets, which nobody is in: a file descriptor for setns(2),
 * close-on-exec, or -errno; -EPERM: that takes CAP_SYS_ADMIN and CAP_SYS_TIME, -EINVAL: this
 * kernel has none, -ERANGE: the clocks would be negative, or centuries ahead.
 */
int time_namespace_make(const struct time_offsets *offsets);

#endif /* KCR_PROC_TIME_NAMESPACE_H */
