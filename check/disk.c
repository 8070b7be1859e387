// SPDX-License-Identifier: GPL-2.0
/* Measuring a folder's disk; see disk.h. */
#include "check/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proc/clock.h"
#include "report/report.h"

#define PIECE		((size_t)1 << 20)
#define MOST_BYTES	((uint64_t)64 << 20)
#define MOST_NS		1000000000ull

/* A file that is gone when it is closed.  A descriptor or -errno. */
static int open_unnamed(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	char path[4096];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	/* The file system has none of these. */
	if (snprintf(path, sizeof(path), "%s/.cr_check.XXXXXX", folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* Random bytes, which no file system makes smaller.  The bytes written, or -errno. */
static int64_t write_pieces(int fd, char *piece, uint64_t most)
{
	uint64_t end = now_ns() + MOST_NS;
	int64_t done = 0;

	if (getrandom(piece, PIECE, 0) < 0)
		return -errno;
	while ((uint64_t)done < most && now_ns() < end) {
		ssize_t n = write(fd, piece, PIECE);

		if (n < 0)
			return -errno;
		done += n;
	}
	return fdatasync(fd) ? -errno : done;
}

/* At most half of what is free. */
static int measure(const char *folder, uint64_t most, struct disk *out, char *piece)
{
	int fd = open_unnamed(folder);
	uint64_t start = now_ns();
	int64_t done;

	if (fd < 0)
		return fd;
	if (most > MOST_BYTES)
		most = MOST_BYTES;
	done = write_pieces(fd, piece, most < out->free_bytes / 2 ? most : out->free_bytes / 2);
	close(fd);
	if (done < 0)
		return (int)done;
	out->bytes_per_s = (double)done * 1e9 / (double)(now_ns() - start);
	return 0;
}

int disk_measure(const char *folder, uint64_t most, struct disk *out)
{
	char *piece = malloc(PIECE);
	struct statvfs fs;
	int err = piece ? 0 : -ENOMEM;

	if (!err && statvfs(folder, &fs))
		err = -errno;
	if (!err) {
		out->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
		err = measure(folder, most, out, piece);
	}
	free(piece);
	return err ? report_errno(err, "cannot write to the folder %s", folder) : 0;
}
