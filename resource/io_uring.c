// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring(7): what it was made with, how far it has got, and the memory of its queues.
 *
 * The module tells all that the kernel's structure has of it, compared with a new one: what is
 * registered with it, say, is refused by the name that it has there.  That none of its requests
 * is in flight has been seen to before (checkpoint/requests.c).
 *
 * Where only one thread may submit (IORING_SETUP_SINGLE_ISSUER) that has to be the one which
 * enables the ring: the first thread of its process, before it becomes the saved one.
 */
#include "resource/io_uring.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/file_table.h"

#define SUPPORTED	(IORING_SETUP_IOPOLL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | \
			 IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL | \
			 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | \
			 IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | IORING_SETUP_SINGLE_ISSUER | \
			 IORING_SETUP_DEFER_TASKRUN | URING_NO_SQARRAY)
#define OFFSETS_SIZE	(CONTEXT_URING_OFFSETS * sizeof(uint32_t))

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[io_uring]");
}

/* ---- refusals ------------------------------------------------------------------------ */

static int refuse(struct file_table *t, const char *what, const char *name)
{
	file_unsupported(t, "an io_uring %s (%s)", what, name);
	t->instead = WITHOUT_IO_URING;
	return -EOPNOTSUPP;
}

static int refuse_flags(struct file_table *t, uint32_t flags)
{
	char number[32];

	if (flags & IORING_SETUP_SQPOLL)
		return refuse(t, "with a thread of the kernel that polls", "IORING_SETUP_SQPOLL");
	if (flags & IORING_SETUP_ATTACH_WQ)
		return refuse(t, "attached to another one", "IORING_SETUP_ATTACH_WQ");
	if (flags & (URING_NO_MMAP | URING_REGISTERED_FD_ONLY))
		return refuse(t, "in memory of the program's own", "IORING_SETUP_NO_MMAP");
	snprintf(number, sizeof(number), "%#x", flags & ~SUPPORTED);
	return refuse(t, "with flags that this version does not know", number);
}

/* What the members of the kernel's structure mean, in any version.  0: let it pass. */
static int refuse_member(struct file_table *t, const char *member)
{
	static const struct { const char *member, *what; } known[] = {
		{ "file_table", "with registered files" },
		{ "file_data", "with registered files" },
		{ "nr_user_files", "with registered files" },
		{ "file_alloc_start", "with registered files" },
		{ "file_alloc_end", "with registered files" },
		{ "nr_user_bufs", "with registered buffers" },
		{ "user_bufs", "with registered buffers" },
		{ "buf_table", "with registered buffers" },
		{ "buf_data", "with registered buffers" },
		{ "io_ev_fd", "with a registered eventfd" },
		{ "cq_ev_fd", "with a registered eventfd" },
		{ "has_evfd", "with a registered eventfd" },
		{ "personalities", "with registered credentials" },
		{ "pers_next", "with registered credentials" },
		{ "io_buffers", "with provided buffers" },
		{ "io_bl", "with provided buffers" },
		{ "io_bl_xa", "with provided buffers" },
		{ "restricted", "with restrictions" },
		{ "restrictions", "with restrictions" },
		{ "iowq_limits", "with a limit of workers" },
		{ "iowq_limits_set", "with a limit of workers" },
		{ "rsrc_node", "that had registered files or buffers" },
		{ "rsrc_backup_node", "that had registered files or buffers" },
		{ "int_flags", "with a registered eventfd, a limit of workers or the like" },
		{ "napi_list", "that polls network devices" },
		{ "cq_overflow_list", "whose completion queue has overflowed" },
		{ "check_cq_overflow", "whose completion queue has overflowed" },
		{ "check_cq", "whose completion queue has overflowed" },
	};

	if (!strcmp(member, "int_flags") && file_table_is_dry(t))
		return 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].member, member))
			return refuse(t, known[i].what, member);
	/* While the program runs it may be nothing but a request on its way. */
	return file_table_is_dry(t) ? 0 :
		refuse(t, "in a state that this version does not know", member);
}

/* ---- save ---------------------------------------------------------------------------- */

static int look(struct file_table *t, const struct file_probe *probe, int like,
		struct kcr_uring *out)
{
	uint32_t flags = file_table_is_dry(t) ? KCR_URING_IN_USE : 0;
	int err = t->job < 0 ? -EOPNOTSUPP : device_uring(t->job, probe->fd, like, flags, out);

	if (err == -EOPNOTSUPP)
		return refuse(t, "of which this kernel does not tell enough",
			      "it needs CONFIG_DEBUG_INFO_BTF");
	return err ? file_save_error(probe, err, "cannot be examined") : 0;
}

/* What a ring remembers for ever, and need not be refused. */
enum { NO_DRAIN = 1, POLLED = 2, NR_MEMORIES = 4 };

struct likeness {
	const struct kcr_uring *ring;
	int memories;
};

