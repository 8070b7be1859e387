// SPDX-License-Identifier: GPL-2.0
/* Fields of status and stat.  See status.h. */
#include "proc/status.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"

#define STAT_SIZE	1024
#define STAT_PARENT	4

const char *status_value(const char *status, const char *key)
{
	size_t length = strlen(key);
	const char *line = status;

	while (line) {
		if (!strncmp(line, key, length) && line[length] == ':') {
			line += length + 1;
			return line + strspn(line, "\t ");
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return NULL;
}

uint64_t status_number(const char *status, const char *key, int base, uint64_t otherwise)
{
	const char *value = status_value(status, key);

	return value ? strtoull(value, NULL, base) : otherwise;
}

int64_t stat_number(const char *stat, int field)
{
	const char *at = strrchr(stat, ')');

	for (int i = 2; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at, NULL, 10) : 0;
}

pid_t stat_parent(pid_t pid)
{
	char stat[STAT_SIZE];

	return proc_read(pid, "stat", stat, sizeof(stat)) > 0 ? stat_number(stat, STAT_PARENT) : 0;
}

bool stat_lives(pid_t pid)
{
	char stat[STAT_SIZE];
	const char *state;

	if (proc_read(pid, "stat", stat, sizeof(stat)) <= 0)
		return false;
	state = strrchr(stat, ')');
	return state && state[1] && state[2] != 'Z' && state[2] != 'X';
}
