// SPDX-License-Identifier: GPL-2.0
/* From the PID in an image to the PID that the process has now. */
#include "resource/file.h"

#include <time.h>
#include <unistd.h>

static const int32_t *find_pid(const struct rebuild *r, pid_t pid)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		if (r->context->process[i]->pid == pid)
			return r->new_pid ? &r->new_pid[i] : &r->context->process[i]->pid;
	return NULL;
}

pid_t rebuild_pid(const struct rebuild *r, pid_t pid)
{
	const int32_t *new = find_pid(r, pid);

	if (!new)
		return 0;
	return r->restore_ids ? pid : *(volatile const int32_t *)new;
}

pid_t rebuild_group(const struct rebuild *r, pid_t group)
{
	pid_t now = 0;

	for (size_t i = 0; now <= 0 && i < r->context->nr_processes; i++)
		if (r->context->process[i]->pgid == group && r->new_pid[i] > 0)
			now = getpgid(r->new_pid[i]);
	return now > 0 ? now : rebuild_pid(r, group);
}

pid_t rebuild_wait_pid(const struct rebuild *r, pid_t pid)
{
	const volatile int32_t *new = find_pid(r, pid);
	const struct timespec pause = { .tv_nsec = 1000000 };

	if (!new)
		return 0;
	for (int i = 0; i < 10000 && !*new; i++)
		nanosleep(&pause, NULL);
	return *new;
}
