// SPDX-License-Identifier: GPL-2.0
/* See choices.h. */
#include "util/choices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/precopy.h"
#include "report/report.h"

long choice_number(const char *text, long least)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	return errno || end == text || *end || n < least || n > 0x7fffffff ? -1 : n;
}

int choice_compression(const char *value, struct checkpoint_options *o)
{
	if (!strcmp(value, "lz4"))
		o->compression = CONTEXT_LZ4;
	else if (!strcmp(value, "zstd"))
		o->compression = CONTEXT_ZSTD;
	else if (!strcmp(value, "none"))
		o->compression = CONTEXT_RAW;
	else
		return report_fail(-EINVAL, "--compress takes lz4, zstd or none, not \"%s\"", value);
	return 0;
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
