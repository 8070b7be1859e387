/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's memory interfaces in the version this is built for: walking a
 * process's VMAs, getting pages of another address space, names of flags that
 * are newer than the oldest supported kernel (5.10).
 * Used by mm.c, list.c, vma.c, scan.c, pages.c, snapshot.c, track.c, guard.c
 * and userfault.c only.
 */
#ifndef KCR_COMPAT_MM_H
#define KCR_COMPAT_MM_H

#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/version.h>
#include <uapi/linux/userfaultfd.h>

/* 6.1: the maple tree replaced the list of VMAs (763ecb035029). */
#define KCR_HAVE_VMA_ITERATOR	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0))
/* 6.3: flags of a VMA change through functions (bc292ab00f6c). */
#define KCR_HAVE_VM_FLAGS_SET	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0))
/*
 * 5.19: mprotect(2) made pages writable without regard to the soft-dirty bit
 * (64fe24a3e05e); 6.0 has the repair (76aefad628aa).
 */
#define KCR_HAVE_SOFT_DIRTY	(IS_ENABLED(CONFIG_MEM_SOFT_DIRTY) &&		\
				 (LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0) ||	\
				  LINUX_VERSION_CODE >= KERNEL_VERSION(6, 0, 0)))
/* 5.11: clearing soft-dirty bits leaves those of pinned small pages (9348b73c2e1b). */
#define KCR_HAVE_PINNED_KEEP_DIRTY	(LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0))
/* 6.5: get_user_pages_remote() lost its vmas argument (ca5e863233e8). */
#define KCR_HAVE_GUP_VMAS	(LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0))
/* 5.19: PTE markers, entries without a page (679d10331910). */
#define KCR_HAVE_PTE_MARKER	(LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0))
/* 6.19: "leaf entries" replaced the tests on swap entries. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#include <linux/leafops.h>
#define KCR_HAVE_LEAF_ENTRIES	1
#else
#define KCR_HAVE_LEAF_ENTRIES	0
#endif
/* 6.7: get_file_rcu() takes the pointer's address and is exported (0ede61d8589c). */
#define KCR_HAVE_FILE_RCU_PTR	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0))

/* 5.14: memfd_secret(2), whose pages are not in the kernel's direct map. */
#ifdef SECRETMEM_MAGIC
#define KCR_HAVE_SECRETMEM	1
#else
#define KCR_HAVE_SECRETMEM	0
#endif

/* 6.3: PR_SET_MDWE (b507808ebce2), with one more flag from 6.6 on; before, there was none. */
#ifdef MMF_HAS_MDWE_MASK
#define KCR_HAVE_MDWE		1
#else
#define KCR_HAVE_MDWE		0
#endif
/* 6.18: flags of an mm are read by functions. */
#define KCR_HAVE_MM_FLAGS_TEST	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0))

/* May memory be made executable that was not (*refused: no), and is that inherited (*own: no)? */
static inline void kcr_mm_mdwe(const struct mm_struct *mm, bool *refused, bool *own)
{
	*refused = false;
	*own = false;
#if KCR_HAVE_MDWE && KCR_HAVE_MM_FLAGS_TEST
	*refused = mm_flags_test(MMF_HAS_MDWE, mm);
	*own = mm_flags_test(MMF_HAS_MDWE_NO_INHERIT, mm);
#elif KCR_HAVE_MDWE
	*refused = test_bit(MMF_HAS_MDWE, &mm->flags);
#ifdef MMF_HAS_MDWE_NO_INHERIT
	*own = test_bit(MMF_HAS_MDWE_NO_INHERIT, &mm->flags);
#endif
#endif
}

/*
 * Are breakpoints of uprobes in its code, or return addresses perhaps in the area that is made
 * for the first that is hit?  Neither is undone at once when the probes are removed.
 */
static inline bool kcr_mm_has_uprobes(const struct mm_struct *mm)
{
#ifndef CONFIG_UPROBES
	return false;
#elif KCR_HAVE_MM_FLAGS_TEST
	return mm_flags_test(MMF_HAS_UPROBES, mm) || READ_ONCE(mm->uprobes_state.xol_area);
#else
	return test_bit(MMF_HAS_UPROBES, &mm->flags) || READ_ONCE(mm->uprobes_state.xol_area);
#endif
}

/*
 * To which memory cgroup belong pages that are made for an mm?  To that of its owner, or to the root
 * cgroup, without a limit, if it has none.
 */
static inline bool kcr_mm_has_owner(const struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	return rcu_access_pointer(mm->owner);
#else
	return true;
#endif
}

/* For the mm of no process; `task` must live until this is called with NULL. */
static inline void kcr_mm_set_owner(struct mm_struct *mm, struct task_struct *task)
{
#ifdef CONFIG_MEMCG
	rcu_assign_pointer(mm->owner, task);
#endif
}

/* No huge page is made in it any more. */
static inline void kcr_mm_keep_small(struct mm_struct *mm)
{
#if KCR_HAVE_MM_FLAGS_TEST
	mm_flags_set(MMF_DISABLE_THP_COMPLETELY, mm);
#else
	set_bit(MMF_DISABLE_THP, &mm->flags);
#endif
}

static inline bool kcr_vma_is_secret(const struct vm_area_struct *vma)
{
#if KCR_HAVE_SECRETMEM
	return vma->vm_file && file_inode(vma->vm_file)->i_sb->s_magic == SECRETMEM_MAGIC;
#else
	return false;
#endif
}

