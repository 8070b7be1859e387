// SPDX-License-Identifier: GPL-2.0
/*
 * One mmap(2) per saved VMA, then madvise(2), mlock2(2) and mseal(2) for it, and
 * prctl(PR_SET_MM_MAP).  The vdso is not here (vdso.c).  See address_space.h.
 */
#include "restart/address_space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/kcr.h>
#include <linux/prctl.h>

#include "arch/address.h"
#include "rebuild/restorer.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/mempolicy.h"
#include "restart/aio_rings.h"
#include "restart/inherited.h"
#include "restart/keys.h"
#include "restart/lazy.h"
#include "restart/user_faults.h"

#ifndef SYS_mseal
#define SYS_mseal	462		/* Linux 6.10 */
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT	1
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23		/* Linux 5.14 */
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102		/* Linux 6.13 */
#endif
#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE	8		/* Linux 6.11 */
#endif
#define HUGE_SHIFT	26		/* of log2(page size) in the flags of mmap(2) */
#define AT_NULL		0
/* Mappings that only the kernel or a driver can create. */
#define NOT_MAPPABLE	(KCR_VMA_IO | KCR_VMA_SPECIAL)
#define KERNEL_MADE	(KCR_VMA_VDSO | KCR_VMA_VVAR)

static const struct { uint64_t flag; int advice; const char *name; } advices[] = {
	{ KCR_VMA_DONTFORK, MADV_DONTFORK, "MADV_DONTFORK" },
	{ KCR_VMA_WIPEONFORK, MADV_WIPEONFORK, "MADV_WIPEONFORK" },
	{ KCR_VMA_DONTDUMP, MADV_DONTDUMP, "MADV_DONTDUMP" },
	{ KCR_VMA_MERGEABLE, MADV_MERGEABLE, "MADV_MERGEABLE" },
	{ KCR_VMA_HUGEPAGE, MADV_HUGEPAGE, "MADV_HUGEPAGE" },
	{ KCR_VMA_NOHUGEPAGE, MADV_NOHUGEPAGE, "MADV_NOHUGEPAGE" },
	{ KCR_VMA_SEQ_READ, MADV_SEQUENTIAL, "MADV_SEQUENTIAL" },
	{ KCR_VMA_RAND_READ, MADV_RANDOM, "MADV_RANDOM" },
};

static bool has_user_fault(const Kcr__Mm *mm, const Kcr__Vma *vma)
{
	for (size_t i = 0; i < mm->n_user_fault; i++)
		if (mm->user_fault[i]->start == vma->start)
			return true;
	return false;
}

int memory_check(const Kcr__Process *p, const Kcr__Mm *mm)
{
	for (size_t i = 0; i < mm->n_vma; i++) {
		const Kcr__Vma *vma = mm->vma[i];
		bool execute_only = (vma->flags & (KCR_VMA_READ | KCR_VMA_WRITE | KCR_VMA_EXEC)) ==
				    KCR_VMA_EXEC;

		if (vma->flags & KERNEL_MADE)
			continue;
		if (vma->flags & NOT_MAPPABLE ||
		    (vma->flags & KCR_VMA_UFFD && !has_user_fault(mm, vma)))
			return report_fail(-EOPNOTSUPP, "process %d: the mapping %s at %" PRIx64
					   " cannot be rebuilt", p->pid,
					   vma->name ? vma->name : "of a device", vma->start);
		if (vma->pkey && !execute_only && !mm->has_keys)
			return report_fail(-EOPNOTSUPP, "process %d: the mapping at %" PRIx64
					   " has a protection key", p->pid, vma->start);
	}
	if (mm->n_guard && madvise(NULL, 0, MADV_GUARD_INSTALL))
		return report_fail(-EOPNOTSUPP, "process %d has guard regions (madvise with "
				   "MADV_GUARD_INSTALL), which need Linux 6.13", p->pid);
	return keys_check(p, mm);
}

static int protection(const Kcr__Vma *vma)
{
	return (vma->flags & KCR_VMA_READ ? PROT_READ : 0) |
	       (vma->flags & KCR_VMA_WRITE ? PROT_WRITE : 0) |
	       (vma->flags & KCR_VMA_EXEC ? PROT_EXEC : 0);
}

