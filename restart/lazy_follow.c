// SPDX-License-Identifier: GPL-2.0
/*
 * The processes of a lazy restart, and what the kernel says of them: their faults, forks and
 * changes of mappings.  Between being told of a change and having followed it no pages are
 * given.  A fork and another thread's change are told in any order: so where a child has its
 * areas the module says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "restart/lazy_internal.h"
#include "restart/userfault.h"

#define MESSAGES	16	/* that are read at a time */
#define PLACE_MS	1	/* between two attempts to place a child */
#define FIRST_PAGE	0x10000ull		/* of user space */
#define LAST_PAGE	0x7fffffffe000ull

/* ---- targets ---------------------------------------------------------------------------- */

/* Makes room for one more. */
static int reserve(struct lazy_server *s)
{
	struct target **more = reallocarray(s->target, s->nr_targets + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->target = more;
	return 0;
}

int lazy_target_add(struct lazy_server *s, int fd, const struct target *model)
{
	/* Above the job's: so that, when we are killed, the job ends first. */
	int high = fd > s->job ? fd : fcntl(fd, F_DUPFD_CLOEXEC, s->job + 1);
	struct target *t = calloc(1, sizeof(*t));
	int err = high < 0 ? -errno : 0;

	if (high != fd)
		close(fd);
	if (!err && (!t || reserve(s) || areas_copy(&t->areas, &model->areas)))
		err = -ENOMEM;
	if (err) {
		if (high >= 0)
			close(high);
		free(t);
		return err;
	}
	t->fd = high;
	t->process = model->process;
	t->pid = model->pid;
	t->begun = model->begun;
	t->number = s->next_number++;
	s->target[s->nr_targets++] = t;
	return 0;
}

struct target *lazy_target_from(const struct lazy_server *s, uint64_t number)
{
	size_t low = 0, high = s->nr_targets;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->target[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->nr_targets ? s->target[low] : NULL;
}

static void free_target(struct target *t)
{
	close(t->fd);
	areas_free(&t->areas);
	free(t);
}

void lazy_targets_free(struct lazy_server *s)
{
	for (size_t i = 0; i < s->nr_targets; i++)
		free_target(s->target[i]);
	s->nr_targets = 0;
}

static void drop_faults(struct lazy_server *s, const struct target *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_faults; i++)
		if (s->fault[i].target != t)
			s->fault[kept++] = s->fault[i];
	s->nr_faults = kept;
}

void lazy_targets_sweep(struct lazy_server *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_targets; i++) {
		struct target *t = s->target[i];

		if (!t->gone) {
			s->target[kept++] = t;
			continue;
		}
		drop_faults(s, t);
		free_target(t);
	}
	s->nr_targets = kept;
}

/* ---- messages ------------------------------------------------------------------------------ */

static int add_fault(struct lazy_server *s, struct target *t, uint64_t address)
{
	if (s->nr_faults == s->max_faults) {
		size_t max = 2 * s->max_faults + 64;
		struct fault *fault = reallocarray(s->fault, max, sizeof(*fault));

		if (!fault)
			return -ENOMEM;
		s->fault = fault;
		s->max_faults = max;
	}
	s->fault[s->nr_faults++] = (struct fault){ t, address & ~(uint64_t)(CONTEXT_PAGE - 1) };
	return 0;
}

static int follow(struct lazy_server *s, struct target *t, const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_PAGEFAULT:
		return add_fault(s, t, msg->arg.pagefault.address);
	case UFFD_EVENT_FORK:
		return lazy_target_add(s, (int)msg->arg.fork.ufd, t);
	case UFFD_EVENT_REMAP:
		return areas_move(&t->areas, msg->arg.remap.from, msg->arg.remap.to,
				  msg->arg.remap.len);
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		return areas_cut(&t->areas, msg->arg.remove.start, msg->arg.remove.end);
	default:
		return 0;
	}
}

