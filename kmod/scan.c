// SPDX-License-Identifier: GPL-2.0
/*
 * Finding the pages worth saving (KCR_IOC_SCAN) by reading page tables: untouched
 * memory costs one check per table, not per page.
 *
 * Locks: mmap_lock of the address space, shared, for the whole scan; the lock
 * of one page table, under RCU, while its entries are read, so that a page
 * whose content is looked at cannot be reclaimed meanwhile.  An entry without
 * a page in memory (swapped out, being migrated) is always worth saving.
 * Page tables shared by several mappings of a hugetlb file are unshared under
 * the file's i_mmap_rwsem alone, without our mmap_lock.
 * See pages.c for the saving.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat/mm.h"
#include "ioctl.h"
#include "job.h"

#define MAX_RUNS	65536u	/* per call: limits its memory */

struct scan {
	struct mm_struct *mm;
	struct address_space *tables;	/* whose mappings may share page tables, or NULL */
	struct kcr_run *runs;
	u32 max_runs;
	u32 nr_runs;
	u64 max_pages;
	u64 nr_pages;
	bool anon_only;		/* private file mapping */
	bool drop_zero;
	bool changes;		/* say which pages are unchanged … */
	bool huge_changes;	/* … in huge pages, too */
	bool markers;
	unsigned long next;	/* set when there is no more room */
};

/* `address` plus KCR_RUN_*.  False: no room for the page. */
static bool add_page(struct scan *s, unsigned long address)
{
	struct kcr_run *run = s->nr_runs ? &s->runs[s->nr_runs - 1] : NULL;

	if (s->nr_pages == s->max_pages)
		goto full;
	if (!run || run->address + run->nr_pages * PAGE_SIZE != address) {
		if (s->nr_runs == s->max_runs)
			goto full;
		run = &s->runs[s->nr_runs++];
		run->address = address;
		run->nr_pages = 0;
	}
	run->nr_pages++;
	s->nr_pages++;
	return true;
full:
	s->next = address & PAGE_MASK;
	return false;
}

static bool add_all(struct scan *s, unsigned long address, unsigned long end)
{
	for (; address < end; address += PAGE_SIZE)
		if (!add_page(s, address))
			return false;
	return true;
}

static bool page_is_zero(struct page *page)
{
	const u64 *data = page_address(page);

	return !data[0] && !memchr_inv(data, 0, PAGE_SIZE);
}

/* Is the page worth saving?  The lock of its page table entry is held. */
static bool is_worth(struct scan *s, unsigned long pfn)
{
	struct page *page;

	if (is_zero_pfn(pfn))
		return !s->drop_zero;
	if (!pfn_valid(pfn))
		return false;
	page = pfn_to_page(pfn);
	if (s->anon_only && !PageAnon(page))
		return false;
	return !s->drop_zero || !page_is_zero(page);
}

/*
 * Not written to since the soft-dirty bits were cleared.  This bit alone is not enough:
 * it is also clear in the entry of a new page that a debugger has written to where the
 * program may not, and of what KSM makes; but these are not marked as dirty.  A writable
 * entry would have been written to unseen.
 */
static bool pte_is_unchanged(const struct scan *s, pte_t pte)
{
	return s->changes && pte_dirty(pte) && !pte_soft_dirty(pte) && !pte_write(pte);
}

static bool pmd_is_unchanged(const struct scan *s, pmd_t pmd)
{
	return s->huge_changes && pmd_dirty(pmd) && !pmd_soft_dirty(pmd) && !pmd_write(pmd);
}

static bool scan_pte(struct scan *s, unsigned long address, pte_t pte)
{
	if (pte_none(pte))
		return true;
	if (!pte_present(pte)) {
		if (kcr_pte_is_marker(pte))
			return !s->markers || add_page(s, address | KCR_RUN_MARKER);
		return add_page(s, address);
	}
	if (pte_special(pte) && !is_zero_pfn(pte_pfn(pte)))
		return true;
	if (pte_is_unchanged(s, pte) && !pte_special(pte))
		return add_page(s, address | KCR_RUN_UNCHANGED);
	return !is_worth(s, pte_pfn(pte)) || add_page(s, address);
}

