// SPDX-License-Identifier: GPL-2.0
/*
 * Rules for moved paths: parsing and applying.  See relocate.h.
 */
#include "relocate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "resource/identity.h"

static struct rule {
	char *from;
	char *to;
} rules[RELOCATE_MAX];
static size_t nr_rules;

/* Copies up to an unescaped `end`, removing the escapes; *text advances behind it. */
static char *take_part(const char **text, char end)
{
	const char *p = *text;
	char *part = malloc(strlen(p) + 1);
	size_t n = 0;

	if (!part)
		return NULL;
	while (*p && *p != end) {
		if (*p == '\\' && (p[1] == '=' || p[1] == '\\'))
			p++;
		part[n++] = *p++;
	}
	/* "/a/" and "/a" name the same place; "/" stays. */
	while (n > 1 && part[n - 1] == '/')
		n--;
	part[n] = '\0';
	*text = p;
	return part;
}

int relocate_add(const char *rule)
{
	const char *p = rule;
	char *from, *to = NULL, *real;

	if (nr_rules == RELOCATE_MAX)
		return report_fail(-EINVAL, "--relocate can be given %d times at most",
				   RELOCATE_MAX);
	from = take_part(&p, '=');
	if (!from)
		return report_errno(-ENOMEM, "--relocate");
	if (*p == '=') {
		p++;
		to = take_part(&p, '\0');
		if (!to) {
			free(from);
			return report_errno(-ENOMEM, "--relocate");
		}
	}
	if (!to || from[0] != '/' || to[0] != '/') {
		free(from);
		free(to);
		return report_fail(-EINVAL,
				   "--relocate needs OLD=NEW with two absolute paths, not \"%s\"",
				   rule);
	}
	/* Links in the caller's path are followed; in saved paths root follows none. */
	real = identity_is_privileged() ? realpath(to, NULL) : NULL;
	if (real) {
		free(to);
		to = real;
	}
	rules[nr_rules++] = (struct rule){ from, to };
	return 0;
}

static bool matches(const char *path, const char *from)
{
	size_t n = strlen(from);

	if (n == 1)
		return path[0] == '/';
	return !strncmp(path, from, n) && (path[n] == '/' || path[n] == '\0');
}

const char *relocate_path(const char *path)
{
	for (size_t i = 0; i < nr_rules; i++) {
		const char *from = rules[i].from, *to = rules[i].to;
		const char *rest;
		char *result;

		if (!matches(path, from))
			continue;
		rest = path + (from[1] ? strlen(from) : 0);
		if (!to[1])
			to = *rest == '/' ? "" : "/";
		if (asprintf(&result, "%s%s", to, rest) < 0)
			return path;
		return result;
	}
	return path;
}
