// SPDX-License-Identifier: GPL-2.0
/*
 * Files of the kernel's own file systems in which each open file has a state that is set by
 * writing: another one, opened at the restart by the same path, does not have it.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

#define TRIGGER		"its trigger of pressure stall information (PSI)"

/*
 * A second trigger is refused before it is looked at (since 5.16.3).  poll(2) would tell as well,
 * but takes an event away from the program.
 */
static bool has_trigger(int fd)
{
	return write(fd, "?", 1) < 0 && errno == EBUSY;
}

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

static const struct state {
	long magic;
	const char *end;		/* of the path */
	bool (*exists)(int fd);		/* NULL: nothing tells */
	const char *refused;		/* NULL: only a warning, of what is lost */
	const char *lost;
} states[] = {
	{ PROC_SUPER_MAGIC, "/pressure/cpu", has_trigger, NULL, TRIGGER },
	{ PROC_SUPER_MAGIC, "/pressure/io", has_trigger, NULL, TRIGGER },
	{ PROC_SUPER_MAGIC, "/pressure/irq", has_trigger, NULL, TRIGGER },
	{ PROC_SUPER_MAGIC, "/pressure/memory", has_trigger, NULL, TRIGGER },
	{ CGROUP2_SUPER_MAGIC, ".pressure", has_trigger, NULL, TRIGGER },
	{ CGROUP2_SUPER_MAGIC, ".peak", NULL, NULL, "where it has begun to count anew, if anywhere" },
	{ CGROUP_SUPER_MAGIC, "/cgroup.event_control", NULL, NULL,
	  "an event that it has asked for there, if any" },
	{ TRACEFS_MAGIC, "/user_events_data", NULL,
	  "a file with events of the program's own (user_events)", NULL },
};

const char *file_state_refusal(const struct file_table *t, const struct file_probe *probe)
{
	if ((probe->flags & O_ACCMODE) == O_RDONLY || probe->flags & O_PATH)
		return NULL;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		const struct state *s = &states[i];

		if ((long)probe->fs.f_type != s->magic || !ends_in(probe->link, s->end) ||
		    (s->exists && !s->exists(probe->fd)))
			continue;
		if (s->lost && !file_table_is_dry(t))
			report_warn("process %d has %s open for writing: %s, is lost at a restart",
				    probe->pid, probe->link, s->lost);
		return s->refused;
	}
	return NULL;
}