/* Pages of one table.  False: no more room; *again: as scan_pmd(). */
static bool scan_table(struct scan *s, pmd_t *pmd, pmd_t seen,
		       unsigned long address, unsigned long end, bool *again)
{
	spinlock_t *lock = pte_lockptr(s->mm, &seen);
	bool room = true;
	pte_t *pte;

	spin_lock(lock);
	if (pmd_val(READ_ONCE(*pmd)) == pmd_val(seen)) {
		pte = pte_offset_kernel(&seen, address);
		for (; room && address < end; address += PAGE_SIZE, pte++)
			room = scan_pte(s, address, READ_ONCE(*pte));
	} else {
		*again = true;
	}
	spin_unlock(lock);
	return room;
}

/*
 * One huge entry; `pfn` is the page of `address`.  An entry that is not
 * present (swapped, migrating) is worth saving as a whole.
 */
static bool scan_huge(struct scan *s, unsigned long pfn, bool present,
		      unsigned long address, unsigned long end)
{
	if (!present)
		return add_all(s, address, end);
	for (; address < end; address += PAGE_SIZE, pfn++)
		if (is_worth(s, pfn) && !add_page(s, address))
			return false;
	return true;
}

static bool is_huge(unsigned long entry)
{
	return entry & _PAGE_PSE;
}

/* Called under RCU.  False: no more room; *again: the entry changed, repeat. */
static bool scan_pmd(struct scan *s, pmd_t *pmd, unsigned long address,
		     unsigned long end, bool *again)
{
	pmd_t seen = READ_ONCE(*pmd);
	bool huge = is_huge(pmd_val(seen));
	bool room = true;
	spinlock_t *lock;

	*again = false;
	if (pmd_none(seen))
		return true;
	if (!huge && (pmd_val(seen) & _PAGE_PRESENT))
		return scan_table(s, pmd, seen, address, end, again);
	lock = pmd_lockptr(s->mm, pmd);
	spin_lock(lock);
	if (pmd_val(READ_ONCE(*pmd)) != pmd_val(seen))
		*again = true;
	else if (huge && pmd_is_unchanged(s, seen))
		room = add_all(s, address | KCR_RUN_UNCHANGED, end);
	else
		room = scan_huge(s, pmd_pfn(seen) + ((address & ~PMD_MASK) >> PAGE_SHIFT),
				 huge, address, end);
	spin_unlock(lock);
	return room;
}

/* A part of a gigantic page (hugetlb).  False: no more room. */
static bool scan_pud(struct scan *s, pud_t *pud, unsigned long address,
		     unsigned long end)
{
	bool room = true;
	pud_t seen;

	spin_lock(&s->mm->page_table_lock);
	seen = READ_ONCE(*pud);
	if (!pud_none(seen))
		room = scan_huge(s, pud_pfn(seen) + ((address & ~PUD_MASK) >> PAGE_SHIFT),
				 is_huge(pud_val(seen)), address, end);
	spin_unlock(&s->mm->page_table_lock);
	return room;
}

/*
 * Scans [address, end) up to the end of the next lower-level table and
 * returns where to go on.
 */
static unsigned long scan_step(struct scan *s, unsigned long address,
			       unsigned long end, bool *room)
{
	unsigned long next;
	bool again = false;
	pgd_t *pgd;
	p4d_t *p4d;
	pud_t *pud, seen;

	*room = true;
	pgd = pgd_offset(s->mm, address);
	next = pgd_addr_end(address, end);
	if (pgd_none(*pgd))
		return next;
	p4d = p4d_offset(pgd, address);
	next = p4d_addr_end(address, end);
	if (p4d_none(*p4d))
		return next;
	pud = pud_offset(p4d, address);
	next = pud_addr_end(address, end);
	seen = READ_ONCE(*pud);
	if (pud_none(seen))
		return next;
	/* No more than 512 pages at a time: their content is checked under a lock. */
	next = pmd_addr_end(address, next);
	if (is_huge(pud_val(seen)) || !(pud_val(seen) & _PAGE_PRESENT)) {
		*room = scan_pud(s, pud, address, next);
		return next;
	}
	*room = scan_pmd(s, pmd_offset(&seen, address), address, next, &again);
	return again ? address : next;
}

