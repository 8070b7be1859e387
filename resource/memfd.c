// SPDX-License-Identifier: GPL-2.0
/*
 * memfd_create(2): name, contents, seals, page size.  Several open files
 * may share one; the first has the contents.  Seals come after the contents,
 * and all of them at the very end if one forbids new writable mappings.
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

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE	0x10
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC		0x20	/* Linux 6.3 */
#endif
#ifndef MFD_EXEC
#define MFD_NOEXEC_SEAL		8u	/* Linux 6.3 */
#define MFD_EXEC		0x10u
#endif

static const char prefix[] = "/memfd:";

static bool match(const struct file_probe *probe)
{
	return S_ISREG(probe->st.st_mode) && !strncmp(probe->link, prefix, sizeof(prefix) - 1) &&
	       probe_is_deleted(probe);
}

/* A description of O_PATH does not tell them. */
static int seals_of(const struct file_probe *probe)
{
	int fd = probe->flags & O_PATH ? proc_fd_reopen(probe->fd, O_RDONLY | O_CLOEXEC) : probe->fd;
	int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);

	if (fd >= 0 && fd != probe->fd)
		close(fd);
	return seals < 0 ? 0 : seals;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__MemFd *memfd = file_new_kind(file, KCR__FILE__KIND_MEMFD, sizeof(*memfd));
	uint32_t first = file_table_first_with_inode(t, probe, file, NULL);
	size_t length;

	if (!memfd)
		return -ENOMEM;
	memfd->name = file_string(probe->link + sizeof(prefix) - 1);
	if (!memfd->name)
		return -ENOMEM;
	length = strlen(memfd->name);
	memfd->name[length - strlen(" (deleted)")] = '\0';
	memfd->size = probe->st.st_size;
	memfd->seals = seals_of(probe);
	memfd->has_mode = true;
	memfd->mode = probe->st.st_mode & 07777;
	memfd->has_same_as = true;
	memfd->same_as = first;
	if (probe->fs.f_type == HUGETLBFS_MAGIC) {
		memfd->has_hugetlb_flags = true;
		memfd->hugetlb_flags = MFD_HUGETLB |
			(unsigned int)__builtin_ctzl(probe->fs.f_bsize) << MAP_HUGE_SHIFT;
	}
	return 0;
}

static uint64_t content_size(const struct file_probe *probe, const Kcr__File *file)
{
	uint64_t stored = (uint64_t)probe->st.st_blocks * 512;

	if (file->memfd->same_as != file->id)
		return 0;
	return stored && stored < file->memfd->size ? stored : file->memfd->size;
}

/*
 * Since Linux 6.3 it is decided here whether it can ever be executed.  Without a word the sysctl
 * vm.memfd_noexec decides, and seals its mode, which may not be the saved one.
 */
static int create(const Kcr__MemFd *memfd)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | memfd->hugetlb_flags;
	bool noexec = memfd->seals & F_SEAL_EXEC && !(memfd->mode & 0111);
	int fd = memfd_create(memfd->name, flags | (noexec ? MFD_NOEXEC_SEAL : MFD_EXEC));

	return fd < 0 && errno == EINVAL ? memfd_create(memfd->name, flags) : fd;
}

static int make(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__MemFd *memfd = file->memfd;
	int fd = create(memfd), err;

	if (fd < 0 && errno == EACCES)
		return rebuild_error(file, -EACCES, "it may be executed, which the sysctl "
				     "vm.memfd_noexec does not allow");
	if (fd < 0)
		return rebuild_error(file, -errno, "memfd_create");
	if (ftruncate(fd, memfd->size)) {
		err = rebuild_error(file, -errno, "cannot give it %llu bytes",
				    (unsigned long long)memfd->size);
		close(fd);
		return err;
	}
	return rebuild_put_content(r, file->id, fd);
}

static int open_memfd(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__File *first = context_file(r->context, file->memfd->same_as);
	int base, fd, err;

	if (!first || first->kind_case != KCR__FILE__KIND_MEMFD)
		return rebuild_error(file, -EINVAL, "its contents are those of no file");
	if (first == file) {
		err = make(r, file);
		if (err)
			return err;
	}
	base = r->content_fd[first->id - 1];
	if (base < 0)
		return rebuild_error(file, -EINVAL, "its contents come too late");
	if (first == file && (file->flags & O_ACCMODE) == O_RDWR) {
		fd = fcntl(base, F_DUPFD_CLOEXEC, r->high_fd);
		if (fd < 0)
			fd = -errno;
	} else {
		fd = proc_fd_reopen(base, rebuild_open_flags(file) & ~O_NOFOLLOW);
	}
	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	return rebuild_put(r, file->id, fd);
}

/* A kernel without F_SEAL_EXEC (before 6.3) has the other seals. */
static int seal(int fd, const Kcr__File *file)
{
	uint32_t seals = file->memfd->seals;

	if (!fcntl(fd, F_ADD_SEALS, seals))
		return 0;
	if (errno != EINVAL || !(seals & F_SEAL_EXEC))
		return -errno;
	report_warn("%s is not sealed against execution (F_SEAL_EXEC), which this kernel cannot",
		    file->description ?: "a memfd");
	return fcntl(fd, F_ADD_SEALS, seals & ~F_SEAL_EXEC) ? -errno : 0;
}

static int complete(struct rebuild *r, const Kcr__File *file)
{
	int fd = r->content_fd[file->id - 1];
	int has, err;

	if (fd < 0)
		return 0;
	if (fchmod(fd, file->memfd->mode))
		return rebuild_error(file, -errno, "cannot set its mode");
	has = fcntl(fd, F_GET_SEALS);
	if (file->memfd->seals & F_SEAL_FUTURE_WRITE || has == (int)file->memfd->seals)
		return 0;
	err = seal(fd, file);
	return err ? rebuild_error(file, err, "cannot seal it") : 0;
}

static void finish(struct rebuild *r, const Kcr__File *file)
{
	int fd;

	if (file->memfd->same_as != file->id || !(file->memfd->seals & F_SEAL_FUTURE_WRITE))
		return;
	fd = proc_fd_reopen(r->file_fd[file->id - 1], O_RDWR);
	if (fd < 0 || seal(fd, file))
		report_warn("%s could not be sealed", file->description ?: "a memfd");
	if (fd >= 0)
		close(fd);
}

const struct file_kind file_kind_memfd = {
	.kind = KCR__FILE__KIND_MEMFD,
	.name = "memfd",
	.match = match,
	.save = save,
	.content_size = content_size,
	.open = open_memfd,
	.complete = complete,
	.finish = finish,
};
