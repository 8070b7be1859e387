// SPDX-License-Identifier: GPL-2.0
/*
 * One checksum of everything in a directory, so that any change shows.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images.h"

static uint64_t mix(uint64_t sum, uint64_t number)
{
	struct random random = { sum ^ number };

	return random_next(&random);
}

static uint64_t mix_bytes(uint64_t sum, const char *data, size_t length)
{
	while (length--)
		sum = mix(sum, (uint8_t)*data++);
	return sum;
}

static uint64_t sum_of_file(uint64_t sum, int folder, const char *name, const struct stat *status)
{
	char data[512];
	ssize_t n;
	int fd;

	sum = mix_bytes(sum, name, strlen(name));
	sum = mix(sum, status->st_mode);
	sum = mix(sum, (uint64_t)status->st_uid << 32 | status->st_gid);
	sum = mix(sum, status->st_mtim.tv_sec);
	sum = mix(sum, status->st_mtim.tv_nsec);
	sum = mix(sum, status->st_ctim.tv_nsec);
	sum = mix(sum, status->st_nlink);
	if (!S_ISREG(status->st_mode))
		return sum;
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	while ((n = read(fd, data, sizeof(data))) > 0)
		sum = mix_bytes(sum, data, n);
	close(fd);
	return sum;
}

uint64_t canary_sum(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	struct stat status;
	char below[PATH_MAX];
	uint64_t sum = 0;

	while (folder && (entry = readdir(folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		/* A sum, as entries come in any order. */
		sum += sum_of_file(1, dirfd(folder), entry->d_name, &status);
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (S_ISDIR(status.st_mode))
			sum += mix(canary_sum(below), 1);
	}
	if (folder)
		closedir(folder);
	return sum;
}