static bool is_readable(const struct target *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/*
 * Asks for nothing: -EAGAIN: an event is to be read, or about to be; -ESRCH: its memory is gone.
 * Zeros would do no harm where nothing is to be loaded.
 */
static int64_t probe(const struct target *t)
{
	return userfault_zero(t->fd, areas_origin(&t->areas, LAST_PAGE) == AREAS_NONE ? LAST_PAGE :
					     FIRST_PAGE);
}

/* Takes from the module where a child has its areas now.  -ENOENT: it has no mapping of them. */
static int ask_areas(struct lazy_server *s, struct target *t)
{
	struct kcr_faulting_range *range = NULL;
	struct areas areas = { 0 };
	int count = device_faulting(s->job, t->fd, &range), err;

	if (count < 0)
		return count;
	err = areas_inherit(&areas, &t->areas, range, (size_t)count);
	free(range);
	areas_free(err ? &areas : &t->areas);
	if (!err)
		t->areas = areas;
	return err;
}

/*
 * One message of a child whose areas were just taken as they are now: it may have moved or
 * unmapped them before.
 */
static int follow_unplaced(struct lazy_server *s, struct target *t)
{
	struct uffd_msg msg;
	struct area area;
	ssize_t n = read(t->fd, &msg, sizeof(msg));

	if (n <= 0)
		return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
	if (msg.event == UFFD_EVENT_UNMAP)
		return 0;
	/* Its mapping is still there: only the pages have moved (MREMAP_DONTUNMAP). */
	if (msg.event == UFFD_EVENT_REMAP &&
	    !areas_first(&t->areas, msg.arg.remap.from, msg.arg.remap.from + msg.arg.remap.len, &area))
		return 0;
	return follow(s, t, &msg);
}

/*
 * Finds out where a child has its areas; t->placed stays false if that cannot be known yet, as
 * it has not been made or is about to change them.  What the module says is true if no event is
 * to be read afterwards.  It knows the child shortly before that runs.
 */
static int place(struct lazy_server *s, struct target *t)
{
	bool runs;

	do {
		int err;

		runs = is_readable(t);
		err = ask_areas(s, t);
		if (err && err != -ENOENT)
			return err;
		switch (probe(t)) {
		case -ESRCH:
			t->gone = true;
			return 0;
		case -EAGAIN:
			err = follow_unplaced(s, t);
			if (err)
				return err;
			break;
		default:
			if (err && !runs)
				return 0;
			if (err)
				areas_free(&t->areas);
			t->placed = true;
			return 0;
		}
	} while (runs);
	return 0;
}

static int read_messages(struct lazy_server *s, struct target *t)
{
	struct uffd_msg msg[MESSAGES];
	int err = 0;

	if (!t->placed)
		err = place(s, t);
	while (!err && t->placed && !t->gone) {
		ssize_t n = read(t->fd, msg, sizeof(msg));

		if (n <= 0)
			return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
		for (size_t i = 0; !err && i < (size_t)n / sizeof(*msg); i++)
			err = follow(s, t, &msg[i]);
	}
	return err;
}

/* s->poll for all targets, and before these the eventfd. */
static int prepare_poll(struct lazy_server *s)
{
	if (s->nr_targets >= s->max_polled) {
		size_t max = 2 * s->nr_targets + 16;
		struct pollfd *more = reallocarray(s->poll, max, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->poll = more;
		s->max_polled = max;
	}
	s->poll[0] = (struct pollfd){ .fd = s->news, .events = POLLIN };
	for (size_t i = 0; i < s->nr_targets; i++)
		s->poll[i + 1] = (struct pollfd){ .fd = s->target[i]->fd, .events = POLLIN };
	return 0;
}

/* Of the first `count` targets: a fork adds some, which have said nothing yet. */
static int follow_all(struct lazy_server *s, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++)
		if (s->poll[i + 1].revents || !s->target[i]->placed)
			err = read_messages(s, s->target[i]);
	return err;
}

/* What the eventfd says is found out by whoever looks again. */
static void take_news(const struct lazy_server *s)
{
	uint64_t count;

	if (read(s->news, &count, sizeof(count)) < 0)
		return;
}

static bool has_unplaced(const struct lazy_server *s)
{
	for (size_t i = 0; i < s->nr_targets; i++)
		if (!s->target[i]->placed && !s->target[i]->gone)
			return true;
	return false;
}

int lazy_look(struct lazy_server *s, int timeout_ms)
{
	size_t count = s->nr_targets;
	int err = prepare_poll(s);

	if (err)
		return err;
	/* A child may say nothing when it can be placed. */
	poll(s->poll, count + 1, has_unplaced(s) ? PLACE_MS : timeout_ms);
	if (atomic_load(&s->stop))
		return -ECANCELED;
	if (s->poll[0].revents)
		take_news(s);
	pthread_rwlock_wrlock(&s->places);
	err = follow_all(s, count);
	if (!err)
		lazy_targets_sweep(s);
	pthread_rwlock_unlock(&s->places);
	return err;
}
