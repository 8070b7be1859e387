// SPDX-License-Identifier: GPL-2.0
/*
 * Shared anonymous mappings and System V segments: files that only mappings
 * refer to.  cr_restart creates each of them by a mapping of its own and takes
 * the file behind it, so that mappings of it look as they did.  It stays
 * attached to a segment until the programs are, since a segment that is marked
 * for destruction disappears with its last user.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/identity.h"
#include "resource/sysv.h"

#ifndef SHM_HUGE_SHIFT
#define SHM_HUGE_SHIFT	26
#endif

static bool is_system_v(const struct file_probe *probe)
{
	return !strncmp(probe->link, "/SYSV", 5);
}

static bool match(const struct file_probe *probe)
{
	return S_ISREG(probe->st.st_mode) &&
	       (is_system_v(probe) || !strcmp(probe->link, "/dev/zero (deleted)") ||
		!strcmp(probe->link, "/anon_hugepage (deleted)")) &&
	       probe_is_deleted(probe);
}

/* ---- save ------------------------------------------------------------------- */

/* The inode number of a segment is its shmid. */
static int save_system_v(struct file_table *t, const struct file_probe *probe,
			 Kcr__SharedMemory *memory)
{
	struct shmid_ds ds;
	int id = (int)probe->st.st_ino;

	if (shmctl(id, IPC_STAT, &ds))
		return file_unsupported(t, "a System V segment out of reach (%s)",
					errno == EACCES ? "no permission" :
					"another IPC namespace");
	memory->has_sysv = memory->has_shmid = memory->has_key = memory->has_mode =
		memory->has_uid = memory->has_gid = memory->has_destroyed = memory->has_locked = true;
	memory->sysv = true;
	memory->shmid = id;
	memory->key = ds.shm_perm.__key;
	memory->mode = ds.shm_perm.mode & 0777;
	memory->uid = ds.shm_perm.uid;
	memory->gid = ds.shm_perm.gid;
	memory->destroyed = ds.shm_perm.mode & SHM_DEST;
	memory->locked = ds.shm_perm.mode & SHM_LOCKED;
	memory->size = ds.shm_segsz;
	return 0;
}

/* An anonymous one may have the same inode number as a segment: the kernel counts them apart. */
static bool is_segment(const Kcr__File *file)
{
	return file->shared_memory->sysv;
}

static bool is_anonymous(const Kcr__File *file)
{
	return !file->shared_memory->sysv;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__SharedMemory *memory;
	int err;

	memory = file_new_kind(file, KCR__FILE__KIND_SHARED_MEMORY, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	memory->size = probe->st.st_size;
	if (probe->fs.f_type == HUGETLBFS_MAGIC) {
		memory->has_hugetlb_page_size = true;
		memory->hugetlb_page_size = probe->fs.f_bsize;
	}
	err = is_system_v(probe) ? save_system_v(t, probe, memory) : 0;
	memory->has_same_as = true;
	memory->same_as = file_table_first_with_inode(t, probe, file, memory->sysv ? is_segment :
										     is_anonymous);
	return err;
}

/* How often these processes are attached: once by each mapping. */
static unsigned long attached_by(const struct file_table *t, Kcr__Process *const *process,
				 size_t count, uint32_t segment)
{
	unsigned long found = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; process[i]->mm && k < process[i]->mm->n_vma; k++) {
			const Kcr__Vma *vma = process[i]->mm->vma[k];
			const Kcr__File *file = vma->file_id ? file_table_get(t, vma->file_id) : NULL;

			found += file && file->kind_case == KCR__FILE__KIND_SHARED_MEMORY &&
				 file->shared_memory->same_as == segment;
		}
	}
	return found;
}

void segments_warn(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const Kcr__File *file = file_table_get(t, id);
		const Kcr__SharedMemory *memory = file->shared_memory;
		struct shmid_ds ds;

		if (file->kind_case != KCR__FILE__KIND_SHARED_MEMORY || !memory->sysv ||
		    memory->same_as != id || shmctl(memory->shmid, IPC_STAT, &ds) ||
		    ds.shm_nattch <= attached_by(t, process, count, id))
			continue;
		report_warn("System V segment %d is attached to by processes that are not saved, too: a "
			    "restart is possible only when these have ended", memory->shmid);
	}
}

