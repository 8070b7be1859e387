// SPDX-License-Identifier: GPL-2.0
/*
 * The map of an address space: what each mapping is, which file is behind it,
 * and how its pages are saved.  Shared mappings are saved as the contents of
 * their files (resource/), private ones as pages (memory.c).
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/address.h"
#include "device/device.h"
#include "image/deferred.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/aio_context.h"

/* A mapped file: registered once, however many mappings there are. */
struct mapped_file {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
	char *path;			/* btrfs subvolumes share one device number */
	uint64_t kind;			/* KCR_VMA_SHARED and _MAYWRITE, if shared */
	uint32_t id;
};

static uint64_t mapping_kind(const struct kcr_vma *v)
{
	return v->flags & KCR_VMA_SHARED ? v->flags & (KCR_VMA_SHARED | KCR_VMA_MAYWRITE) : 0;
}

static enum file_mapping mapping_use(const struct checkpoint *c, const struct kcr_vma *v)
{
	if (!(v->flags & KCR_VMA_SHARED))
		return FILE_MAPPED;
	/* A restart must not write back what the program could not have written. */
	return c->options->save & CHECKPOINT_SAVE_SHARED && v->flags & KCR_VMA_MAYWRITE ?
	       FILE_MAPPED_KEPT : FILE_MAPPED_SHARED;
}

/* Finds or registers the file of a mapping; NULL: reported, *err is set. */
static const struct mapped_file *map_file(struct checkpoint *c, pid_t pid,
					  const struct kcr_vma *v, const char *path, int *err)
{
	struct description *d = &c->attempt.description;
	struct mapped_file *m, *larger;
	int fd;

	for (size_t i = 0; i < d->nr_mapped; i++) {
		m = &d->mapped[i];
		if (m->ino == v->ino && m->dev_major == v->dev_major &&
		    m->dev_minor == v->dev_minor && m->kind == mapping_kind(v) &&
		    !strcmp(m->path, path))
			return m;
	}
	larger = realloc(d->mapped, (d->nr_mapped + 1) * sizeof(*larger));
	if (!larger) {
		*err = report_errno(-ENOMEM, "process %d: mapped files", pid);
		return NULL;
	}
	d->mapped = larger;
	m = &larger[d->nr_mapped];
	*m = (struct mapped_file) {
		.ino = v->ino, .dev_major = v->dev_major, .dev_minor = v->dev_minor,
		.kind = mapping_kind(v), .path = strdup(path),
	};
	if (!m->path) {
		*err = report_errno(-ENOMEM, "process %d: mapped files", pid);
		return NULL;
	}
	d->nr_mapped++;
	fd = mapping_kind(v) ? -1 : opened_take(c, v, path);
	if (fd < 0)
		fd = device_mapped_file(c->attempt.job, pid, v->start);
	if (fd < 0) {
		*err = fd;
		return NULL;
	}
	*err = file_table_add(d->files, fd, pid, pid, -1, mapping_use(c, v), &m->id);
	return *err ? NULL : m;
}

void mapped_free(struct description *d)
{
	for (size_t i = 0; i < d->nr_mapped; i++)
		free(d->mapped[i].path);
	free(d->mapped);
}

static const char *vma_path(const struct kcr_vma *v, const char *strings)
{
	return v->path ? strings + v->path : "";
}

/* Is the file only how the kernel implements private anonymous memory? */
static bool is_anonymous(const struct kcr_vma *v, const char *path)
{
	/* The first System V segment of a machine has inode number 0. */
	if (!v->ino && !(v->flags & KCR_VMA_SYSV))
		return true;
	if (v->flags & KCR_VMA_SHARED)
		return false;
	return !strcmp(path, "/dev/zero") ||
	       ((v->flags & KCR_VMA_HUGETLB) && !strcmp(path, "/anon_hugepage (deleted)"));
}

/* The kernel's own key, for execute-only mappings, does not count: it will set that again. */
static bool has_own_key(const struct kcr_vma *v)
{
	return v->pkey && (v->flags & (KCR_VMA_READ | KCR_VMA_WRITE | KCR_VMA_EXEC)) !=
			  KCR_VMA_EXEC;
}

