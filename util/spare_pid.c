// SPDX-License-Identifier: GPL-2.0
/* See spare_pid.h.  Used where process IDs are those of a container, or of a new namespace. */
#include "util/spare_pid.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "device/device.h"

#define MAX_TRIES	64

pid_t spare_pid_fork(const struct context *c)
{
	pid_t last = 0, child = -EEXIST;

	for (size_t i = 0; i < c->nr_processes; i++)
		for (size_t t = 0; t < c->process[i]->n_thread; t++)
			if (c->process[i]->thread[t]->tid > last)
				last = c->process[i]->thread[t]->tid;
	for (int tries = 1; tries <= MAX_TRIES && child == -EEXIST; tries++)
		child = device_fork(-1, false, last + tries, 0, SIGCHLD);
	if (child >= 0)
		return child;
	child = fork();
	return child < 0 ? -errno : child;
}
