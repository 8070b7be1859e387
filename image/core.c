// SPDX-License-Identifier: GPL-2.0
/*
 * One process of a context file as an ELF core: headers, notes, then every
 * memory area at full length in a sparse file.  Pages are written to their
 * places in the order of the context file, so the memory needed is one chunk; pages that are
 * equal to others come last, in a second pass.
 *
 * What the context file leaves to the mapped files is copied from them first,
 * if they are unchanged; an area without any data has p_filesz 0 in the core,
 * and the debugger takes it from its own copy of the file.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/elf.h"
#include "image/originals.h"
#include "image/place.h"
#include "proc/mount.h"
#include "report/report.h"
#include "view.h"

#define COPY_BUFFER	(256u << 10)

struct core {
	const struct context *context;
	const Kcr__Process *process;
	const Kcr__Mm *mm;
	const char *path;
	int fd;
	Elf64_Phdr *segment;		/* [0]: notes; then one per area */
	char *buffer;			/* a chunk of pages */
	struct originals originals;	/* of the process's pages that are stored as others */
};

static int write_at(struct core *core, const void *data, size_t length, uint64_t offset)
{
	const char *from = data;

	while (length) {
		ssize_t n = pwrite(core->fd, from, length, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return report_errno(n ? -errno : -EIO, "cannot write %s", core->path);
		from += n;
		offset += n;
		length -= n;
	}
	return 0;
}

/* The same, leaving holes for pages of zeros. */
static int write_sparse(struct core *core, const char *data, size_t length, uint64_t offset)
{
	size_t done, step;
	int err = 0;

	for (done = 0; done < length && !err; done += step) {
		const char *page = data + done;

		step = length - done < CONTEXT_PAGE ? length - done : CONTEXT_PAGE;
		if (page[0] || memcmp(page, page + 1, step - 1))
			err = write_at(core, page, step, offset + done);
	}
	return err;
}

/* ---- layout ---------------------------------------------------------------------- */

static uint32_t segment_flags(uint64_t flags)
{
	return (flags & KCR_VMA_READ ? PF_R : 0) | (flags & KCR_VMA_WRITE ? PF_W : 0) |
	       (flags & KCR_VMA_EXEC ? PF_X : 0);
}

static uint64_t page_up(uint64_t offset)
{
	return (offset + CONTEXT_PAGE - 1) & ~(uint64_t)(CONTEXT_PAGE - 1);
}

/* Untouched pages of such an area are zero: holes in the core. */
static bool reads_as_zero(const Kcr__Vma *vma)
{
	return (!vma->has_file_id || !vma->file_id) && vma->flags & KCR_VMA_READ &&
	       !(vma->flags & KCR_VMA_VVAR);
}

/* Assigns every area its offset; p_filesz stays 0 unless it gets data later. */
static int lay_out(struct core *core, size_t notes_length)
{
	const Kcr__Mm *mm = core->mm;
	uint64_t offset = sizeof(Elf64_Ehdr) + (mm->n_vma + 1) * sizeof(Elf64_Phdr);
	size_t i;

	if (mm->n_vma + 1 >= PN_XNUM)
		return report_fail(-E2BIG, "process %d has too many memory areas for a core",
				   core->process->pid);
	core->segment = calloc(mm->n_vma + 1, sizeof(*core->segment));
	if (!core->segment)
		return report_errno(-ENOMEM, "cannot write the core");
	core->segment[0] = (Elf64_Phdr){
		.p_type = PT_NOTE,
		.p_offset = offset,
		.p_filesz = notes_length,
		.p_align = 4,
	};
	offset = page_up(offset + notes_length);
	for (i = 0; i < mm->n_vma; i++) {
		const Kcr__Vma *vma = mm->vma[i];
		uint64_t length = vma->end - vma->start;

		core->segment[i + 1] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = segment_flags(vma->flags),
			.p_offset = offset,
			.p_vaddr = vma->start,
			.p_memsz = length,
			.p_filesz = reads_as_zero(vma) ? length : 0,
			.p_align = CONTEXT_PAGE,
		};
		offset += length;
	}
	return 0;
}

/* Writes memory to its place; it may span several areas. */
static int put_memory(struct core *core, uint64_t address, const char *data, uint64_t length)
{
	size_t i = context_area(core->mm, address);
	int err = 0;

	for (; length && i < core->mm->n_vma && !err; i++) {
		Elf64_Phdr *segment = &core->segment[i + 1];
		uint64_t into, step;

		if (address < segment->p_vaddr)
			break;
		into = address - segment->p_vaddr;
		step = segment->p_memsz - into < length ? segment->p_memsz - into : length;
		/* Not sparse: these pages replace those of the mapped file. */
		err = write_at(core, data, step, segment->p_offset + into);
		segment->p_filesz = segment->p_memsz;
		address += step;
		data += step;
		length -= step;
	}
	return err;
}

/* ---- files ------------------------------------------------------------------------ */

