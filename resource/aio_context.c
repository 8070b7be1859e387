// SPDX-License-Identifier: GPL-2.0
/*
 * io_setup(2).  The number of a context is the address of its ring, which the kernel and the
 * program share: a header, and places for the events of requests that are done.
 *
 * A context can be saved while none of its requests is in flight, which only the module can
 * tell: by the kernel's count of references, compared with that of a new context.  Whether
 * that is so on this kernel is tried out first.
 *
 * The kernel keeps its own place in the ring, and its own count of events that have not been
 * taken.  Both are brought to what they were by requests that end at once.
 */
#include "resource/aio_context.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/attribute.h"

#define BATCH		64
#define CPUS_MAX	8192
#define SETTLE_TRIES	1000		/* of a millisecond each */

/* What the kernel begins a ring with. */
struct ring {
	uint32_t id;			/* of the context, for the kernel */
	uint32_t nr;
	uint32_t head;
	uint32_t tail;
	uint32_t magic;
	uint32_t compat_features;
	uint32_t incompat_features;
	uint32_t header_length;
	struct io_event event[];
};

_Static_assert(sizeof(struct ring) == CONTEXT_AIO_HEAD, "header of a ring");
_Static_assert(sizeof(struct io_event) == CONTEXT_AIO_EVENT, "place in a ring");

static long setup(unsigned int max_reqs, aio_context_t *id)
{
	*id = 0;
	return syscall(SYS_io_setup, max_reqs, id) ? -errno : 0;
}

static long submit(aio_context_t id, long count, struct iocb **request)
{
	long done = syscall(SYS_io_submit, id, count, request);

	return done < 0 ? -errno : done;
}

static struct ring *ring_of(aio_context_t id)
{
	return (struct ring *)(uintptr_t)id;
}

/* ---- is it known here? ------------------------------------------------------------- */

static struct {
	bool tried;
	bool works;
	uint64_t references;		/* of a context without requests */
} here;

static bool look(int job, aio_context_t id, struct kcr_aio_context *out)
{
	struct kcr_aio_context *contexts;
	int count = device_aio(job, 0, &contexts);
	bool found = false;

	for (int i = 0; i < count && !found; i++) {
		found = contexts[i].id == id;
		*out = contexts[i];
	}
	if (count >= 0)
		free(contexts);
	return found;
}

/* The last steps of a request may come after its event. */
static bool settles(int job, aio_context_t id, uint64_t references)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct kcr_aio_context now;

	for (int i = 0; i < SETTLE_TRIES; i++) {
		if (!look(job, id, &now))
			return false;
		if (now.references == references && !now.flags)
			return now.tail == 1 && ring_of(id)->tail == 1;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* One request that waits until we let it go. */
static bool try_request(int job, aio_context_t id, const struct kcr_aio_context *idle)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct iocb poll = {
		.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = fd, .aio_buf = POLLIN,
	};
	struct iocb *request = &poll;
	struct kcr_aio_context busy;
	bool works = fd >= 0 && submit(id, 1, &request) == 1 && look(job, id, &busy) &&
		     busy.references == idle->references + 1 && busy.flags == KCR_AIO_WAITS &&
		     !busy.tail;

	works = works && !eventfd_write(fd, 1) && settles(job, id, idle->references);
	if (fd >= 0)
		close(fd);
	return works;
}

static void try_here(int job)
{
	struct kcr_aio_context idle;
	aio_context_t id;

	here.tried = true;
	if (setup(1, &id))
		return;
	here.works = look(job, id, &idle) && idle.references && !idle.flags && !idle.tail &&
		     idle.max_reqs == 1 && idle.nr_events == ring_of(id)->nr &&
		     idle.length == sizeof(struct ring) + idle.nr_events * sizeof(struct io_event) &&
		     try_request(job, id, &idle);
	here.references = idle.references;
	syscall(SYS_io_destroy, id);
}

int aio_context_check(int job, pid_t pid)
{
	if (!here.tried)
		try_here(job);
	if (here.works)
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d has a ring of asynchronous input and output "
			   "(io_setup), which cannot be saved: whether requests are in flight is not "
			   "known with this kernel (it needs CONFIG_DEBUG_INFO_BTF) and module; let "
			   "the program do without it (MariaDB, MySQL: innodb_use_native_aio=OFF)",
			   pid);
}