static int scan_range(struct scan *s, unsigned long address, unsigned long end)
{
	bool room = true;

	while (address < end && room) {
		if (s->tables)
			i_mmap_lock_read(s->tables);
		rcu_read_lock();
		address = scan_step(s, address, end, &room);
		rcu_read_unlock();
		if (s->tables)
			i_mmap_unlock_read(s->tables);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Takes every page, touched or not, as far as there is room. */
static void take_all(struct scan *s, unsigned long address, unsigned long end)
{
	s->nr_pages = min_t(u64, (end - address) >> PAGE_SHIFT, s->max_pages);
	s->nr_runs = 1;
	s->runs[0].address = address;
	s->runs[0].nr_pages = s->nr_pages;
	s->next = address + s->nr_pages * PAGE_SIZE;
}

/*
 * Can soft-dirty bits be believed here?  A new mapping's cannot: the kernel does not watch
 * them.  KSM loses them, and memory that is not this process's alone is written to by others.
 */
static bool has_changes(struct vm_area_struct *vma)
{
	return KCR_HAVE_SOFT_DIRTY && vma_is_anonymous(vma) &&
	       !(vma->vm_flags & (VM_SOFTDIRTY | VM_MERGEABLE | VM_HUGETLB | VM_MAYSHARE |
				  KCR_VM_UFFD));
}

/* mmap_lock held. */
static int scan_vma(struct scan *s, const struct kcr_scan *req)
{
	struct vm_area_struct *vma = find_vma(s->mm, req->start);

	if (!vma || vma->vm_start > req->start || vma->vm_end < req->end)
		return -EINVAL;
	if (req->flags & KCR_SCAN_ALL) {
		take_all(s, req->start, req->end);
		return 0;
	}
	if (vma->vm_flags & (VM_IO | VM_PFNMAP))
		return 0;
	if (kcr_vma_is_secret(vma))
		return -EOPNOTSUPP;	/* its pages can be neither examined nor saved */
	s->changes = s->changes && has_changes(vma);
	s->huge_changes = s->huge_changes && s->changes;
	if (vma->vm_flags & VM_HUGETLB && vma->vm_flags & VM_MAYSHARE)
		s->tables = vma->vm_file->f_mapping;
	return scan_range(s, req->start, req->end);
}

static int scan_mm(struct scan *s, const struct kcr_scan *req)
{
	int err;

	err = mmap_read_lock_killable(s->mm);
	if (err)
		return err;
	err = scan_vma(s, req);
	mmap_read_unlock(s->mm);
	return err;
}

static int check_request(const struct kcr_scan *req)
{
	if (!PAGE_ALIGNED(req->start) || !PAGE_ALIGNED(req->end) ||
	    req->start >= req->end || req->end > TASK_SIZE_MAX ||
	    !req->count || !req->max_pages)
		return -EINVAL;
	return 0;
}

long kcr_ioc_scan(struct kcr_job *job, void *request)
{
	struct kcr_scan *req = request;
	struct scan s = {};
	int err = check_request(req);
	bool pinned;

	if (err)
		return err;
	s.max_runs = min(req->count, MAX_RUNS);
	s.max_pages = req->max_pages;
	s.next = req->end;
	s.anon_only = req->flags & KCR_SCAN_PRIVATE;
	s.markers = req->flags & KCR_SCAN_MARKERS;
	/* A copied page that is zero differs from the file all the same. */
	s.drop_zero = !(req->flags & (KCR_SCAN_KEEP_ZERO | KCR_SCAN_PRIVATE));
	s.mm = kcr_job_mm(job, req->pid, req->flags & KCR_SCAN_SNAPSHOT);
	if (IS_ERR(s.mm))
		return PTR_ERR(s.mm);
	/* Who has pinned a page writes to it unseen, long after. */
	pinned = kcr_mm_has_pinned(kcr_job_find(job, req->pid)->mm);
	s.changes = req->flags & KCR_SCAN_CHANGES && (KCR_HAVE_PINNED_KEEP_DIRTY || !pinned);
	s.huge_changes = s.changes && !pinned;
	s.runs = kvmalloc_array(s.max_runs, sizeof(*s.runs), GFP_KERNEL_ACCOUNT);
	err = s.runs ? scan_mm(&s, req) : -ENOMEM;
	mmput(s.mm);
	req->count = s.nr_runs;
	req->nr_pages = s.nr_pages;
	req->next = s.next;
	if (!err && copy_to_user(u64_to_user_ptr(req->runs), s.runs, s.nr_runs * sizeof(*s.runs)))
		err = -EFAULT;
	kvfree(s.runs);
	return err;
}
