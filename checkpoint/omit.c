// SPDX-License-Identifier: GPL-2.0
/*
 * Children of a process that omits itself (kcr_omit(3), cr_run(1) --omit) omit
 * themselves, too, but only a moment after fork(2) or exec(2): until then the
 * module does not know them.  Checked only if some process was omitted.
 */
#include "checkpoint/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcr/record.h"
#include "proc/proc.h"

/* Was the program started with libcr_omit preloaded? */
static bool is_preloaded(pid_t thread)
{
	static const char variable[] = "LD_PRELOAD=";
	FILE *environ = proc_stream(thread, "environ");
	char *text = NULL;
	bool found = false;
	size_t size = 0;

	while (environ && !found && getdelim(&text, &size, '\0', environ) > 0)
		found = !strncmp(text, variable, sizeof(variable) - 1) &&
			strstr(text, "/libcr_omit.so.0");
	free(text);
	if (environ)
		fclose(environ);
	return found;
}

/* Does libcr's record at this address, copied by fork(2), say so? */
static bool says_record(pid_t thread, uint64_t address)
{
	struct cri_record_head *head = aligned_alloc(CRI_RECORD_PAGE, sizeof(*head));
	int fd = proc_open(thread, "mem", O_RDONLY);
	bool omit;

	omit = head && fd >= 0 && pread(fd, head, sizeof(*head), address) == sizeof(*head) &&
	       head->magic == CRI_RECORD_MAGIC && head->omit;
	if (fd >= 0)
		close(fd);
	free(head);
	return omit;
}

static bool is_recorded(pid_t thread)
{
	FILE *maps = proc_stream(thread, "maps");
	unsigned long long start;
	char *line = NULL;
	bool found = false;
	size_t size = 0;

	while (maps && !found && getline(&line, &size, maps) > 0)
		found = strstr(line, "/memfd:" CRI_RECORD_FILE " (deleted)") &&
			sscanf(line, "%llx-", &start) == 1 && says_record(thread, start);
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

bool omit_is_inherited(const struct checkpoint *c, pid_t pid)
{
	pid_t thread = scope_thread(&c->attempt.scope, pid);

	return c->omission && (is_preloaded(thread) || is_recorded(thread));
}
