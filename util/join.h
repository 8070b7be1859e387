/* SPDX-License-Identifier: GPL-2.0 */
/* cr_restart --inside: the restart takes place in the namespaces of a process. */
#ifndef KCR_UTIL_JOIN_H
#define KCR_UTIL_JOIN_H

#include <sys/types.h>

#include "image/context.h"

struct join {
	pid_t pid;			/* of a process in the container */
	const struct context *context;
};

/*
 * Goes on in a child in the container, of a session of its own, while this process stands
 * for it and ends as it ends.  For restart_options.join; arg: a struct join.  0 in the
 * child, or -errno with a message.
 */
int join_container(void *arg);

#endif /* KCR_UTIL_JOIN_H */
