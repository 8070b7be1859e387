// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of an object of the kernel, which is told while the processes still run by its name in
 * /proc/PID/maps: no descriptor of it need be left.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"
#include "report/report.h"

#define OBJECT		"anon_inode:"
#define SECRET		"/secretmem (deleted)"

/* Is the mapping of this line of maps a device's, by its VM_IO or VM_PFNMAP? */
static bool is_device(const struct scope_process *p, const char *wanted)
{
	const size_t length = strcspn(wanted, " ") + 1;
	FILE *maps = proc_stream(p->thread, "smaps");
	bool found = false, device = false;
	char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0) {
		if (!found) {
			found = !strncmp(line, wanted, length);
		} else if (!strncmp(line, "VmFlags:", 8)) {
			device = strstr(line, " io") || strstr(line, " pf");
			break;
		}
	}
	free(line);
	if (maps)
		fclose(maps);
	return device;
}

int mapped_object_check(const struct checkpoint *c, const struct scope_process *p, const char *line)
{
	const char *name = line;
	bool secret, can_be_skipped;

	for (int field = 0; field < 5; field++) {
		name += strcspn(name, " ");
		name += strspn(name, " ");
	}
	secret = !strcmp(name, SECRET);
	if (!secret && (strncmp(name, OBJECT, strlen(OBJECT)) || !strcmp(name, OBJECT "[io_uring]")))
		return 0;
	can_be_skipped = is_device(p, line);
	if (can_be_skipped && c->options->skip_unsupported)
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d has memory of %s mapped, which cannot be saved%s",
			   p->pid, secret ? "memfd_secret(2)" : name,
			   can_be_skipped ? " (--skip-unsupported leaves it out)" : "");
}
