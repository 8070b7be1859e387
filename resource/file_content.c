// SPDX-License-Identifier: GPL-2.0
/*
 * Contents of files that only the program keeps alive (deleted files, memfd,
 * shared memory): read past holes and zeros into CONTENT sections, and put
 * back.  SEEK_DATA moves the offset, which our duplicate shares with the
 * program, so a description of our own is opened for reading.  Files without
 * read() or write() (huge pages, System V segments) are mapped instead.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"

#define BLOCK		65536u		/* zeros are skipped in blocks of this size */
#define BUFFER		(1u << 20)	/* bytes per read */

static bool is_zero(const char *data, size_t length)
{
	static const char zeros[4096];

	while (length >= sizeof(zeros)) {
		if (memcmp(data, zeros, sizeof(zeros)))
			return false;
		data += sizeof(zeros);
		length -= sizeof(zeros);
	}
	return !memcmp(data, zeros, length);
}

/* Writes the blocks of `data` that are not all zero, adjacent ones together. */
static int write_blocks(const char *data, uint64_t offset, size_t length, uint32_t id,
			struct context_writer *w)
{
	size_t start = 0, at = 0;
	int err = 0;

	while (at < length && !err) {
		size_t size = length - at < BLOCK ? length - at : BLOCK;

		if (is_zero(data + at, size)) {
			if (at > start)
				err = context_write_content(w, id, offset + start, data + start,
							    at - start);
			start = at + size;
		}
		at += size;
	}
	if (!err && at > start)
		err = context_write_content(w, id, offset + start, data + start, at - start);
	return err;
}

static int write_read(int fd, bool holes, uint64_t size, const struct file_probe *probe,
		      uint32_t id, struct context_writer *w)
{
	char *buffer = malloc(BUFFER);
	uint64_t at = 0, end = holes ? 0 : size;
	int err = buffer ? 0 : -ENOMEM;

	while (!err && at < size) {
		size_t wanted;
		ssize_t got;

		if (at >= end) {		/* only if there may be holes */
			off_t data = lseek(fd, at, SEEK_DATA);
			off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

			if (data < 0 && errno == ENXIO)
				break;
			at = data < 0 ? at : (uint64_t)data;
			end = hole < 0 || (uint64_t)hole > size ? size : (uint64_t)hole;
			if (at >= size)
				break;
		}
		wanted = end - at < BUFFER ? end - at : BUFFER;
		got = pread(fd, buffer, wanted, at);
		if (got < 0)
			err = -errno;
		else if (!got)
			break;
		else
			err = write_blocks(buffer, at, got, id, w);
		at += got;
	}
	free(buffer);
	return err ? file_save_error(probe, err, "cannot save its contents") : 0;
}

static int write_mapped(const struct file_probe *probe, uint64_t size, uint32_t id,
			struct context_writer *w)
{
	char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, probe->fd, 0);
	int err = 0;

	if (data == MAP_FAILED)
		return file_save_error(probe, -errno, "cannot map it to save its contents");
	for (uint64_t at = 0; at < size && !err; at += CONTEXT_CONTENT_MAX)
		err = write_blocks(data + at, at,
				   size - at < CONTEXT_CONTENT_MAX ? size - at : CONTEXT_CONTENT_MAX,
				   id, w);
	munmap(data, size);
	return err;
}

int file_write_content(const struct file_probe *probe, const Kcr__File *file,
		       struct context_writer *w)
{
	uint64_t size = probe->st.st_size;
	bool system_v = file->kind_case == KCR__FILE__KIND_SHARED_MEMORY &&
			file->shared_memory->has_sysv && file->shared_memory->sysv;
	int fd, err;

	if (!size)
		return 0;
	if (system_v || probe->fs.f_type == HUGETLBFS_MAGIC)
		return write_mapped(probe, size, file->id, w);

	fd = proc_fd_reopen(probe->fd, O_RDONLY | O_NOATIME);
	if (fd < 0)
		fd = proc_fd_reopen(probe->fd, O_RDONLY);
	if (fd < 0) {
		if ((probe->flags & O_ACCMODE) == O_WRONLY)
			return file_save_error(probe, fd, "cannot read its contents");
		return write_read(probe->fd, false, size, probe, file->id, w);
	}
	err = write_read(fd, true, size, probe, file->id, w);
	close(fd);
	return err;
}

int file_store_content(int fd, uint64_t offset, const void *data, size_t length)
{
	struct stat st;
	size_t page, before;
	char *map;

	while (length) {
		ssize_t done = pwrite(fd, data, length, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno != EINVAL && errno != EBADF)
			return -errno;
		if (done < 0)
			break;
		if (!done)
			return -ENOSPC;
		data = (const char *)data + done;
		offset += done;
		length -= done;
	}
	if (!length)
		return 0;

	if (fstat(fd, &st))
		return -errno;
	page = st.st_blksize > 4096 ? st.st_blksize : 4096;
	before = offset % page;
	map = mmap(NULL, before + length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset - before);
	if (map == MAP_FAILED)
		return -errno;
	memcpy(map + before, data, length);
	munmap(map, (before + length + page - 1) / page * page);
	return 0;
}
