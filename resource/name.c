// SPDX-License-Identifier: GPL-2.0
/*
 * Names of threads (comm).  Those in /proc/PID/status have white space and
 * backslashes escaped; that of the leader is taken from the stat text, where
 * it is not escaped.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "proc/status.h"
#include "rebuild/script.h"
#include "report/report.h"

#define NAME_SIZE	16	/* with its NUL */

static void copy_name(char *name, const char *from, size_t length)
{
	if (length > NAME_SIZE - 1)
		length = NAME_SIZE - 1;
	memcpy(name, from, length);
	name[length] = '\0';
}

static void leader_name(const char *stat, char *name)
{
	const char *start = strchr(stat, '('), *end = strrchr(stat, ')');

	name[0] = '\0';
	if (start && end > start)
		copy_name(name, start + 1, end - start - 1);
}

static void thread_name(const char *status, char *name)
{
	const char *from = status_value(status, "Name");
	size_t length = 0;

	/* status_value() skips leading blanks, which a name may have */
	while (from && from > status && from[-1] == ' ')
		from--;
	while (from && *from && *from != '\n' && length < NAME_SIZE - 1) {
		if (from[0] == '\\' && (from[1] == 'n' || from[1] == '\\')) {
			name[length++] = from[1] == 'n' ? '\n' : '\\';
			from += 2;
		} else {
			name[length++] = *from++;
		}
	}
	name[length] = '\0';
}

static int name_save(const struct process_probe *probe, Kcr__Process *p)
{
	char name[NAME_SIZE];

	if (p->name)
		return 0;
	leader_name(probe->stat, name);
	p->name = strdup(name);
	return p->name ? 0 : report_errno(-ENOMEM, "process %d: name", probe->pid);
}

static int name_save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	char name[NAME_SIZE];

	if (t->name)
		return 0;
	if (t->tid == probe->pid) {
		leader_name(probe->stat, name);
	} else {
		const char *status = probe_thread_status(probe, t->tid);

		if (!status)
			return -EIO;
		thread_name(status, name);
	}
	t->name = strdup(name);
	return t->name ? 0 : report_errno(-ENOMEM, "thread %d: name", t->tid);
}

static int name_script_thread(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
			      struct script *s)
{
	char name[NAME_SIZE] = "";

	(void)r;
	(void)p;
	if (!t->name)
		return 0;
	copy_name(name, t->name, strlen(t->name));
	script_call(s, "prctl(PR_SET_NAME)", SYS_prctl, PR_SET_NAME,
		    script_data(s, name, sizeof(name)), 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_name = {
	.name = "name",
	.save = name_save,
	.save_thread = name_save_thread,
	.script_thread = name_script_thread,
};