static bool is_io_uring(const char *path)
{
	return !strcmp(path, "anon_inode:[io_uring]");
}

/*
 * The open file that has this memory, as nothing can be done with it otherwise.  Its id, 0: none, or
 * -errno, reported.
 */
static int64_t find_owner(struct checkpoint *c, pid_t pid, const struct kcr_vma *v, const char *path)
{
	const struct file_table *files = c->attempt.description.files;

	for (uint32_t id = 1; id <= file_table_count(files); id++) {
		const struct file_probe *probe = file_table_probe(files, id);
		int same = strcmp(probe->link, path) ? 0 :
			   device_maps_file(c->attempt.job, pid, v->start, probe->fd);

		if (same)
			return same < 0 ? same : (int64_t)id;
	}
	return 0;
}

/* Memory of an io_uring or a socket: saved with that.  Of sockets only some can be: see complete(). */
static int place_memory(struct checkpoint *c, pid_t pid, const struct kcr_vma *v, const char *path,
			Kcr__Vma *out)
{
	int64_t id = find_owner(c, pid, v, path);

	if (id < 0)
		return (int)id;
	out->has_file_id = id > 0;
	out->file_id = id;
	if (socket_memory_is(path))
		return 0;
	if (!id || !(v->flags & KCR_VMA_SHARED) ||
	    (v->offset != IORING_OFF_SQ_RING && v->offset != IORING_OFF_CQ_RING &&
	     v->offset != IORING_OFF_SQES))
		return report_fail(-EOPNOTSUPP, "process %d: the mapping %#llx-%#llx is memory of an "
				   "io_uring %s, which cannot be saved", pid,
				   (unsigned long long)v->start, (unsigned long long)v->end,
				   id ? "of which parts are unmapped" : "whose descriptor is closed");
	out->flags &= ~KCR_VMA_IO;	/* how older kernels map it */
	return 0;
}

/* Why a restart could not fill the mapping, whatever of it is left out; or NULL. */
static const char *fatal_reason(const struct kcr_vma *v, const Kcr__Mm *mm)
{
	if (v->flags & KCR_VMA_IO)
		return NULL;	/* left out as a whole */
	if (v->end > ARCH_USER_END)
		return "above the addresses of 47 bits";
	/* The kernel does not let it be filled against its protection. */
	if (v->flags & KCR_VMA_HUGETLB && !(v->flags & (KCR_VMA_SHARED | KCR_VMA_WRITE)))
		return "private memory of huge pages that is not writable";
	if (has_own_key(v) && !mm->has_keys)
		return "under a protection key, of which the module in memory, an older one, does "
		       "not tell enough,";
	if (has_own_key(v) && v->pkey == mm->execute_key)
		return "under a protection key that was freed and is the kernel's by now,";
	return NULL;
}

/* Why a mapping can't be saved as it is, though without what this says (--skip-unsupported); or NULL. */
static const char *refusal(const struct kcr_vma *v, const char *path)
{
	if (v->flags & KCR_VMA_IO)
		return "memory of a device";
	if (v->flags & KCR_VMA_UFFD && user_faults_refusal(v->flags, is_anonymous(v, path)))
		return user_faults_refusal(v->flags, is_anonymous(v, path));
	if (v->flags & KCR_VMA_SEALED)
		return "sealed by mseal";
	return NULL;
}

/* *why: what is left out of the mapping, on request; NULL: nothing.  Else -EOPNOTSUPP, reported. */
static int refuse_mapping(const struct checkpoint *c, pid_t pid, const struct kcr_vma *v,
			  const char *path, const Kcr__Mm *mm, const char **why)
{
	const char *fatal = fatal_reason(v, mm);

	*why = refusal(v, path);
	if (fatal || (*why && !c->options->skip_unsupported))
		return report_fail(-EOPNOTSUPP, "process %d: the mapping %#llx-%#llx %s is %s, which "
				   "cannot be saved", pid, (unsigned long long)v->start,
				   (unsigned long long)v->end, path, fatal ? fatal : *why);
	if (*why && v->flags & KCR_VMA_SEALED)
		report_warn("process %d: the mapping %#llx-%#llx %s is sealed by mseal, and will not be "
			    "after a restart on a kernel before Linux 6.10", pid,
			    (unsigned long long)v->start, (unsigned long long)v->end, path);
	return 0;
}

