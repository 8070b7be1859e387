// SPDX-License-Identifier: GPL-2.0
#include "proc/cpuset.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"

#define CGROUPS	"/sys/fs/cgroup"

/* Reads a list such as "0-3,8" into the mask; false: there is none. */
static bool read_list(const char *path, uint8_t mask[CPUSET_BYTES])
{
	FILE *f = fopen(path, "re");
	unsigned int first, last;
	bool any = false;
	int next = ',';

	memset(mask, 0, CPUSET_BYTES);
	while (f && next == ',' && fscanf(f, "%u", &first) == 1) {
		last = first;
		next = fgetc(f);
		if (next == '-') {
			if (fscanf(f, "%u", &last) != 1)
				break;
			next = fgetc(f);
		}
		for (unsigned int cpu = first; cpu <= last && cpu < 8 * CPUSET_BYTES; cpu++)
			mask[cpu / 8] |= 1 << cpu % 8;
		any = true;
	}
	if (f)
		fclose(f);
	return any;
}

const uint8_t *cpuset_online(void)
{
	static uint8_t mask[CPUSET_BYTES];
	static bool known;

	if (!known)
		read_list("/sys/devices/system/cpu/online", mask);
	known = true;
	return mask;
}

/* Its folder in a line of /proc/PID/cgroup: "7:cpuset:/job" or, of version 2, "0::/job". */
static bool find_group(const char *text, const char *controller, char path[PATH_MAX])
{
	const char *colon;

	for (; text && *text; text = strchr(text, '\n'), text += !!text) {
		colon = strchr(text, ':');
		if (!colon || strncmp(colon + 1, controller, strlen(controller)))
			continue;
		snprintf(path, PATH_MAX, "%.*s", (int)strcspn(colon + 1 + strlen(controller), "\n"),
			 colon + 1 + strlen(controller));
		return true;
	}
	return false;
}

/* A group that has no cpuset of its own is in that of the nearest one above it. */
static bool read_nearest(char path[PATH_MAX], uint8_t mask[CPUSET_BYTES])
{
	char file[PATH_MAX + 64];
	char *slash;

	for (;;) {
		snprintf(file, sizeof(file), CGROUPS "%s/cpuset.cpus.effective", path);
		if (read_list(file, mask))
			return true;
		slash = strrchr(path, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

void cpuset_of(pid_t pid, uint8_t mask[CPUSET_BYTES])
{
	char *text = proc_text(pid, "cgroup", NULL);
	char path[PATH_MAX], file[PATH_MAX + 64];
	bool known = false;

	if (find_group(text, "cpuset:", path)) {
		snprintf(file, sizeof(file), CGROUPS "/cpuset%s/cpuset.effective_cpus", path);
		known = read_list(file, mask);
	} else if (find_group(text, ":", path)) {
		known = read_nearest(path, mask);
	}
	free(text);
	if (!known)
		memcpy(mask, cpuset_online(), CPUSET_BYTES);
}