/* The file whose CONTENT sections this mapping shows. */
static uint32_t content_file(const struct core *core, const Kcr__Vma *vma)
{
	const Kcr__File *file = vma->has_file_id ? context_file(core->context, vma->file_id) : NULL;

	switch (file ? file->kind_case : KCR__FILE__KIND__NOT_SET) {
	case KCR__FILE__KIND_REGULAR:
		return file->regular->has_link_group ? file->regular->link_group : file->id;
	case KCR__FILE__KIND_MEMFD:
		return file->memfd->same_as;
	case KCR__FILE__KIND_SHARED_MEMORY:
		return file->shared_memory->same_as;
	default:
		return 0;
	}
}

/* Writes contents of a file from the context file, wherever they are mapped. */
static int put_contents(struct core *core, const struct context_item *item)
{
	size_t i;
	int err = 0;

	for (i = 0; i < core->mm->n_vma && !err; i++) {
		const Kcr__Vma *vma = core->mm->vma[i];
		Elf64_Phdr *segment = &core->segment[i + 1];
		uint64_t from = item->offset, to = item->offset + item->length;
		uint64_t end = vma->offset + segment->p_memsz;

		if (content_file(core, vma) != item->file_id)
			continue;
		if (from < vma->offset)
			from = vma->offset;
		if (to > end)
			to = end;
		if (from >= to)
			continue;
		err = write_sparse(core, (const char *)item->data + (from - item->offset),
				   to - from, segment->p_offset + (from - vma->offset));
		segment->p_filesz = segment->p_memsz;
	}
	return err;
}

/* Opens a regular file if it is unchanged (size, mtime), else -1. */
static int open_unchanged(const Kcr__RegularFile *file)
{
	struct stat st;
	int fd;

	if (file->deleted || stat(file->path, &st) || !S_ISREG(st.st_mode))
		return -1;
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size &&
	    st.st_mtim.tv_sec == file->mtime_sec &&
	    (uint32_t)st.st_mtim.tv_nsec == file->mtime_nsec)
		return fd;
	close(fd);
	return -1;
}

static int copy_file(struct core *core, int fd, const Kcr__Vma *vma, Elf64_Phdr *segment)
{
	uint64_t done = 0;
	int err = 0;

	while (done < segment->p_memsz && !err) {
		uint64_t left = segment->p_memsz - done;
		ssize_t n = pread(fd, core->buffer, left < COPY_BUFFER ? left : COPY_BUFFER,
				  vma->offset + done);

		/* End of file or read error: the rest stays zero. */
		if (n <= 0)
			break;
		err = write_sparse(core, core->buffer, n, segment->p_offset + done);
		done += n;
	}
	segment->p_filesz = segment->p_memsz;
	return err;
}

/*
 * Not with rights that whoever has made the image may lack: what it names, it is not to have in a
 * core that is passed on.
 */
static bool may_copy(const struct context_reader *r)
{
	int fd = context_reader_fd(r);
	char what[256];
	struct stat st;

	return geteuid() || (!fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid &&
			     !mount_makes_up_owners(fd, what, sizeof(what)));
}

static int copy_mapped_files(struct core *core)
{
	size_t i;
	int err = 0;

	for (i = 0; i < core->mm->n_vma && !err; i++) {
		const Kcr__Vma *vma = core->mm->vma[i];
		const Kcr__File *file = vma->has_file_id ?
			context_file(core->context, vma->file_id) : NULL;
		int fd;

		if (!file || file->kind_case != KCR__FILE__KIND_REGULAR)
			continue;
		fd = open_unchanged(file->regular);
		if (fd < 0)
			continue;
		err = copy_file(core, fd, vma, &core->segment[i + 1]);
		close(fd);
	}
	return err;
}

/* ---- the core ----------------------------------------------------------------------- */

static int put_pages(struct core *core, struct context_reader *r, const struct context_item *item)
{
	const char *data = core->buffer;
	int err = context_memory_read(r, core->buffer);
	size_t i;

	for (i = 0; i < item->nr_runs && !err; i++) {
		uint64_t length = item->runs[i].nr_pages * CONTEXT_PAGE;

		err = put_memory(core, item->runs[i].address, data, length);
		data += length;
	}
	return err;
}

/* Does the page belong to the sharer?  Pages come by ascending address; *run: where to look. */
static bool is_shared(const struct context_sharer *sharer, size_t *run, uint64_t address)
{
	const struct kcr_run *at = &sharer->runs[*run];

	if (*run < sharer->nr_runs && address >= at->address + at->nr_pages * CONTEXT_PAGE)
		at = &sharer->runs[++*run];
	return *run < sharer->nr_runs && address >= at->address;
}

/* The pages of another process that are this one's as well. */
static int put_shared(struct core *core, struct context_reader *r, const struct context_item *item,
		      const struct context_sharer *sharer)
{
	const char *data = core->buffer;
	int err = context_memory_read(r, core->buffer);
	size_t run = 0;

	for (size_t i = 0; i < item->nr_runs; i++)
		for (uint64_t k = 0; k < item->runs[i].nr_pages && !err; k++) {
			uint64_t address = item->runs[i].address + k * CONTEXT_PAGE;

			if (is_shared(sharer, &run, address))
				err = put_memory(core, address, data, CONTEXT_PAGE);
			data += CONTEXT_PAGE;
		}
	return err;
}