/* A memfd or the like: its contents are saved with the file in any case. */
static bool has_no_name(const struct kcr_vma *v, const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(path), end = sizeof(deleted) - 1;

	return v->flags & KCR_VMA_SHMEM && length >= end && !strcmp(path + length - end, deleted);
}

/* Is the whole mapping to be saved, so that the restart does not need the file? */
static bool is_kept(const struct checkpoint *c, const struct kcr_vma *v, const char *path,
		    uint64_t exe_ino)
{
	if (v->flags & KCR_VMA_SHARED || has_no_name(v, path))
		return false;
	return c->options->save & CHECKPOINT_SAVE_PRIVATE ||
	       (c->options->save & CHECKPOINT_SAVE_EXE && v->ino == exe_ino);
}

/* Adds a mapping up to `end`, without what the program excluded. */
static void add_region(struct address_space *space, const Kcr__Mm *mm, const struct kcr_vma *v,
		       uint64_t end, enum save_pages how)
{
	uint64_t start = v->start, from, to;

	while (start < end) {
		if (!record_excluded(mm, start, end, v->page_size, &from, &to))
			from = to = end;
		if (start < from)
			space->region[space->nr_regions++] = (struct region) {
				.start = start, .end = from, .how = how,
				.anonymous = !v->path && how == SAVE_TOUCHED,
				.origin = v->offset + (start - v->start),
				.large = how == SAVE_TOUCHED &&
					 deferred_suits(v->flags, v->end - v->start),
				.common = how == SAVE_TOUCHED &&
					  context_may_share(v->flags, v->end - v->start),
				.kind = v->flags & CONTEXT_SHARING_KIND,
				/* What a file has changes while the programs run on. */
				.early = how == SAVE_ALL ||
					 v->flags & (KCR_VMA_DONTFORK | KCR_VMA_WIPEONFORK),
			};
		start = to;
	}
}

/* Saves a whole file mapping, except pages beyond the end of the file. */
static int keep(struct checkpoint *c, pid_t pid, const struct kcr_vma *v, const Kcr__Mm *mm,
		struct address_space *space)
{
	int fd = device_mapped_file(c->attempt.job, pid, v->start);
	uint64_t length = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && (uint64_t)st.st_size > v->offset)
		length = (st.st_size - v->offset + CONTEXT_PAGE - 1) / CONTEXT_PAGE * CONTEXT_PAGE;
	close(fd);
	add_region(space, mm, v, length < v->end - v->start ? v->start + length : v->end, SAVE_ALL);
	return 0;
}

/* Decides how to save the pages, and registers the mapping's file. */
static int place(struct checkpoint *c, pid_t pid, const struct kcr_vma *v, const char *path,
		 uint64_t exe_ino, const Kcr__Mm *mm, Kcr__Vma *out, struct address_space *space)
{
	const struct mapped_file *file;
	int err = 0;

	if (v->flags & (KCR_VMA_VDSO | KCR_VMA_VVAR))
		return 0;
	/*
	 * It may become zero at any time, and must be zero in a restored process: it is
	 * the state of a random number generator (getrandom in the vdso).
	 */
	if (v->flags & KCR_VMA_DROPPABLE)
		return 0;
	if (aio_context_is_ring(path))	/* saved with its context */
		return 0;
	if (is_io_uring(path) || socket_memory_is(path))
		return place_memory(c, pid, v, path, out);
	if (is_anonymous(v, path)) {
		add_region(space, mm, v, v->end,
			   out->flags & KCR_VMA_UFFD ? SAVE_PRESENT : SAVE_TOUCHED);
		return 0;
	}
	if (is_kept(c, v, path, exe_ino))
		return keep(c, pid, v, mm, space);
	file = map_file(c, pid, v, path, &err);
	if (!file)
		return err;
	out->has_file_id = true;
	out->file_id = file->id;
	if (!(v->flags & KCR_VMA_SHARED))
		add_region(space, mm, v, v->end, SAVE_COPIED);
	return 0;
}

