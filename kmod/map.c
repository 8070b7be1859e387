// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_MAP: memory of an io_uring at an address that the kernel does not let programs choose.
 * It looks for free addresses below mm->mmap_base, or above mm->mmap_legacy_base, whichever way
 * its layout has: so these are set to the ends of the wanted range meanwhile.  What another thread
 * of the caller maps just then may get addresses near that, and a child that it forks keeps
 * them; other processes are not concerned.
 */
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "ioctl.h"
#include "job.h"
#include "uring.h"

/* An address space whose bases are changed.  Nobody waits for another's. */
struct change {
	struct list_head node;
	struct mm_struct *mm;
	unsigned long base, legacy_base;
};

static LIST_HEAD(changes);
static DEFINE_SPINLOCK(changes_lock);

/* false: another thread is about it, and one would bring back what the other has set. */
static bool begin(struct change *change, const struct kcr_map *wanted)
{
	struct mm_struct *mm = current->mm;
	struct change *other;

	spin_lock(&changes_lock);
	list_for_each_entry(other, &changes, node) {
		if (other->mm == mm) {
			spin_unlock(&changes_lock);
			return false;
		}
	}
	*change = (struct change) {
		.mm = mm, .base = mm->mmap_base, .legacy_base = mm->mmap_legacy_base,
	};
	list_add(&change->node, &changes);
	WRITE_ONCE(mm->mmap_base, wanted->address + wanted->length);
	WRITE_ONCE(mm->mmap_legacy_base, wanted->address);
	spin_unlock(&changes_lock);
	return true;
}

static void end(struct change *change)
{
	spin_lock(&changes_lock);
	WRITE_ONCE(change->mm->mmap_base, change->base);
	WRITE_ONCE(change->mm->mmap_legacy_base, change->legacy_base);
	list_del(&change->node);
	spin_unlock(&changes_lock);
}

static long map(struct file *file, const struct kcr_map *wanted)
{
	struct change change;
	unsigned long at;

	if (!begin(&change, wanted))
		return -EBUSY;
	at = vm_mmap(file, 0, wanted->length, wanted->prot, MAP_SHARED, wanted->offset);
	end(&change);
	if (IS_ERR_VALUE(at) || at == wanted->address)
		return IS_ERR_VALUE(at) ? (long)at : 0;
	vm_munmap(at, wanted->length);
	return -EEXIST;
}

static bool is_possible(const struct kcr_map *wanted)
{
	return wanted->length && PAGE_ALIGNED(wanted->address | wanted->length | wanted->offset) &&
	       wanted->address < TASK_SIZE && wanted->length <= TASK_SIZE - wanted->address &&
	       !(wanted->prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC));
}

long kcr_ioc_map(struct kcr_job *job, void *request)
{
	const struct kcr_map *wanted = request;
	struct file *file;
	long err;

	if (!is_possible(wanted))
		return -EINVAL;
	file = kcr_uring_get(wanted->fd);
	if (!file)
		return -EBADF;
	err = map(file, wanted);
	fput(file);
	return err;
}
