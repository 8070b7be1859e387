// SPDX-License-Identifier: GPL-2.0
/* The ranks' files on their nodes.  See local.h. */
#include "job/local.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/folder.h"
#include "job/snapshot.h"

#define DIGITS 16		/* after the last dot */

char *local_name(const char *parent, const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return NULL;
	return folder_path("%s/%s.%016" PRIx64, strcmp(parent, "/") ? parent : "",
			   slash ? slash + 1 : path, number);
}

char *local_folder(const char *dir)
{
	char *link = folder_path("%s/" LOCAL_LINK, dir), target[PATH_MAX];
	ssize_t length = link ? readlink(link, target, sizeof(target)) : -1;

	free(link);
	return length > 0 && length < (ssize_t)sizeof(target) ? strndup(target, length) : NULL;
}

int local_link(const char *dir, const char *folder)
{
	char *link = folder_path("%s/" LOCAL_LINK, dir);
	int err = !link ? -ENOMEM : symlink(folder, link) ? -errno : 0;

	free(link);
	return err;
}

/* One that is there has been made by the daemon of another node, if the nodes share it. */
int local_make(const char *folder)
{
	if (!mkdir(folder, 0700))
		return 0;
	if (errno != EEXIST)
		return -errno;
	return folder_is_own(folder) ? 0 : -EEXIST;
}

int local_sync(const char *folder)
{
	int err = folder_sync(folder);

	return err ? err : folder_sync_parent(folder);
}

void local_remove(const char *folder)
{
	size_t length = strlen(folder), end = strlen(SNAPSHOT_SUFFIX ".") + DIGITS;

	if (*folder != '/' || length <= end || strspn(folder + length - DIGITS,
	    "0123456789abcdef") != DIGITS || strncmp(folder + length - end, SNAPSHOT_SUFFIX ".",
	    strlen(SNAPSHOT_SUFFIX ".")))
		return;
	folder_remove(folder);
}
