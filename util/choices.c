// SPDX-License-Identifier: GPL-2.0
/* See choices.h. */
#include "util/choices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/precopy.h"
#include "proc/bandwidth.h"
#include "report/report.h"

long choice_number(const char *text, long least)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	return errno || end == text || *end || n < least || n > 0x7fffffff ? -1 : n;
}

/* The level behind the colon. */
static int parse_level(const char *text, struct compression *how)
{
	int least, most;
	char *end;
	long n;

	compression_levels(how->kind, &least, &most);
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most || !n)
		return report_fail(-EINVAL, "--compress=%s takes a level from 1 to %d, or from -1 to %d "
				   "(faster), not \"%s\"", compression_names[how->kind], most, least, text);
	how->level = (int)n;
	return 0;
}

int choice_compression(const char *value, struct compression *how)
{
	size_t length = strcspn(value, ":");

	*how = (struct compression){ .adaptive = !strcmp(value, "auto") };
	if (how->adaptive)
		return 0;
	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++) {
		if (strlen(compression_names[i]) != length || strncmp(compression_names[i], value, length))
			continue;
		how->kind = i;
		if (!value[length])
			return 0;
		if (i != CONTEXT_RAW)
			return parse_level(value + length + 1, how);
	}
	return report_fail(-EINVAL, "--compress takes auto, lz4, zstd, either of them with a level such "
			   "as zstd:3, or none, not \"%s\"", value);
}

char *choice_compression_option(const struct compression *how)
{
	char *text = NULL;
	int n;

	if (how->adaptive || !how->level)
		n = asprintf(&text, "--compress=%s", how->adaptive ? "auto" : compression_names[how->kind]);
	else
		n = asprintf(&text, "--compress=%s:%d", compression_names[how->kind], how->level);
	return n < 0 ? NULL : text;
}

int choice_bandwidth(const char *value, uint64_t *rate)
{
	*rate = bandwidth_parse(value);
	return *rate ? 0 : report_fail(-EINVAL, "--bandwidth takes bytes per second, from 1K on (800K, 100M, "
				       "1.5G), not \"%s\"", value);
}

int choice_changes(const char *value, struct checkpoint_options *o)
{
	static const char *const names[] = {
		[CHECKPOINT_AUTO] = "auto", [CHECKPOINT_DIRTY] = "dirty", [CHECKPOINT_HASH] = "hash",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(value, names[i])) {
			o->changes = i;
			return 0;
		}
	}
	return report_fail(-EINVAL, "--changes takes auto, dirty or hash, not \"%s\"", value);
}

int choice_rounds(const char *option, const char *value, struct checkpoint_options *o)
{
	long rounds = value ? choice_number(value, 1) : (long)PRECOPY_ROUNDS;

	if (rounds < 0 || rounds > (long)PRECOPY_MAX_ROUNDS)
		return report_fail(-EINVAL, "%s takes a number from 1 to %u, not \"%s\"", option,
				   PRECOPY_MAX_ROUNDS, value);
	o->precopy = (unsigned int)rounds;
	return 0;
}
