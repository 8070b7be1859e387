// SPDX-License-Identifier: GPL-2.0
/* The first namespaces are told by their inode numbers, which are part of the kernel's ABI. */
#include "proc/namespace.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proc/proc.h"

#define FIRST_PID_NAMESPACE	0xeffffffcu
#define FIRST_USER_NAMESPACE	0xeffffffdu

bool namespace_is_first(const char *kind)
{
	char name[32], path[PROC_PATH];
	struct stat st;

	snprintf(name, sizeof(name), "ns/%s", kind);
	if (stat(proc_path(path, PROC_SELF, name), &st))
		return true;		/* this kernel has none */
	return st.st_ino == (strcmp(kind, "pid") ? FIRST_USER_NAMESPACE : FIRST_PID_NAMESPACE);
}
