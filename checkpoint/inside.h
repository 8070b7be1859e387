/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs in containers, saved from outside: a child enters the program's namespaces, where
 * its files, PIDs and sockets have the names that it knows, and saves it there.
 */
#ifndef KCR_CHECKPOINT_INSIDE_H
#define KCR_CHECKPOINT_INSIDE_H

#include "checkpoint/checkpoint.h"

/*
 * Calls `run` (checkpoint_run() or its like): in this process if the target is in its
 * namespaces, else in a child in those of the target.  The destination is of the caller's
 * mount namespace in both cases.  To be called once, by a process with one thread.  0, or
 * -errno with a message: -EPERM, the caller may not enter the container.
 */
int inside_run(const struct checkpoint_options *options, struct checkpoint_result *result,
	       int (*run)(const struct checkpoint_options *options,
			  struct checkpoint_result *result));

/* The same for checkpoint_examine(). */
int inside_examine(const struct checkpoint_options *options, bool stop,
		   void (*obstacle)(void *arg, const char *message), void *arg,
		   struct checkpoint_estimate *out);

#endif /* KCR_CHECKPOINT_INSIDE_H */