static int describe_vma(struct checkpoint *c, pid_t pid, const struct kcr_vma *v,
			const char *path, uint64_t exe_ino, Kcr__Mm *mm,
			struct address_space *space)
{
	bool is_kernels = v->flags & (KCR_VMA_VDSO | KCR_VMA_VVAR) || is_io_uring(path);
	const char *why = NULL;
	Kcr__Vma *out;
	int err = 0;

	if (v->flags & KCR_VMA_SPECIAL)
		return 0;		/* the kernel's own, created again when needed */
	if (!is_kernels)
		err = refuse_mapping(c, pid, v, path, mm, &why);
	if (err)
		return err;
	if (v->flags & KCR_VMA_IO && !is_kernels)
		return 0;		/* skipped on request */
	out = malloc(sizeof(*out));
	if (!out)
		return report_errno(-ENOMEM, "process %d: memory map", pid);
	kcr__vma__init(out);
	mm->vma[mm->n_vma++] = out;
	out->start = v->start;
	out->end = v->end;
	out->flags = why ? v->flags & ~KCR_VMA_UFFD : v->flags;
	out->has_offset = out->has_pkey = out->has_page_size = true;
	out->offset = v->path ? v->offset : 0;
	out->has_origin = !v->path && changes_wanted(c);
	out->origin = v->offset;
	out->pkey = v->pkey;
	out->page_size = v->page_size;
	if (*path) {
		out->name = strdup(path);
		if (!out->name)
			return report_errno(-ENOMEM, "process %d: memory map", pid);
	}
	return place(c, pid, v, path, exe_ino, mm, out, space);
}

/*
 * Excluded parts of a private file mapping must be zero, not the file's contents:
 * they become mappings of their own, without the file.
 */
static int describe_pieces(struct checkpoint *c, pid_t pid, const struct kcr_vma *v,
			   const char *path, uint64_t exe_ino, Kcr__Mm *mm,
			   struct address_space *space)
{
	struct kcr_vma piece = *v;
	uint64_t from, to;
	int err = 0;

	while (!err && piece.start < v->end) {
		if (v->flags & KCR_VMA_SHARED || is_anonymous(v, path) || is_kept(c, v, path, exe_ino) ||
		    !record_excluded(mm, piece.start, v->end, v->page_size, &from, &to))
			from = to = v->end;
		piece.end = from;
		if (piece.start < from)
			err = describe_vma(c, pid, &piece, path, exe_ino, mm, space);
		piece.start = from;
		piece.end = to;
		piece.ino = 0;
		if (!err && from < to)
			err = describe_vma(c, pid, &piece, path, exe_ino, mm, space);
		piece.ino = v->ino;
		piece.start = to;
		piece.offset = v->offset + (to - v->start);
	}
	return err;
}

static int save_vdso(struct checkpoint *c, pid_t pid, const struct kcr_vma *v, Kcr__Mm *mm)
{
	struct kcr_run run = {
		.address = v->start, .nr_pages = (v->end - v->start) / CONTEXT_PAGE,
	};

	mm->vdso_text.data = malloc(v->end - v->start);
	if (!mm->vdso_text.data)
		return report_errno(-ENOMEM, "process %d: vdso", pid);
	mm->vdso_text.len = v->end - v->start;
	mm->has_vdso_text = true;
	return device_read(c->attempt.job, pid, 0, mm->vdso_text.data, &run, 1, NULL);
}

static int copy_fields(const struct kcr_mm *from, const struct kcr_process *member, Kcr__Mm *mm)
{
	mm->id = member->mm_id;
	mm->pid = member->pid;
	mm->start_code = from->start_code;
	mm->end_code = from->end_code;
	mm->start_data = from->start_data;
	mm->end_data = from->end_data;
	mm->start_brk = from->start_brk;
	mm->brk = from->brk;
	mm->start_stack = from->start_stack;
	mm->arg_start = from->arg_start;
	mm->arg_end = from->arg_end;
	mm->env_start = from->env_start;
	mm->env_end = from->env_end;
	mm->has_vdso = mm->has_def_flags = mm->has_auxv = true;
	mm->vdso = from->vdso;
	mm->def_flags = member->mm_def_flags;
	mm->has_keys = mm->has_execute_key = from->keys;
	mm->keys = from->keys & ~1u;	/* key 0 is always there */
	mm->execute_key = from->execute_key;
	mm->auxv.len = sizeof(from->auxv);
	mm->auxv.data = malloc(mm->auxv.len);
	if (!mm->auxv.data)
		return report_errno(-ENOMEM, "process %d: memory map", member->pid);
	memcpy(mm->auxv.data, from->auxv, mm->auxv.len);
	return 0;
}