#if KCR_HAVE_VMA_ITERATOR
#define kcr_for_each_vma(mm, vma)					\
	for (VMA_ITERATOR(kcr_vmi, mm, 0); (vma = vma_next(&kcr_vmi)); )
#else
#define kcr_for_each_vma(mm, vma)					\
	for (vma = (mm)->mmap; vma; vma = vma->vm_next)
#endif

/* Gets up to nr pages for reading; the caller holds mmap_lock and puts them. */
static inline long kcr_get_pages(struct mm_struct *mm, unsigned long address,
				 unsigned long nr, struct page **pages)
{
#if KCR_HAVE_GUP_VMAS
	return get_user_pages_remote(mm, address, nr, FOLL_FORCE, pages, NULL, NULL);
#else
	return get_user_pages_remote(mm, address, nr, FOLL_FORCE, pages, NULL);
#endif
}

/* Pins up to nr pages for overwriting; to be unpinned as dirty. */
static inline long kcr_pin_pages(struct mm_struct *mm, unsigned long address,
				 unsigned long nr, struct page **pages)
{
#if KCR_HAVE_GUP_VMAS
	return pin_user_pages_remote(mm, address, nr, FOLL_WRITE | FOLL_FORCE,
				     pages, NULL, NULL);
#else
	return pin_user_pages_remote(mm, address, nr, FOLL_WRITE | FOLL_FORCE,
				     pages, NULL);
#endif
}

/* Marks a mapping as new since soft-dirty bits were cleared.  mmap_lock held for writing. */
static inline void kcr_vma_set_new(struct vm_area_struct *vma)
{
#if KCR_HAVE_VM_FLAGS_SET
	vm_flags_set(vma, VM_SOFTDIRTY);
#else
	vma->vm_flags |= VM_SOFTDIRTY;
#endif
}

/* Has a page ever been pinned for writing from outside the page tables (DMA)? */
static inline bool kcr_mm_has_pinned(struct mm_struct *mm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return mm_flags_test(MMF_HAS_PINNED, mm);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0)	/* a458b76a41ba */
	return test_bit(MMF_HAS_PINNED, &mm->flags);
#else
	return atomic_read(&mm->has_pinned);
#endif
}

/* An entry without content: a guard, a poisoned or a write-protect marker. */
static inline bool kcr_pte_is_marker(pte_t pte)
{
#if KCR_HAVE_LEAF_ENTRIES
	return pte_is_marker(pte);
#elif KCR_HAVE_PTE_MARKER
	return is_pte_marker(pte);
#else
	return false;
#endif
}

/* The executable, to be fput(), or NULL. */
static inline struct file *kcr_mm_exe_file(struct mm_struct *mm)
{
	struct file *file;

#if KCR_HAVE_FILE_RCU_PTR
	rcu_read_lock();
	file = get_file_rcu(&mm->exe_file);
	rcu_read_unlock();
#else
	rcu_read_lock();
	file = rcu_dereference(mm->exe_file);
	if (file && !get_file_rcu(file))
		file = NULL;
	rcu_read_unlock();
#endif
	return file;
}

#ifdef VM_UFFD_MINOR		/* 5.13 (7677f7fd8be7) */
#define KCR_VM_UFFD_MINOR	VM_UFFD_MINOR
#define KCR_UFFD_MODE_MINOR	((u32)UFFDIO_REGISTER_MODE_MINOR)
#else
#define KCR_VM_UFFD_MINOR	0UL
#define KCR_UFFD_MODE_MINOR	0U
#endif
#define KCR_VM_UFFD	(VM_UFFD_MISSING | VM_UFFD_WP | KCR_VM_UFFD_MINOR)

/*
 * 5.16: all changes of a mapping that are under way are counted, so that UFFDIO_COPY knows of
 * each (a759a909d42d); before, the first that ended hid the others.
 */
#define KCR_HAVE_UFFD_EVENTS	(IS_ENABLED(CONFIG_USERFAULTFD) &&		\
				 LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0))

/* What the file of a userfaultfd that gets this mapping's faults has as private_data; or NULL. */
static inline const void *kcr_vma_userfault(const struct vm_area_struct *vma)
{
#ifdef CONFIG_USERFAULTFD
	return vma->vm_userfaultfd_ctx.ctx;
#else
	return NULL;
#endif
}

/* How it is registered there: UFFDIO_REGISTER_MODE_*. */
static inline u32 kcr_vma_userfault_mode(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & VM_UFFD_MISSING ? UFFDIO_REGISTER_MODE_MISSING : 0) |
	       (vma->vm_flags & VM_UFFD_WP ? UFFDIO_REGISTER_MODE_WP : 0) |
	       (vma->vm_flags & KCR_VM_UFFD_MINOR ? KCR_UFFD_MODE_MINOR : 0);
}

#ifdef VM_DROPPABLE		/* 6.11 (9651fcedf7b9) */
#define KCR_VM_DROPPABLE	VM_DROPPABLE
#else
#define KCR_VM_DROPPABLE	0UL
#endif

#ifdef VM_SEALED		/* 6.10 (8be7258aad44) */
#define KCR_VM_SEALED	VM_SEALED
#else
#define KCR_VM_SEALED	0UL
#endif

#endif /* KCR_COMPAT_MM_H */
