// SPDX-License-Identifier: GPL-2.0
/*
 * Contents of files that only the program keeps alive (deleted files, memfd,
 * shared memory): read past holes and zeros into CONTENT sections, and put
 * back.  SEEK_DATA moves the offset, which our duplicate shares with the
 * program, so a description of our own is opened for reading.  Nothing is mapped to be
 * read: that would fill the holes of the program's memory.  Files without write() (huge
 * pages) are mapped to be written.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/identity.h"

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

/* Could its process open it for reading?  As its owner, or as one who may read any file. */
static bool may_be_opened(const struct file_probe *probe)
{
	const uint64_t any = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_DAC_READ_SEARCH;
	char *status = proc_text(probe->passed ? probe->pid : probe->thread, "status", NULL);
	const char *ids = status ? status_value(status, "Uid") : NULL;
	unsigned int fsuid;
	bool may = ids && sscanf(ids, "%*u %*u %*u %u", &fsuid) == 1 &&
		   (fsuid == probe->st.st_uid || status_number(status, "CapEff", 16, 0) & any);

	free(status);
	return may;
}

static bool is_open_for_reading(const struct file_probe *probe)
{
	return !(probe->flags & O_PATH) && (probe->flags & O_ACCMODE) != O_WRONLY;
}

bool file_content_is_readable(const struct file_table *t, const struct file_probe *probe)
{
	/* Without privileges, what the caller may not read cannot be opened below. */
	if (is_open_for_reading(probe) || !identity_is_privileged() || may_be_opened(probe))
		return true;
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);

		if (p->st.st_ino == probe->st.st_ino && p->st.st_dev == probe->st.st_dev &&
		    is_open_for_reading(p))
			return true;
	}
	return false;
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
	if (system_v)	/* the module has opened it, and nobody else can */
		return write_read(probe->fd, true, size, probe, file->id, w);
	fd = proc_fd_reopen(probe->fd, O_RDONLY | O_NOATIME);
	if (fd < 0)
		fd = proc_fd_reopen(probe->fd, O_RDONLY);
	if (fd < 0) {
		if ((probe->flags & O_ACCMODE) == O_WRONLY)
			return file_save_error(probe, fd, "cannot read its contents");
		return write_read(probe->fd, false, size, probe, file->id, w);
	}
	/* What was written through a mapping its server does not know of, and calls a hole. */
	err = write_read(fd, probe->fs.f_type != FUSE_SUPER_MAGIC, size, probe, file->id, w);
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
