// SPDX-License-Identifier: GPL-2.0
/*
 * Earlier context files of one name, NAME.~N~ with growing numbers, in the same folder.
 * Only names are looked at, and only the names of files are removed: whoever else may
 * write to the folder could remove them as well.
 */
#include "checkpoint/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number in NAME.~N~; 0: another name. */
static unsigned long number_of(const char *entry, const char *name)
{
	size_t length = strlen(name);
	unsigned long number;
	char *end;

	if (strncmp(entry, name, length) || strncmp(entry + length, ".~", 2) ||
	    entry[length + 2] < '1' || entry[length + 2] > '9')
		return 0;
	errno = 0;
	number = strtoul(entry + length + 2, &end, 10);
	return errno || number == ULONG_MAX || strcmp(end, "~") ? 0 : number;
}

int kept_find(int folder, const char *name, struct kept *kept)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err = list ? 0 : -errno;

	*kept = (struct kept){};
	while (list && (errno = 0, entry = readdir(list))) {
		unsigned long number = number_of(entry->d_name, name);

		if (!number)
			continue;
		kept->count++;
		if (!kept->oldest || number < kept->oldest)
			kept->oldest = number;
		if (number > kept->newest)
			kept->newest = number;
	}
	if (list && errno)
		err = -errno;
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	return err;
}

int kept_forget(int folder, const char *name, unsigned int most)
{
	char path[NAME_MAX + 1];
	struct kept kept;
	int err;

	while (!(err = kept_find(folder, name, &kept)) && kept.count > most) {
		snprintf(path, sizeof(path), "%s.~%lu~", name, kept.oldest);
		if (unlinkat(folder, path, 0) && errno != ENOENT)
			return -errno;
	}
	return err;
}