/* Has this kernel memory that it may drop?  Where not, the program's becomes ordinary memory. */
static bool may_be_droppable(void)
{
	static int known = -1;
	void *page;

	if (known < 0) {
		page = mmap(NULL, 1, PROT_NONE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
		known = page != MAP_FAILED;
		if (known)
			munmap(page, 1);
	}
	return known;
}

static int map_flags(const Kcr__Vma *vma)
{
	int flags = vma->flags & KCR_VMA_SHARED ? MAP_SHARED : MAP_PRIVATE;

	if (vma->flags & KCR_VMA_DROPPABLE && may_be_droppable())
		flags = MAP_DROPPABLE;
	flags |= MAP_FIXED_NOREPLACE;
	if (vma->flags & KCR_VMA_GROWSDOWN)
		flags |= MAP_GROWSDOWN;
	if (vma->flags & KCR_VMA_NORESERVE)
		flags |= MAP_NORESERVE;
	if (vma->file_id)
		return flags;
	flags |= MAP_ANONYMOUS;
	if ((vma->flags & KCR_VMA_HUGETLB) && vma->page_size)
		flags |= MAP_HUGETLB | __builtin_ctz(vma->page_size) << HUGE_SHIFT;
	return flags;
}

/*
 * A System V segment is attached, so that the kernel counts the attachment, with the rights that
 * it was attached with, whatever mprotect(2) left of these.  The inode number of its file is the
 * shmid.
 */
static int attach(const Kcr__Vma *vma, int fd, struct script *s)
{
	int flags = vma->flags & KCR_VMA_MAYWRITE ? 0 : SHM_RDONLY;
	int attached = PROT_READ | (flags ? 0 : PROT_WRITE), wanted = protection(vma);
	char label[RESTORER_LABEL];
	struct stat st;

	if (fstat(fd, &st))
		return report_errno(-errno, "the segment at %" PRIx64, vma->start);
	snprintf(label, sizeof(label), "shmat(segment %ju) at %" PRIx64, (uintmax_t)st.st_ino,
		 vma->start);
	if (wanted & PROT_EXEC) {
		flags |= SHM_EXEC;
		attached |= PROT_EXEC;
	}
	script_call_expect(s, label, vma->start, SYS_shmat, st.st_ino, vma->start, flags, 0, 0, 0);
	if (wanted != attached)
		script_call(s, label, SYS_mprotect, vma->start, vma->end - vma->start, wanted, 0, 0, 0);
	return 0;
}

/* Memory of an io_uring: programs may not choose its address (since Linux 6.5). */
static bool is_io_uring(const struct rebuild *r, const Kcr__Vma *vma)
{
	const Kcr__File *file = vma->file_id ? context_file(r->context, vma->file_id) : NULL;

	return file && file->kind_case == KCR__FILE__KIND_IO_URING;
}

static void map_io_uring(const struct rebuild *r, const Kcr__Vma *vma, int fd, const char *label,
			 struct script *s)
{
	struct kcr_map map = {
		.size = sizeof(map), .fd = fd, .prot = protection(vma), .address = vma->start,
		.length = vma->end - vma->start, .offset = vma->offset,
	};

	script_call(s, label, SYS_ioctl, r->job, KCR_IOC_MAP, script_data(s, &map, sizeof(map)),
		    0, 0, 0);
}

/* Is it a whole segment, as shmat(2) maps it? */
static bool is_whole_segment(const struct rebuild *r, const Kcr__Vma *vma)
{
	const Kcr__File *file = vma->file_id ? context_file(r->context, vma->file_id) : NULL;
	uint64_t mask = vma->page_size > 4096 ? vma->page_size - 1 : 4095;

	return file && file->kind_case == KCR__FILE__KIND_SHARED_MEMORY &&
	       file->shared_memory->sysv && !vma->offset &&
	       ((file->shared_memory->size + mask) & ~mask) == vma->end - vma->start;
}

static int map(struct rebuild *r, const Kcr__Process *p, const Kcr__Vma *vma, struct script *s)
{
	uint64_t length = vma->end - vma->start;
	char label[RESTORER_LABEL];
	int fd = -1;

	if (aio_rings_script(r, p->mm, vma, s) ||
	    inherited_script(r->inherited, p, vma, protection(vma), s))
		return 0;
	snprintf(label, sizeof(label), "mapping %s at %" PRIx64,
		 vma->name && *vma->name ? vma->name : "memory", vma->start);
	if (vma->file_id) {
		fd = r->file_fd[vma->file_id - 1];
		if (fd < 0)
			return report_fail(-EOPNOTSUPP, "process %d: the file mapped at %" PRIx64
					   " (%s) could not be opened", p->pid, vma->start,
					   vma->name ? vma->name : "?");
	}
	if (is_whole_segment(r, vma))
		return attach(vma, fd, s);
	if (is_io_uring(r, vma)) {
		map_io_uring(r, vma, fd, label, s);
		return 0;
	}
	script_call_expect(s, label, vma->start, SYS_mmap, vma->start, length, protection(vma),
			   map_flags(vma), (uint64_t)(int64_t)fd, vma->file_id ? vma->offset : 0);
	return 0;
}

static void advise(const Kcr__Vma *vma, struct script *s)
{
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++)
		if (vma->flags & advices[i].flag)
			script_call_try(s, advices[i].name, SYS_madvise, vma->start,
					vma->end - vma->start, advices[i].advice, 0, 0, 0);
}

/*
 * Writes to a page and drops it.  If it is a huge one, that lies in the mapping, which is larger
 * than two.
 */
