// SPDX-License-Identifier: GPL-2.0
/*
 * Rules for replaced files: parsing.  See redirect.h.
 */
#include "redirect.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "report/report.h"

static struct redirect rules[REDIRECT_MAX];
static size_t nr_rules;

/* A decimal number that `end` follows; *text advances behind that.  -1: there is none. */
static int take_number(const char **text, char end)
{
	char *stop;
	long n;

	if (!isdigit((unsigned char)**text))
		return -1;
	n = strtol(*text, &stop, 10);
	if (*stop != end || n > INT_MAX)
		return -1;
	*text = stop + 1;
	return (int)n;
}

int redirect_add(const char *rule)
{
	struct redirect *r = &rules[nr_rules];
	const char *p = rule;
	int pid;

	if (nr_rules == REDIRECT_MAX)
		return report_fail(-EINVAL, "--redirect can be given %d times at most",
				   REDIRECT_MAX);
	pid = take_number(&p, ':');
	r->pid = pid < 0 ? 0 : pid;
	r->fd = take_number(&p, '=');
	if (!pid || r->fd < 0 || !*p)
		return report_fail(-EINVAL, "--redirect needs FD=FILE or PID:FD=FILE, not \"%s\"",
				   rule);
	r->file = p;
	nr_rules++;
	return 0;
}

struct redirect *redirect_rules(size_t *count)
{
	*count = nr_rules;
	return rules;
}
