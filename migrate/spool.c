// SPDX-License-Identifier: GPL-2.0
/* See spool.h.  All that a signal handler needs to remove it is ready beforehand. */
#include "migrate/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/precopy.h"
#include "report/report.h"

static char folder[PATH_MAX];
static char image[PRECOPY_MAX_ROUNDS + 1][16];
static volatile unsigned int nr_images;
static volatile int folder_fd = -1, kept;

int spool_make(const char *in)
{
	char path[sizeof(folder)];
	const char *base = in ?: getenv("TMPDIR") ?: "/tmp";

	/* Absolute, as messages and children name it. */
	if (!realpath(base, path))
		return report_errno(-errno, "the spool folder %s", base);
	if (snprintf(folder, sizeof(folder), "%s/kcr-migrate.XXXXXX", strcmp(path, "/") ? path : "") >=
	    (int)sizeof(folder)) {
		folder[0] = '\0';
		return report_errno(-ENAMETOOLONG, "the spool folder %s", base);
	}
	for (size_t i = 0; i < sizeof(image) / sizeof(*image); i++)
		snprintf(image[i], sizeof(image[i]), "image.%zu", i);
	if (!mkdtemp(folder)) {
		folder[0] = '\0';
		return report_errno(-errno, "cannot make a folder in %s (see --spool)", path);
	}
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd >= 0)
		return 0;
	report_errno(-errno, "%s", folder);
	rmdir(folder);
	folder[0] = '\0';
	return report_error();
}

const char *spool_path(void)
{
	return folder;
}

int spool_fd(void)
{
	return folder_fd;
}

int spool_create(unsigned int number)
{
	int fd;

	if (number >= sizeof(image) / sizeof(*image))
		return report_fail(-E2BIG, "too many images");
	nr_images = number + 1;
	fd = openat(folder_fd, image[number], O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	return fd < 0 ? report_errno(-errno, "%s/%s", folder, image[number]) : fd;
}

const char *spool_image(unsigned int number)
{
	static char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", folder, image[number]);
	return path;
}

void spool_remove(void)
{
	int fd = folder_fd;

	if (fd < 0 || kept)
		return;
	folder_fd = -1;
	for (unsigned int i = 0; i < nr_images; i++)
		unlinkat(fd, image[i], 0);
	unlinkat(fd, SPOOL_SOCKET, 0);
	close(fd);
	rmdir(folder);
}

void spool_keep(int keep)
{
	kept = keep;
}