static int make_like(struct uring *like, const void *likeness)
{
	const struct likeness *l = likeness;
	struct pollfd self = { .events = POLLIN };
	int err = uring_make(like, l->ring->setup_flags, l->ring->sq_entries, l->ring->cq_entries);

	self.fd = like->fd;
	if (!err && l->memories & POLLED && poll(&self, 1, 0) < 0)
		err = -errno;
	if (!err && l->memories & NO_DRAIN)
		err = uring_map(like);
	return err || !(l->memories & NO_DRAIN) ? err : uring_disable_drain(like);
}

/*
 * Makes one of its kind, `like`, and compares both.  Linux 7 has one member for all that is
 * either so or not, so that it takes several to find one which remembers the same.
 */
static int compare(struct file_table *t, const struct file_probe *probe, struct kcr_uring *found,
		   struct uring *like, bool *drain_disabled)
{
	struct likeness likeness = { .ring = found };
	int err = 0;

	for (; likeness.memories < NR_MEMORIES; likeness.memories++) {
		uring_drop(like);
		err = uring_apart(like, make_like, &likeness);
		if (err)
			return file_save_error(probe, err, "another one of its kind cannot be made");
		err = look(t, probe, like->fd, found);
		if (err || (strcmp(found->differs, "drain_disabled") &&
			    strcmp(found->differs, "int_flags")))
			break;
	}
	*drain_disabled = likeness.memories & NO_DRAIN;
	if (!err && found->differs[0])
		err = refuse_member(t, found->differs);
	return err;
}

static int copy_offsets(size_t *n, uint32_t **out, const uint32_t *offset)
{
	*out = malloc(OFFSETS_SIZE);
	if (!*out)
		return report_errno(-ENOMEM, "saving open files");
	memcpy(*out, offset, OFFSETS_SIZE);
	*n = CONTEXT_URING_OFFSETS;
	return 0;
}

/* The memory, by a mapping of our own; `like` was made as it was. */
static int save_memory(struct file_table *t, const struct file_probe *probe,
		       const struct uring *like, Kcr__IoUring *ring)
{
	struct uring old = { .fd = dup(probe->fd), .made = like->made };
	int err = old.fd < 0 ? -errno : uring_map(&old);

	if (err) {
		err = file_save_error(probe, err, "its memory cannot be mapped");
		uring_drop(&old);
		return err;
	}
	if (uring_get(&old, old.made.sq_off.head) != ring->sq_head ||
	    uring_get(&old, old.made.cq_off.tail) != ring->cq_tail)
		err = refuse(t, "in a state that the program has changed itself", "head or tail");
	if (!err)
		err = file_bytes(&ring->rings, old.rings, old.rings_length);
	if (!err)
		err = file_bytes(&ring->sqes, old.sqes, old.sqes_length);
	uring_drop(&old);
	return err;
}

static int save_rest(struct file_table *t, const struct file_probe *probe,
		     const struct kcr_uring *found, const struct uring *like, Kcr__IoUring *ring)
{
	int err;

	ring->setup_flags = found->setup_flags;
	ring->sq_entries = found->sq_entries;
	ring->cq_entries = found->cq_entries;
	ring->sq_head = found->sq_head;
	ring->cq_tail = found->cq_tail;
	ring->has_submitter = found->submitter;
	ring->submitter = found->submitter;
	ring->features = like->made.features;
	ring->last_op = like->last_op;
	if (ring->cq_tail - ring->sq_head - 1 < INT32_MAX && ring->last_op < IORING_OP_MSG_RING)
		return refuse(t, "with more completions than submissions",
			      "which takes Linux 5.18 to repeat");
	err = copy_offsets(&ring->n_sq_offset, &ring->sq_offset, &like->made.sq_off.head);
	if (!err)
		err = copy_offsets(&ring->n_cq_offset, &ring->cq_offset, &like->made.cq_off.head);
	return err ? err : save_memory(t, probe, like, ring);
}

/* Requests that wait for an event; others end by themselves. */
static bool is_polling(const struct file_probe *probe)
{
	const char *list = fdinfo_value(probe->fdinfo, "PollList:\n");

	return list && !strncmp(list, "op=", 3);
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__IoUring *ring = file_new_kind(file, KCR__FILE__KIND_IO_URING, sizeof(*ring));
	struct uring like = { .fd = -1 };
	struct kcr_uring found;
	bool drain_disabled = false;
	int err = ring ? look(t, probe, -1, &found) : -ENOMEM;

	if (!err && !io_uring_is_counted(t->job))
		err = refuse(t, "whose requests in flight this kernel does not tell",
			     "it needs CONFIG_DEBUG_INFO_BTF");
	if (!err && found.setup_flags & ~SUPPORTED)
		err = refuse_flags(t, found.setup_flags);
	if (!err && file_table_is_dry(t) && is_polling(probe))
		err = refuse(t, "with requests that wait for an event", "poll, receive, accept …");
	if (err)
		return err;
	err = compare(t, probe, &found, &like, &drain_disabled);
	ring->has_drain_disabled = ring->drain_disabled = drain_disabled;
	if (!err && !file_table_is_dry(t))
		err = save_rest(t, probe, &found, &like, ring);
	uring_drop(&like);
	return err;
}

