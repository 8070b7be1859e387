// SPDX-License-Identifier: GPL-2.0
/*
 * TRACK; see track.h.
 *
 * The caller clears the soft-dirty bits of a parked process (/proc/PID/clear_refs) and
 * names that moment; a record keeps the name, beyond the job.  It holds for one address
 * space, as the program had it: its address is that of a live mm_struct only together with
 * the process, whose struct pid is referenced, and with the number of exec calls so far.
 *
 * Anybody else may clear these bits, too, and writes from before would be unknown.  But
 * whoever does also takes the mark of being new (VM_SOFTDIRTY) from every mapping.  So
 * we put it back on the vdso, which no program maps again: where it is missing, the
 * record is void.  For the same reason a caller that is killed between clearing and TRACK
 * leaves nothing behind that would be believed.
 *
 * A record goes when its address space gets another one, or, if its process has ended,
 * when a later one comes into its bucket.
 * Locks: `lock` guards the table, mmap_lock the mark.
 */
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat/mm.h"
#include "ioctl.h"
#include "park.h"
#include "track.h"

#define RECORD_BITS	10

struct record {
	struct hlist_node node;
	const struct mm_struct *mm;	/* only compared */
	struct pid *process;		/* referenced */
	u64 exec_id;
	u64 id;				/* of the moment */
};

static DEFINE_HASHTABLE(records, RECORD_BITS);
static DEFINE_SPINLOCK(lock);

bool kcr_track_works(void)
{
	return KCR_HAVE_SOFT_DIRTY;
}

/* ---- records ------------------------------------------------------------------------ */

static u64 exec_id_of(const struct task_struct *leader)
{
	return READ_ONCE(leader->self_exec_id);
}

/* Has the process ended, or become another program? */
static bool is_stale(const struct record *record)
{
	struct task_struct *leader;
	bool stale;

	rcu_read_lock();
	leader = pid_task(record->process, PIDTYPE_TGID);
	stale = !leader || exec_id_of(leader) != record->exec_id;
	rcu_read_unlock();
	return stale;
}

static void drop(struct record *record)
{
	lockdep_assert_held(&lock);
	hash_del(&record->node);
	put_pid(record->process);
	kfree(record);
}

/* Drops the address space's record, and those in its bucket that are stale. */
static void forget(const struct mm_struct *mm)
{
	struct hlist_node *next;
	struct record *record;

	lockdep_assert_held(&lock);
	hash_for_each_possible_safe(records, record, next, node, (unsigned long)mm)
		if (record->mm == mm || is_stale(record))
			drop(record);
}

static bool is_recorded(const struct kcr_member *member, u64 id)
{
	struct record *record;
	bool found = false;

	spin_lock(&lock);
	hash_for_each_possible(records, record, node, (unsigned long)member->mm)
		found |= record->mm == member->mm && record->process == member->pid &&
			 record->exec_id == exec_id_of(member->leader) && record->id == id;
	spin_unlock(&lock);
	return found;
}

void kcr_track_exit(void)
{
	struct hlist_node *next;
	struct record *record;
	unsigned int bucket;

	spin_lock(&lock);
	hash_for_each_safe(records, bucket, next, record, node)
		drop(record);
	spin_unlock(&lock);
}

/* ---- the mark ------------------------------------------------------------------------- */

/* mmap_lock held.  NULL: the program has unmapped it. */
static struct vm_area_struct *find_vdso(struct mm_struct *mm)
{
	unsigned long address = (unsigned long)mm->context.vdso;
	struct vm_area_struct *vma = address ? find_vma(mm, address) : NULL;

	return vma && vma->vm_start == address && !vma->vm_file && vma->vm_ops ? vma : NULL;
}

/* 0, -ENODATA: it has been taken away, -EOPNOTSUPP: there is no vdso. */
static int check_mark(struct mm_struct *mm)
{
	struct vm_area_struct *vdso;
	int ret = mmap_read_lock_killable(mm);

	if (ret)
		return ret;
	vdso = find_vdso(mm);
	if (!vdso)
		ret = -EOPNOTSUPP;
	else if (!(vdso->vm_flags & VM_SOFTDIRTY))
		ret = -ENODATA;
	mmap_read_unlock(mm);
	return ret;
}

static int set_mark(struct mm_struct *mm)
{
	struct vm_area_struct *vdso;
	int ret = mmap_write_lock_killable(mm);

	if (ret)
		return ret;
	vdso = find_vdso(mm);
	if (vdso)
		kcr_vma_set_new(vdso);
	else
		ret = -EOPNOTSUPP;
	mmap_write_unlock(mm);
	return ret;
}

/* ---- TRACK ---------------------------------------------------------------------------- */

static int begin(const struct kcr_member *member, u64 id)
{
	struct record *record = kmalloc(sizeof(*record), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!record)
		return -ENOMEM;
	/* An old record and the new mark must not meet. */
	spin_lock(&lock);
	forget(member->mm);
	spin_unlock(&lock);
	ret = set_mark(member->mm);
	if (ret) {
		kfree(record);
		return ret;
	}
	record->mm = member->mm;
	record->process = get_pid(member->pid);
	record->exec_id = exec_id_of(member->leader);
	record->id = id;
	spin_lock(&lock);
	forget(member->mm);
	hash_add(records, &record->node, (unsigned long)member->mm);
	spin_unlock(&lock);
	return 0;
}

static int test(const struct kcr_member *member, u64 id)
{
	int ret = check_mark(member->mm);

	if (ret)
		return ret;
	return is_recorded(member, id) ? 0 : -ENODATA;
}

long kcr_ioc_track(struct kcr_job *job, void *request)
{
	const struct kcr_track *track = request;
	struct kcr_member *member;
	struct mm_struct *mm;
	int ret;

	if (!kcr_track_works())
		return -EOPNOTSUPP;
	if (track->pad || (!track->id && !(track->flags & KCR_TRACK_TEST)))
		return -EINVAL;
	mm = kcr_job_mm(job, track->pid, false);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	member = kcr_job_find(job, track->pid);
	if (kcr_member_shares_mm(member))
		ret = -EBUSY;
	else if (track->flags & KCR_TRACK_TEST)
		ret = test(member, track->id);
	else
		ret = begin(member, track->id);
	mmput(mm);
	return ret;
}