/* ---- save --------------------------------------------------------------------------- */

bool aio_context_is_ring(const char *name)
{
	return !strcmp(name, "/[aio] (deleted)");
}

int aio_context_busy(int job, pid_t pid, bool *waits)
{
	struct kcr_aio_context *contexts;
	int count = device_aio(job, pid, &contexts), busy = 0;

	*waits = false;
	if (count == -EOPNOTSUPP)
		return aio_context_check(job, pid);
	if (count < 0)
		return report_errno(count, "process %d: contexts of io_setup", pid);
	if (count)
		busy = aio_context_check(job, pid);
	for (int i = 0; i < count && busy >= 0; i++) {
		busy |= contexts[i].references != here.references;
		*waits |= contexts[i].flags & KCR_AIO_WAITS;
	}
	free(contexts);
	return busy;
}

static int refuse(pid_t pid, const char *why)
{
	return report_fail(-EOPNOTSUPP, "process %d has a ring of asynchronous input and output "
			   "(io_setup) %s, which cannot be saved", pid, why);
}

static const Kcr__Vma *mapping_of(const Kcr__Mm *mm, const struct kcr_aio_context *context)
{
	const uint64_t wanted = KCR_VMA_SHARED | KCR_VMA_READ | KCR_VMA_WRITE;

	for (size_t i = 0; i < mm->n_vma; i++) {
		const Kcr__Vma *vma = mm->vma[i];

		if (vma->start == context->id)
			return aio_context_is_ring(vma->name ?: "") && !vma->offset &&
			       vma->end - vma->start == context->length &&
			       (vma->flags & (wanted | KCR_VMA_EXEC)) == wanted ? vma : NULL;
	}
	return NULL;
}

/* A message with what the ring holds; NULL: -ENOMEM. */
static Kcr__AioContext *new_context(const struct kcr_aio_context *context, const struct ring *ring)
{
	Kcr__AioContext *saved = malloc(sizeof(*saved));
	size_t length = context->length - sizeof(*ring);

	if (!saved)
		return NULL;
	kcr__aio_context__init(saved);
	saved->id = context->id;
	saved->max_reqs = context->max_reqs;
	saved->nr_events = context->nr_events;
	saved->head = ring->head;
	saved->tail = context->tail;
	saved->event.data = malloc(length);
	if (!saved->event.data) {
		free(saved);
		return NULL;
	}
	memcpy(saved->event.data, ring->event, length);
	saved->event.len = length;
	return saved;
}

static int save_context(int job, pid_t pid, const struct kcr_aio_context *context, Kcr__Mm *mm)
{
	struct kcr_run run = {
		.address = context->id, .nr_pages = context->length / CONTEXT_PAGE,
	};
	struct ring *ring;
	int err;

	if (!mapping_of(mm, context))
		return refuse(pid, "that is not mapped as the kernel had mapped it");
	ring = malloc(context->length);
	err = ring ? device_read(job, pid, 0, ring, &run, 1, NULL) :
		     report_errno(-ENOMEM, "process %d: contexts of io_setup", pid);
	if (!err && (ring->tail != context->tail || ring->head >= context->nr_events))
		err = refuse(pid, "that it has written to itself");
	if (!err) {
		mm->aio[mm->n_aio] = new_context(context, ring);
		err = mm->aio[mm->n_aio] ? 0 :
			report_errno(-ENOMEM, "process %d: contexts of io_setup", pid);
		mm->n_aio += !err;
	}
	free(ring);
	return err;
}