static void begin(const Kcr__Vma *vma, struct script *s)
{
	static const char label[] = "madvise of memory that is loaded lazily";
	uint64_t page = (vma->start + ARCH_HUGE_PAGE - 1) & ~(uint64_t)(ARCH_HUGE_PAGE - 1);

	script_call(s, label, SYS_madvise, page, 4096, MADV_POPULATE_WRITE, 0, 0, 0);
	script_call(s, label, SYS_madvise, vma->start, vma->end - vma->start, MADV_DONTNEED, 0, 0, 0);
}

/*
 * The first lock faults in no pages, so it fails only if the limit is exceeded.
 * The second one fails if not all pages can be faulted in (PROT_NONE, beyond the
 * end of the file), as it did for the program, but locks the VMA nevertheless.
 */
static void lock(const Kcr__Vma *vma, struct script *s)
{
	if (vma->flags & KCR_VMA_LOCKED)
		script_call(s, "mlock (the limit of locked memory is too low?)", SYS_mlock2,
			    vma->start, vma->end - vma->start, MLOCK_ONFAULT, 0, 0, 0);
	if ((vma->flags & KCR_VMA_LOCKED) && !(vma->flags & KCR_VMA_LOCKONFAULT))
		script_call_try(s, "mlock", SYS_mlock2, vma->start, vma->end - vma->start,
				0, 0, 0, 0);
	if (vma->flags & KCR_VMA_SEALED)
		script_call_try(s, "mseal", SYS_mseal, vma->start, vma->end - vma->start,
				0, 0, 0, 0);
}

/* Bytes of the auxiliary vector up to and including AT_NULL. */
static size_t auxv_length(const Kcr__Mm *mm)
{
	uint64_t entry[2];
	size_t at = 0;

	while (at + sizeof(entry) <= mm->auxv.len) {
		memcpy(entry, mm->auxv.data + at, sizeof(entry));
		at += sizeof(entry);
		if (entry[0] == AT_NULL)
			break;
	}
	return at;
}

static void set_fields(const Kcr__Mm *mm, struct script *s)
{
	struct prctl_mm_map map = {
		.start_code = mm->start_code, .end_code = mm->end_code,
		.start_data = mm->start_data, .end_data = mm->end_data,
		.start_brk = mm->start_brk, .brk = mm->brk, .start_stack = mm->start_stack,
		.arg_start = mm->arg_start, .arg_end = mm->arg_end,
		.env_start = mm->env_start, .env_end = mm->env_end,
		.auxv_size = auxv_length(mm), .exe_fd = (uint32_t)-1,
	};

	map.auxv = (void *)(uintptr_t)script_data(s, mm->auxv.data, map.auxv_size);
	script_call(s, "prctl(PR_SET_MM_MAP)", SYS_prctl, PR_SET_MM, PR_SET_MM_MAP,
		    script_data(s, &map, sizeof(map)), sizeof(map), 0, 0);
	if (mm->def_flags & KCR_VMA_LOCKED)
		script_call(s, "mlockall", SYS_mlockall, MCL_FUTURE |
			    (mm->def_flags & KCR_VMA_LOCKONFAULT ? MCL_ONFAULT : 0), 0, 0, 0, 0, 0);
}

int memory_script(struct rebuild *r, const Kcr__Process *p, const Kcr__Mm *mm, struct script *s)
{
	keys_script_first(mm, s);
	for (size_t i = 0; i < mm->n_vma; i++) {
		int err;

		if (mm->vma[i]->flags & KERNEL_MADE)
			continue;
		err = map(r, p, mm->vma[i], s);
		if (err)
			return err;
		advise(mm->vma[i], s);
		/* Before it has a key that the thread may have no rights to. */
		if (lazy_begins(r, mm, mm->vma[i]))
			begin(mm->vma[i], s);
		keys_script_mapping(mm, mm->vma[i], s);
	}
	keys_script_last(mm, s);
	for (size_t i = 0; i < mm->n_guard; i++)
		script_call(s, "madvise(MADV_GUARD_INSTALL)", SYS_madvise, mm->guard[i]->start,
			    mm->guard[i]->end - mm->guard[i]->start, MADV_GUARD_INSTALL, 0, 0, 0);
	mempolicy_script(r, p, mm, s);
	for (size_t i = 0; i < mm->n_vma; i++)
		lock(mm->vma[i], s);
	set_fields(mm, s);
	return user_faults_script(r, p, s);
}

uint64_t memory_script_size(const struct rebuild *r, const Kcr__Process *p, const Kcr__Mm *mm)
{
	/*
	 * Per VMA: the mapping (of an io_uring with its data, of a segment with its protection), a
	 * first page, its key, perhaps two pieces of advice, two locks and a seal.
	 */
	uint64_t size = mm->n_vma * (10 * sizeof(struct restorer_op) + RESTORER_LABEL) +
			mm->n_guard * sizeof(struct restorer_op) + mempolicy_script_size(mm);

	return size + inherited_script_size(r->inherited, p) + user_faults_script_size(r->context, p) +
	       mm->vdso_text.len + mm->auxv.len + 4096;
}