/* The mapping of the executable's code, if it is of the file /proc/TID/exe; or NULL. */
static const Kcr__Vma *exe_mapping(pid_t thread, const Kcr__Mm *mm)
{
	char link[4096];
	ssize_t length = proc_link(thread, "exe", link, sizeof(link));

	for (size_t i = 0; length > 0 && i < mm->n_vma; i++) {
		const Kcr__Vma *v = mm->vma[i];

		if (v->start <= mm->start_code && mm->start_code < v->end)
			return v->has_file_id && v->name && !strcmp(v->name, link) &&
			       !strstr(link, " (deleted)") ? v : NULL;
	}
	return NULL;
}

/* Registers the executable, unless its mappings are saved whole. */
static int describe_exe(struct checkpoint *c, pid_t pid, Kcr__Mm *mm)
{
	const Kcr__Vma *v;
	int fd, err;

	if (c->options->save & (CHECKPOINT_SAVE_EXE | CHECKPOINT_SAVE_PRIVATE))
		return 0;
	v = exe_mapping(scope_thread(&c->attempt.scope, pid), mm);
	if (v) {
		mm->has_exe_file_id = true;
		mm->exe_file_id = v->file_id;
		return 0;
	}
	fd = device_exe_file(c->attempt.job, pid);
	if (fd < 0)
		return fd;
	err = file_table_add(c->attempt.description.files, fd, pid, pid, -1, FILE_MAPPED,
			     &mm->exe_file_id);
	mm->has_exe_file_id = !err;
	return err;
}

static int describe_vmas(struct checkpoint *c, pid_t pid, const struct kcr_vma *vma, size_t count,
			 const char *strings, Kcr__Mm *mm, struct address_space *space)
{
	size_t excluded = record_ranges(mm), room = excluded ? 3 * count + 2 * excluded : count;
	uint64_t exe_ino = 0;
	int err = 0;

	mm->vma = calloc(room + 1, sizeof(*mm->vma));
	space->region = calloc(room + 1, sizeof(*space->region));
	if (!mm->vma || !space->region)
		return report_errno(-ENOMEM, "process %d: memory map", pid);
	for (size_t i = 0; i < count; i++)
		if (vma[i].start <= mm->start_code && mm->start_code < vma[i].end)
			exe_ino = vma[i].ino;
	for (size_t i = 0; !err && i < count; i++) {
		err = describe_pieces(c, pid, &vma[i], vma_path(&vma[i], strings), exe_ino, mm,
				      space);
		if (!err && vma[i].flags & KCR_VMA_VDSO)
			err = save_vdso(c, pid, &vma[i], mm);
	}
	return err;
}

int describe_mm(struct checkpoint *c, const struct kcr_process *member, Kcr__Mm *mm,
		struct address_space *space)
{
	struct kcr_vma *vma;
	const char *strings;
	struct kcr_mm fields;
	int err, count;

	space->pid = member->pid;
	err = device_mm(c->attempt.job, member->pid, &fields);
	if (!err)
		err = copy_fields(&fields, member, mm);
	if (err)
		return err;
	count = device_vmas(c->attempt.job, member->pid, changes_wanted(c) ? KCR_VMAS_ORIGINS : 0,
			    &vma, &strings);
	if (count < 0)
		return count;
	err = record_save(c, member->pid, vma, count, strings, mm);
	if (!err)
		err = describe_vmas(c, member->pid, vma, count, strings, mm, space);
	free(vma);
	if (!err)
		err = guard_save(scope_thread(&c->attempt.scope, member->pid), mm);
	if (!err)
		postponed_choose(c, mm, space);
	return err ? err : describe_exe(c, member->pid, mm);
}