/* A child inherits the mapping, but not the context. */
static int check_mappings(pid_t pid, const Kcr__Mm *mm)
{
	for (size_t i = 0; i < mm->n_vma; i++)
		if (aio_context_is_ring(mm->vma[i]->name ?: "") &&
		    !aio_context_of(mm, mm->vma[i]))
			return refuse(pid, "that is another process's, as a child inherits it, or a "
				      "part of its own");
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct kcr_aio_context *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int save(const struct process_probe *probe, Kcr__Process *p)
{
	struct kcr_aio_context *contexts = NULL;
	int err = 0, count;

	if (!p->mm)
		return 0;
	count = probe->info->flags & KCR_PROCESS_AIO ? device_aio(probe->job, p->pid, &contexts) : 0;
	if (count < 0)
		return report_errno(count, "process %d: contexts of io_setup", p->pid);
	if (count > 0) {
		qsort(contexts, count, sizeof(*contexts), compare);
		p->mm->aio = calloc(count, sizeof(*p->mm->aio));
		if (!p->mm->aio)
			err = report_errno(-ENOMEM, "process %d: contexts of io_setup", p->pid);
	}
	for (int i = 0; i < count && !err; i++)
		err = save_context(probe->job, p->pid, &contexts[i], p->mm);
	free(contexts);
	return err ? err : check_mappings(p->pid, p->mm);
}

const struct attribute attribute_aio_context = {
	.name = "contexts of io_setup",
	.save = save,
};

/* ---- rebuild -------------------------------------------------------------------------- */

static uint64_t length_of(aio_context_t id)
{
	return sizeof(struct ring) + ring_of(id)->nr * sizeof(struct io_event);
}

/*
 * The kernel makes a ring larger than was asked for, in whole pages, and by the number of
 * processors: a ring of the same size may take another number here.
 */
static int make(pid_t pid, const Kcr__AioContext *saved, aio_context_t *id)
{
	const unsigned int fitting = (saved->nr_events - 2) / 2;
	const unsigned int asked[] = { saved->max_reqs, fitting };
	long err = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		err = setup(asked[i], id);
		if (err)
			break;
		if (length_of(*id) == aio_context_length(saved))
			return 0;
		syscall(SYS_io_destroy, *id);
	}
	if (err == -EAGAIN)
		return report_fail(-EAGAIN, "process %d: io_setup for %u requests: too many in the whole "
				   "machine; raise the limit (sysctl fs.aio-max-nr)", pid,
				   saved->max_reqs);
	if (err)
		return report_errno(err, "process %d: io_setup for %u requests", pid, saved->max_reqs);
	return report_fail(-EOPNOTSUPP, "process %d has a ring of %u asynchronous requests (io_setup), "
			   "which this machine, with more processors, makes larger", pid,
			   saved->nr_events);
}

/* Makes `count` events, of which the program has taken all but the last `unread`. */
static int make_events(aio_context_t id, uint32_t count, uint32_t unread)
{
	struct ring *ring = ring_of(id);
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct iocb read = { .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd };
	struct iocb *request[BATCH];
	uint32_t left = count;
	long done = fd < 0 ? -errno : 0;

	for (size_t i = 0; i < BATCH; i++)
		request[i] = &read;
	while (left && done >= 0) {
		uint32_t taken = left > unread ? left - unread : left;

		done = submit(id, taken < BATCH ? taken : BATCH, request);
		if (done <= 0)
			break;
		if (left > unread)
			__atomic_store_n(&ring->head, ring->tail, __ATOMIC_RELEASE);
		left -= done;
	}
	if (fd >= 0)
		close(fd);
	return done < 0 ? done : left ? -EAGAIN : 0;
}

/* The kernel keeps free places for each processor, where only that one can use them. */
static int make_events_here(aio_context_t id, uint32_t count, uint32_t unread)
{
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *before = CPU_ALLOC(CPUS_MAX), *one = CPU_ALLOC(CPUS_MAX);
	int err = before && one ? 0 : -ENOMEM;

	if (!err && sched_getaffinity(0, size, before))
		err = -errno;
	if (!err) {
		CPU_ZERO_S(size, one);
		CPU_SET_S(sched_getcpu(), size, one);
		err = sched_setaffinity(0, size, one) ? -errno : make_events(id, count, unread);
		sched_setaffinity(0, size, before);
	}
	CPU_FREE(before);
	CPU_FREE(one);
	return err;
}

int aio_context_make(pid_t pid, const Kcr__AioContext *saved, uint64_t *address)
{
	const uint32_t nr = saved->nr_events;
	uint32_t unread = (saved->tail + nr - saved->head) % nr;
	uint32_t count = saved->tail < unread ? saved->tail + nr : saved->tail;
	aio_context_t id;
	struct ring *ring;
	int err = make(pid, saved, &id);

	if (err)
		return err;
	ring = ring_of(id);
	err = make_events_here(id, count, unread);
	if (!err && ring->tail != saved->tail)
		err = -EPROTO;
	if (err)
		return report_errno(err, "process %d: the %u events of its ring (io_setup)", pid, unread);
	ring->head = saved->head;
	memcpy(ring->event, saved->event.data, saved->event.len);
	*address = id;
	return 0;
}