static uint64_t content_size(const struct file_probe *probe, const Kcr__File *file)
{
	uint64_t stored = (uint64_t)probe->st.st_blocks * 512;

	if (file->shared_memory->same_as != file->id)
		return 0;
	return stored && stored < file->shared_memory->size ? stored : file->shared_memory->size;
}

/* ---- rebuild ------------------------------------------------------------------ */

/* Segments that cr_restart is attached to. */
static struct attachment {
	uint32_t file_id;
	void *address;
	struct attachment *next;
} *attachments;

static size_t round_up(uint64_t size, uint32_t page)
{
	page = page ?: 4096;
	return (size + page - 1) / page * page;
}

static int huge_bits(const Kcr__SharedMemory *memory, int flag)
{
	if (!memory->hugetlb_page_size)
		return 0;
	return flag | __builtin_ctz(memory->hugetlb_page_size) << SHM_HUGE_SHIFT;
}

/* The file behind our own mapping at `address`; through map_files without the module. */
static int take_file(const struct rebuild *r, void *address, size_t length)
{
	unsigned long start = (uintptr_t)address, end = start + length;
	char name[64];

	if (r->job >= 0)
		return device_mapped_file(r->job, 0, start);
	snprintf(name, sizeof(name), "map_files/%lx-%lx", start, end);
	return proc_open(PROC_SELF, name, O_RDWR);
}

static int put(struct rebuild *r, const Kcr__File *file, void *address, size_t length)
{
	int fd = take_file(r, address, length), copy;

	if (fd < 0)
		return rebuild_error(file, fd, "cannot take the file behind it");
	copy = fcntl(fd, F_DUPFD_CLOEXEC, r->high_fd);
	if (copy < 0) {
		close(fd);
		return rebuild_error(file, -errno, "descriptor");
	}
	return rebuild_put(r, file->id, fd) ?: rebuild_put_content(r, file->id, copy);
}

static int open_anonymous(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__SharedMemory *memory = file->shared_memory;
	size_t length = round_up(memory->size, memory->hugetlb_page_size);
	int flags = MAP_SHARED | MAP_ANONYMOUS | huge_bits(memory, MAP_HUGETLB), err;
	void *address = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (address == MAP_FAILED && !memory->hugetlb_page_size)
		address = mmap(NULL, length, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, -1, 0);
	if (address == MAP_FAILED)
		return rebuild_error(file, -errno, "%zu bytes", length);
	err = put(r, file, address, length);
	munmap(address, length);
	return err;
}

/*
 * Is the segment that has the ID now the saved one?  One that was to disappear with its last
 * user has done so.  Where the program's own rights do not suffice, only its own one is.
 */
static bool is_saved(const struct rebuild *r, const Kcr__File *file, const struct shmid_ds *ds)
{
	const Kcr__SharedMemory *memory = file->shared_memory;
	const Kcr__Credentials *holder = r->holder[file->id - 1];
	const struct ipc_perm *perm = &ds->shm_perm;

	if (memory->destroyed || perm->mode & SHM_DEST || ds->shm_segsz != memory->size ||
	    !sysv_is_same(perm, (key_t)memory->key, memory->uid, memory->gid))
		return false;
	return !identity_is_guarding() || !holder || holder->euid == perm->uid;
}

/*
 * The segment: the old one if it still exists and nobody uses it (segments
 * outlive programs), else a new one, with the old ID if possible.
 */
