// SPDX-License-Identifier: GPL-2.0
/*
 * KCR_IOC_URING: what an io_uring is, and whether it is more than a new one that has got as far.
 * The kernel's structure has some hundred members, in each version others.  So it is compared
 * with that of a new one, member by member, by the kernel's description of it (BTF): a member
 * that nobody here knows counts.  Those that do not count are named below.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "btf.h"
#include "ioctl.h"
#include "job.h"
#include "uring.h"

enum { FLAGS, SQ_ENTRIES, CQ_ENTRIES, SQ_HEAD, CQ_TAIL };

static struct kcr_btf_member in_ring[] = {
	[FLAGS] = { "flags", NULL, sizeof(u32) },
	[SQ_ENTRIES] = { "sq_entries", NULL, sizeof(u32) },
	[CQ_ENTRIES] = { "cq_entries", NULL, sizeof(u32) },
	[SQ_HEAD] = { "cached_sq_head", NULL, sizeof(u32) },
	[CQ_TAIL] = { "cached_cq_tail", NULL, sizeof(u32) },
};

/* 6.0. */
static struct kcr_btf_member submitter = {
	"submitter_task", "task_struct", sizeof(struct task_struct *),
};

static const struct kcr_btf_known known[] = {
	/* how far it has got */
	{ "cached_sq_head", KCR_BTF_ANY }, { "cached_cq_tail", KCR_BTF_ANY },
	{ "cq_extra", KCR_BTF_ANY }, { "cq_timeouts", KCR_BTF_ANY },
	{ "cq_last_tm_flush", KCR_BTF_ANY }, { "cancel_seq", KCR_BTF_ANY },
	/* who has made or used it */
	{ "user", KCR_BTF_ANY }, { "mm_account", KCR_BTF_ANY }, { "tctx_list", KCR_BTF_ANY },
	{ "hash_map", KCR_BTF_ANY },
	/* kept for the next request */
	{ "submit_state", KCR_BTF_ANY }, { "locked_free_list", KCR_BTF_ANY },
	{ "locked_free_nr", KCR_BTF_ANY }, { "cqe_cached", KCR_BTF_ANY },
	{ "cqe_sentinel", KCR_BTF_ANY }, { "nr_req_allocated", KCR_BTF_ANY },
	/* set again when it is needed */
	{ "off_timeout_used", KCR_BTF_ANY }, { "poll_activated", KCR_BTF_ANY },
	{ "cq_wait_nr", KCR_BTF_ANY }, { "drain_active", KCR_BTF_ANY },
	{ "poll_multi_queue", KCR_BTF_ANY }, { "work_head", KCR_BTF_ANY },
	/* its memory, requests in flight, and where what is registered would be kept */
	{ "rings", KCR_BTF_OBJECT }, { "rings_rcu", KCR_BTF_OBJECT },
	{ "ring_region", KCR_BTF_OBJECT }, { "ring_pages", KCR_BTF_OBJECT },
	{ "sq_sqes", KCR_BTF_OBJECT }, { "sq_array", KCR_BTF_OBJECT },
	{ "sq_region", KCR_BTF_OBJECT }, { "sqe_pages", KCR_BTF_OBJECT },
	{ "cancel_hash", KCR_BTF_OBJECT }, { "cancel_table", KCR_BTF_OBJECT },
	{ "cancel_table_locked", KCR_BTF_OBJECT }, { "submitter_task", KCR_BTF_OBJECT },
	{ "dummy_ubuf", KCR_BTF_OBJECT }, { "rsrc_node", KCR_BTF_OBJECT },
	{ "ring_sock", KCR_BTF_OBJECT },
	/* requests on their way */
	{ "work_list", KCR_BTF_IN_USE }, { "work_llist", KCR_BTF_IN_USE },
	{ "retry_llist", KCR_BTF_IN_USE }, { "fallback_llist", KCR_BTF_IN_USE },
	{ "cq_overflow_list", KCR_BTF_IN_USE }, { "check_cq", KCR_BTF_IN_USE },
	{ "check_cq_overflow", KCR_BTF_IN_USE }, { "iopoll_list", KCR_BTF_IN_USE },
	{ "timeout_list", KCR_BTF_IN_USE }, { "ltimeout_list", KCR_BTF_IN_USE },
	{ "defer_list", KCR_BTF_IN_USE }, { "drain_next", KCR_BTF_IN_USE },
	{ "nr_drained", KCR_BTF_IN_USE }, { "waitid_list", KCR_BTF_IN_USE },
	{ "futex_list", KCR_BTF_IN_USE }, { "cancelable_uring_cmd", KCR_BTF_IN_USE },
};

enum { RING, SUBMITTER };

static struct kcr_btf_wanted wanted[] = {
	[RING] = { "io_ring_ctx", in_ring, ARRAY_SIZE(in_ring) },
	[SUBMITTER] = { "io_ring_ctx", &submitter, 1, .optional = true },
};

static struct kcr_btf_search places = { wanted, ARRAY_SIZE(wanted) };

/* Only the kernel gives such names to files without a path. */
static bool is_ring(const struct file *file)
{
	const struct dentry *dentry = file->f_path.dentry;

	return dentry->d_sb->s_magic == ANON_INODE_FS_MAGIC &&
	       !strcmp((const char *)dentry->d_name.name, "[io_uring]");
}

struct file *kcr_uring_get(int fd)
{
	struct file *file = fget(fd);

	if (file && !is_ring(file)) {
		fput(file);
		file = NULL;
	}
	return file;
}

static u32 number(const void *ring, int member)
{
	return READ_ONCE(*(const u32 *)kcr_btf_at(ring, &in_ring[member]));
}

/* The ring holds a reference to the thread. */
static pid_t submitter_of(const void *ring)
{
	struct task_struct *task = wanted[SUBMITTER].type ?
		READ_ONCE(*(struct task_struct *const *)kcr_btf_at(ring, &submitter)) : NULL;

	return task ? task_pid_vnr(task) : 0;
}

static void describe(const void *ring, struct kcr_uring *out)
{
	out->setup_flags = number(ring, FLAGS);
	out->sq_entries = number(ring, SQ_ENTRIES);
	out->cq_entries = number(ring, CQ_ENTRIES);
	out->sq_head = number(ring, SQ_HEAD);
	out->cq_tail = number(ring, CQ_TAIL);
	out->submitter = submitter_of(ring);
}

static int compare(const void *ring, struct kcr_uring *out)
{
	struct file *like = kcr_uring_get(out->like);
	const char *differs;

	if (!like)
		return -EBADF;
	differs = kcr_btf_differs(wanted[RING].type, ring, like->private_data, known, ARRAY_SIZE(known),
				  out->flags & KCR_URING_IN_USE);
	fput(like);
	strscpy(out->differs, differs ?: "", sizeof(out->differs));
	return 0;
}

long kcr_ioc_uring(struct kcr_job *job, void *request)
{
	struct kcr_uring *out = request;
	struct file *file;
	int err = kcr_btf_search(&places);

	if (err)
		return err;
	file = kcr_uring_get(out->fd);
	if (!file)
		return -EBADF;
	memset(out->differs, 0, sizeof(out->differs));
	describe(file->private_data, out);
	err = out->like < 0 ? 0 : compare(file->private_data, out);
	fput(file);
	return err;
}
