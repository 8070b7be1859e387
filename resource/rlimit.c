// SPDX-License-Identifier: GPL-2.0
/*
 * Resource limits.  Raised as the restart needs it, before any privilege
 * is dropped; lowered to the saved values in the very last step.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "proc/proc.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/family.h"

#define NR_LIMITS	16

static const char *const names[NR_LIMITS] = {
	"cpu time", "file size", "data size", "stack size", "core size", "resident set",
	"processes", "open files", "locked memory", "address space", "file locks",
	"queued signals", "message queue size", "nice priority", "real-time priority",
	"real-time run time",
};

#define NAME_WIDTH	26	/* of the padded name in a line of /proc/PID/limits */

static uint64_t limit_number(char **at)
{
	*at += strspn(*at, " ");
	if (strncmp(*at, "unlimited", 9))
		return strtoull(*at, at, 10);
	*at += 9;
	return RLIM_INFINITY;
}

/* From the file, whose lines are in the order of RLIMIT_*: prlimit(2) needs more rights. */
static int rlimit_save(const struct process_probe *probe, Kcr__Process *p)
{
	char text[4096], *line = text;
	ssize_t length = proc_read(probe->thread, "limits", text, sizeof(text));

	if (length < 0)
		return report_errno(length, "process %d: cannot read its limits", probe->pid);
	p->limit = calloc(NR_LIMITS, sizeof(*p->limit));
	if (!p->limit)
		return report_errno(-ENOMEM, "process %d: limits", probe->pid);
	for (int i = 0; i < NR_LIMITS; i++) {
		Kcr__Limit *limit;
		char *at;

		line = strchr(line, '\n');
		if (!line || strlen(++line) <= NAME_WIDTH)
			return report_fail(-EIO, "process %d: cannot read its limits", probe->pid);
		at = line + NAME_WIDTH;
		limit = malloc(sizeof(*limit));
		if (!limit)
			return report_errno(-ENOMEM, "process %d: limits", probe->pid);
		kcr__limit__init(limit);
		limit->resource = i;
		limit->soft = limit_number(&at);
		limit->hard = limit_number(&at);
		p->limit[i] = limit;
		p->n_limit = i + 1;
	}
	return 0;
}

static rlim_t larger(rlim_t a, rlim_t b)
{
	return a > b ? a : b;
}

static rlim_t smaller(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

static int raise_limits(const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_limit; i++) {
		const Kcr__Limit *saved = p->limit[i];
		struct rlimit limit, wanted;

		if (saved->resource >= NR_LIMITS || saved->soft > saved->hard)
			return report_fail(-EINVAL, "process %d: the context file has a bad limit",
					   p->pid);
		if (getrlimit(saved->resource, &limit) < 0)
			return report_errno(-errno, "limit of %s", names[saved->resource]);
		wanted.rlim_max = larger(limit.rlim_max, saved->hard);
		wanted.rlim_cur = larger(limit.rlim_cur, saved->soft);
		if (setrlimit(saved->resource, &wanted) == 0)
			continue;
		report_warn("process %d: its limit of %s cannot be raised: it stays lower than it was",
			    p->pid, names[saved->resource]);
		wanted.rlim_max = limit.rlim_max;
		wanted.rlim_cur = smaller(wanted.rlim_cur, limit.rlim_max);
		setrlimit(saved->resource, &wanted);
	}
	return 0;
}

/* Also to those of processes in its memory, which it creates before its own become lower. */
static int rlimit_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	const struct context *c = r->context;
	int err = raise_limits(p);

	for (size_t i = 0; i < c->nr_processes && !err; i++)
		if (process_is_sharer(c->process[i]) && c->process[i]->mm_id == p->mm_id)
			err = raise_limits(c->process[i]);
	return err;
}

static int rlimit_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	(void)r;
	for (size_t i = 0; i < p->n_limit; i++) {
		const Kcr__Limit *saved = p->limit[i];
		struct rlimit limit, wanted;

		if (getrlimit(saved->resource, &limit) < 0)
			return report_errno(-errno, "limit of %s", names[saved->resource]);
		wanted.rlim_max = smaller(limit.rlim_max, saved->hard);
		wanted.rlim_cur = smaller(wanted.rlim_max, saved->soft);
		if (wanted.rlim_max == limit.rlim_max && wanted.rlim_cur == limit.rlim_cur)
			continue;
		script_call(s, "setrlimit", SYS_prlimit64, 0, saved->resource,
			    script_data(s, &wanted, sizeof(wanted)), 0, 0, 0);
	}
	return 0;
}

const struct attribute attribute_rlimit = {
	.name = "limits",
	.save = rlimit_save,
	.rebuild = rlimit_rebuild,
	.script_last = rlimit_script_last,
};