static const struct context_sharer *sharer_of(const struct core *core,
					      const struct context_item *item)
{
	for (size_t i = 0; i < item->nr_sharers; i++)
		if (item->sharer[i].pid == core->mm->pid)
			return &item->sharer[i];
	return NULL;
}

static int put_duplicate(void *arg, uint64_t address, const void *page)
{
	return put_memory(arg, address, page, CONTEXT_PAGE);
}

static int put_sections(struct core *core, struct context_reader *r)
{
	struct context_item item;
	int ret;

	while ((ret = context_read(r, &item)) > 0) {
		int err = 0;

		if (item.type == CONTEXT_CONTENT)
			err = put_contents(core, &item);
		else if (item.type == CONTEXT_MEMORY && item.pid == core->mm->pid)
			err = put_pages(core, r, &item);
		else if (item.type == CONTEXT_DUPLICATES && item.pid == core->mm->pid)
			err = originals_note(&core->originals, &item);
		else if (sharer_of(core, &item))
			err = put_shared(core, r, &item, sharer_of(core, &item));
		if (err)
			return err;
	}
	return ret ?: originals_read(&core->originals, r, put_duplicate, core);
}

static int put_vdso(struct core *core)
{
	const Kcr__Mm *mm = core->mm;

	if (!mm->has_vdso || !mm->vdso || !mm->has_vdso_text)
		return 0;
	return put_memory(core, mm->vdso, (const char *)mm->vdso_text.data, mm->vdso_text.len);
}

/* The length includes holes at the end. */
static int set_length(struct core *core)
{
	uint64_t length = 0;
	size_t i;

	for (i = 0; i <= core->mm->n_vma; i++)
		if (core->segment[i].p_filesz)
			length = core->segment[i].p_offset + core->segment[i].p_filesz;
	if (ftruncate(core->fd, length))
		return report_errno(-errno, "cannot write %s", core->path);
	return 0;
}

static int write_headers(struct core *core)
{
	const Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT, ELFOSABI_NONE },
		.e_type = ET_CORE,
		.e_machine = ARCH_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = core->mm->n_vma + 1,
	};

	return write_at(core, &head, sizeof(head), 0) ?:
	       write_at(core, core->segment, head.e_phnum * sizeof(Elf64_Phdr), head.e_phoff);
}

static int fill_core(struct core *core, struct context_reader *r)
{
	size_t length;
	void *notes;
	int err;

	core->buffer = malloc(CONTEXT_CHUNK_PAGES * CONTEXT_PAGE);
	if (!core->buffer)
		return report_errno(-ENOMEM, "cannot write the core");
	err = core_notes(core->context, core->process, core->mm, &notes, &length);
	if (err)
		return err;
	err = lay_out(core, length);
	if (!err)
		err = write_at(core, notes, length, core->segment[0].p_offset);
	free(notes);
	if (!err && may_copy(r))
		err = copy_mapped_files(core);
	if (!err)
		err = put_vdso(core);
	if (!err)
		err = put_sections(core, r);
	return err ?: set_length(core) ?: write_headers(core);
}

static const Kcr__Mm *find_mm(const struct context *c, const Kcr__Process *p)
{
	size_t i;

	for (i = 0; i < c->nr_processes; i++)
		if (c->process[i]->mm && c->process[i]->mm->id == p->mm_id)
			return c->process[i]->mm;
	return NULL;
}

/* A core has private data of the process: never write it to a file that others have open. */
static int open_core(struct core *core, struct place *place)
{
	struct stat st;
	int err = place_find(place, core->path, true);

	if (err)
		return err;
	if (!fstatat(place->folder, place->name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode))
		core->fd = place_open_special(place, core->path);
	else
		core->fd = place_create(place, core->path);
	if (core->fd < 0)
		place_close(place);
	return core->fd < 0 ? core->fd : 0;
}

int core_write(struct context_reader *r, const struct context *c, int32_t pid, const char *path)
{
	struct core core = { .context = c, .path = path, .process = context_process(c, pid) };
	struct place place;
	struct stat st;
	int err, placed = 0;
	bool is_file;

	if (!core.process)
		return report_fail(-ESRCH, "there is no process %d in the context file", pid);
	if (c->preamble->n_ancestor)
		return report_fail(-EINVAL, "the context file is an increment, which has not all of the "
				   "memory: make a full image first (cr_info --merge)");
	if (!core.process->n_thread)
		return report_fail(-ESRCH, "process %d is a zombie: it has no memory", pid);
	core.mm = find_mm(c, core.process);
	err = open_core(&core, &place);
	if (err)
		return err;
	is_file = !fstat(core.fd, &st) && S_ISREG(st.st_mode);
	err = fill_core(&core, r);
	if (close(core.fd) && !err)
		err = report_errno(-errno, "cannot write %s", path);
	if (is_file)
		placed = place_commit(&place, path, !err);
	place_close(&place);
	originals_free(&core.originals);
	free(core.segment);
	free(core.buffer);
	return err ? err : placed;
}