static int get_segment(const struct rebuild *r, const Kcr__File *file, bool *old)
{
	const Kcr__SharedMemory *memory = file->shared_memory;
	int flags = IPC_CREAT | IPC_EXCL | (memory->mode & 0777) | huge_bits(memory, SHM_HUGETLB);
	struct shmid_ds ds;
	int id;

	*old = !shmctl(memory->shmid, IPC_STAT, &ds) && is_saved(r, file, &ds);
	if (*old && ds.shm_nattch)
		return rebuild_error(file, -EBUSY, "System V segment %d is in use by another program",
				     memory->shmid);
	if (*old)
		return memory->shmid;
	sysv_choose_id("sys/kernel/shm_next_id", memory->shmid);
	id = shmget(memory->destroyed ? IPC_PRIVATE : memory->key, memory->size, flags);
	if (id < 0 && errno == EEXIST)
		return rebuild_error(file, -EEXIST, "another System V segment has its key (%#x): "
				     "ipcrm(1) removes one", memory->key);
	if (id < 0)
		return rebuild_error(file, -errno, "cannot make a System V segment of %llu bytes",
				     (unsigned long long)memory->size);
	if (id != memory->shmid)
		report_warn("System V segment %d has the ID %d now", memory->shmid, id);
	return id;
}

static int attach(struct rebuild *r, const Kcr__File *file, int id, bool old)
{
	const Kcr__SharedMemory *memory = file->shared_memory;
	struct attachment *a = malloc(sizeof(*a));

	if (!a)
		return report_errno(-ENOMEM, "restoring shared memory");
	a->file_id = file->id;
	a->address = shmat(id, NULL, 0);
	if (a->address == (void *)-1) {
		free(a);
		return rebuild_error(file, -errno, "cannot attach segment %d", id);
	}
	a->next = attachments;
	attachments = a;
	if (old && madvise(a->address, round_up(memory->size, memory->hugetlb_page_size), MADV_REMOVE))
		memset(a->address, 0, memory->size);
	return put(r, file, a->address, round_up(memory->size, memory->hugetlb_page_size));
}

/* One that was just made: by the user whose rights we have. */
static void set_owner(const Kcr__SharedMemory *memory, int id)
{
	struct shmid_ds ds;
	bool raised;

	if (shmctl(id, IPC_STAT, &ds) ||
	    (ds.shm_perm.uid == memory->uid && ds.shm_perm.gid == memory->gid))
		return;
	ds.shm_perm.uid = memory->uid;
	ds.shm_perm.gid = memory->gid;
	raised = identity_raise(false);
	if (shmctl(id, IPC_SET, &ds))
		report_verbose("System V segment %d has another owner than before", id);
	identity_lower(raised);
}

static int open_system_v(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__SharedMemory *memory = file->shared_memory;
	bool old, raised;
	int id = get_segment(r, file, &old), err;

	if (id < 0)
		return id;
	err = attach(r, file, id, old);
	if (old)		/* of which only the contents were to be restored */
		return err;
	set_owner(memory, id);
	if (memory->locked && shmctl(id, SHM_LOCK, NULL))
		report_warn("System V segment %d is not locked in memory (SHM_LOCK) any more: %s", id,
			    strerror(errno));
	if (!memory->destroyed && !err)
		return 0;
	raised = identity_raise(false);
	shmctl(id, IPC_RMID, NULL);
	identity_lower(raised);
	return err;
}

static int open_shared_memory(struct rebuild *r, const Kcr__File *file)
{
	uint32_t first = file->shared_memory->same_as;
	int fd;

	if (first != file->id) {
		if (!context_file(r->context, first) || r->file_fd[first - 1] < 0)
			return rebuild_error(file, -EINVAL, "its contents are those of no file");
		fd = fcntl(r->file_fd[first - 1], F_DUPFD_CLOEXEC, r->high_fd);
		return fd < 0 ? rebuild_error(file, -errno, "descriptor") :
				rebuild_put(r, file->id, fd);
	}
	if (!file->shared_memory->size)
		return rebuild_error(file, -EINVAL, "it has no size");
	return file->shared_memory->sysv ? open_system_v(r, file) : open_anonymous(r, file);
}

static void finish(struct rebuild *r, const Kcr__File *file)
{
	struct attachment **at = &attachments, *a;

	(void)r;
	while ((a = *at)) {
		if (a->file_id != file->id) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		shmdt(a->address);
		free(a);
	}
}

const struct file_kind file_kind_shared_memory = {
	.kind = KCR__FILE__KIND_SHARED_MEMORY,
	.name = "shared memory",
	.match = match,
	.save = save,
	.content_size = content_size,
	.open = open_shared_memory,
	.finish = finish,
};