static bool has_submitter(Kcr__Process *const *process, size_t count, const Kcr__File *file)
{
	for (size_t i = 0; i < count; i++)
		if (process[i]->pid == file->io_uring->submitter && process[i]->n_thread &&
		    process_has_number(process[i], file->id, -1))
			return true;
	return false;
}

static bool needs_submitter(const Kcr__IoUring *ring)
{
	return ring->setup_flags & IORING_SETUP_SINGLE_ISSUER &&
	       !(ring->setup_flags & IORING_SETUP_R_DISABLED);
}

int io_uring_check(const struct file_table *t, Kcr__Process *const *process, size_t count)
{
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const Kcr__File *file = file_table_get(t, id);
		const struct file_probe *probe = file_table_probe(t, id);

		if (file->kind_case == KCR__FILE__KIND_IO_URING && needs_submitter(file->io_uring) &&
		    !has_submitter(process, count, file))
			return report_fail(-EOPNOTSUPP, "process %d, descriptor %d is an io_uring that only "
					   "thread %d may use (IORING_SETUP_SINGLE_ISSUER), which is not "
					   "the first of its process: that cannot be saved; "
					   WITHOUT_IO_URING, probe->pid, probe->number,
					   file->io_uring->submitter);
	}
	return 0;
}

/* ---- rebuild --------------------------------------------------------------------------- */

static int check_like(const Kcr__File *file, const struct uring *u)
{
	const Kcr__IoUring *ring = file->io_uring;

	if (ring->features & ~u->made.features || ring->last_op > u->last_op)
		return rebuild_error(file, -EOPNOTSUPP, "this kernel's io_uring has less than that of "
				     "the checkpoint");
	if (memcmp(ring->sq_offset, &u->made.sq_off.head, OFFSETS_SIZE) ||
	    memcmp(ring->cq_offset, &u->made.cq_off.head, OFFSETS_SIZE))
		return rebuild_error(file, -EOPNOTSUPP, "this kernel lays out its memory in another way");
	return 0;
}

/* Brings it to where it was, with what was in its memory. */
static int fill(struct uring *u, const void *arg)
{
	const Kcr__File *file = arg;
	const Kcr__IoUring *ring = file->io_uring;
	int err = uring_map(u);

	if (!err && (u->rings_length != ring->rings.len || u->sqes_length != ring->sqes.len))
		err = -EINVAL;
	if (!err && !(ring->setup_flags & IORING_SETUP_R_DISABLED))
		err = uring_advance(u, ring->sq_head, ring->cq_tail, ring->drain_disabled);
	if (err)
		return rebuild_error(file, err, "it cannot be brought to where it was");
	memcpy(u->rings, ring->rings.data, ring->rings.len);
	memcpy(u->sqes, ring->sqes.data, ring->sqes.len);
	return 0;
}

static int make(struct uring *u, const void *file)
{
	const Kcr__IoUring *ring = ((const Kcr__File *)file)->io_uring;
	uint32_t flags = ring->setup_flags | (needs_submitter(ring) ? IORING_SETUP_R_DISABLED : 0);

	return uring_make(u, flags, ring->sq_entries, ring->cq_entries);
}

static int open_ring(struct rebuild *r, const Kcr__File *file)
{
	uint32_t unknown = file->io_uring->setup_flags & ~SUPPORTED;
	struct uring u = { .fd = -1 };
	int fd, err = unknown ? -EOPNOTSUPP : uring_apart(&u, make, file);

	if (err == -EPERM)
		return rebuild_error(file, err, "not allowed here (sysctl kernel.io_uring_disabled)");
	if (err)
		return rebuild_error(file, err, "io_uring_setup");
	err = check_like(file, &u);
	if (!err && !needs_submitter(file->io_uring))
		err = uring_apart(&u, fill, file);
	fd = err ? -1 : dup(u.fd);
	if (!err && fd < 0)
		err = rebuild_error(file, -errno, "its descriptor");
	uring_drop(&u);
	return err ? err : rebuild_put(r, file->id, fd);
}

/* In each process that has it, for each of its descriptors: the first one enables it. */
static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	const Kcr__IoUring *ring = file->io_uring;
	struct uring u = {
		.fd = number,
		.made = {
			.flags = ring->setup_flags, .features = ring->features,
			.sq_entries = ring->sq_entries, .cq_entries = ring->cq_entries,
		},
	};
	int err;

	(void)r;
	if (!needs_submitter(ring) || process->pid != ring->submitter)
		return 0;
	err = uring_enable(&u);
	if (err)
		return err == -EBADFD ? 0 : rebuild_error(file, err, "cannot enable it");
	memcpy(&u.made.sq_off.head, ring->sq_offset, OFFSETS_SIZE);
	memcpy(&u.made.cq_off.head, ring->cq_offset, OFFSETS_SIZE);
	err = fill(&u, file);
	uring_unmap(&u);
	return err;
}

const struct file_kind file_kind_io_uring = {
	.kind = KCR__FILE__KIND_IO_URING,
	.name = "io_uring",
	.match = match,
	.save = save,
	.open = open_ring,
	.install = install,
};
