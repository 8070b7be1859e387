// SPDX-License-Identifier: GPL-2.0
/* Leftovers of a launcher.  See leftovers.h. */
#include "launch/leftovers.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX	16		/* open at a time */

/* As Open MPI and PRRTE choose it. */
static const char *folder_for_all(void)
{
	static const char *const names[] = { "TMPDIR", "TEMP", "TMP" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return "/tmp";
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	remove(path);			/* what cannot be removed stays, and what it is in */
	return 0;
}

/* Nobody else can put anything into a folder of this user's that only the user may write to. */
static void remove_folder(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		nftw(path, remove_one, FILES_MAX, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void leftovers_remove(pid_t launcher)
{
	char host[HOST_NAME_MAX + 1] = "", path[PATH_MAX];
	const char *folder = folder_for_all();
	struct stat st;

	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/prterun.%s.%d.%u", folder, host, launcher, geteuid());
	remove_folder(path);
	snprintf(path, sizeof(path), "%s/ompi.%s.%u", folder, host, geteuid());
	if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return;
	snprintf(path, sizeof(path), "%s/ompi.%s.%u/pid.%d", folder, host, geteuid(), launcher);
	remove_folder(path);
	snprintf(path, sizeof(path), "%s/ompi.%s.%u", folder, host, geteuid());
	rmdir(path);			/* unless there are others */
}
