// SPDX-License-Identifier: GPL-2.0
/* See tool.h. */
#include "util/tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/proc.h"

char *tool_path(const char *name)
{
	char self[PATH_MAX], *slash, *path;
	ssize_t length = proc_link(PROC_SELF, "exe", self, sizeof(self));

	slash = length > 0 ? strrchr(self, '/') : NULL;
	if (!slash)
		return strdup(name);	/* PATH must do */
	*slash = '\0';
	return asprintf(&path, "%s/%s", self, name) < 0 ? NULL : path;
}
