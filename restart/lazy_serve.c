// SPDX-License-Identifier: GPL-2.0
/*
 * See lazy_serve.h.  One thread reads the kernel's messages (lazy_follow.c) and gives pages, a
 * chunk of the file at a time, to all processes that have them: the one that was saved, and
 * what it has forked since.
 *
 * What is given is right because the kernel takes no page (EAGAIN) while a change of the mappings
 * is under way of which we have not been told.
 */
#include "restart/lazy_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/thread.h"
#include "report/report.h"
#include "restart/lazy_internal.h"
#include "restart/userfault.h"

#define WAIT_MS		5	/* for an event that the kernel has announced */

/* ---- pages ------------------------------------------------------------------------------------ */

/* Gives `length` bytes, or fewer where that is the first page only.  How many it went on, or -errno. */
static int64_t give(struct lazy_server *s, struct target *t, uint64_t address, const char *pages,
		    uint64_t length)
{
	int64_t n = userfault_copy(t->fd, address, pages, length);
	int err;

	switch (n) {
	case -EAGAIN:
		err = lazy_look(s, WAIT_MS);
		return err ? err : 0;
	case -ENOENT:
		/* It may be in two mappings now. */
		if (length > CONTEXT_PAGE)
			return give(s, t, address, pages,
				    length / 2 / CONTEXT_PAGE * CONTEXT_PAGE);
		return CONTEXT_PAGE;
	case -EEXIST:
		return CONTEXT_PAGE;
	case -ESRCH:
		t->gone = true;
		return 0;
	default:
		return n;
	}
}

/* Gives the pages of one run that the target still wants, wherever they are. */
static int give_run(struct lazy_server *s, struct target *t, const struct kcr_run *run,
		    const char *pages)
{
	uint64_t origin = run->address, end = origin + run->nr_pages * CONTEXT_PAGE;

	while (!t->gone) {
		struct area area;
		int64_t n;

		if (!t->placed) {
			int err = lazy_target_place(s, t);

			if (!err && !t->placed && !t->gone)
				err = lazy_look(s, 1);
			if (err)
				return err;
			continue;
		}
		if (!areas_place(&t->areas, origin, end, &area))
			break;
		n = give(s, t, area.start, pages + (area.origin - run->address),
			 area.end - area.start);
		if (n < 0)
			return (int)n;
		/* 0: something has happened, and it is to be looked for again. */
		origin = n ? area.origin + (uint64_t)n : origin;
	}
	return 0;
}

/* To all who have a place for it, also to those that are forked meanwhile. */
static int load_chunk(struct lazy_server *s, struct deferred_chunk *chunk)
{
	int err = deferred_load(s->deferred, chunk, s->pages);

	for (size_t i = 0; !err && i < s->nr_targets; i++) {
		struct target *t = s->target[i];
		const char *pages = s->pages;

		for (size_t k = 0; !err && t->pid == chunk->pid && k < chunk->nr_runs; k++) {
			err = give_run(s, t, &chunk->runs[k], pages);
			pages += chunk->runs[k].nr_pages * CONTEXT_PAGE;
		}
	}
	chunk->loaded = !err;
	return err;
}

/* The page is of a chunk that is not loaded yet, or has never been in the file, or not any more. */
static int answer(struct lazy_server *s, const struct fault *fault)
{
	struct target *t = fault->target;
	int err = 0;

	while (!err && !t->gone) {
		uint64_t origin = areas_origin(&t->areas, fault->address);
		struct deferred_chunk *chunk = origin == AREAS_NONE ? NULL :
					       deferred_find(s->deferred, t->pid, origin);
		int64_t n;

		if (chunk && !chunk->loaded) {
			err = load_chunk(s, chunk);
			continue;
		}
		n = userfault_zero(t->fd, fault->address);
		if (n == -EAGAIN) {
			err = lazy_look(s, WAIT_MS);
			continue;
		}
		t->gone = n == -ESRCH;
		if (n < 0 && !t->gone)
			userfault_wake(t->fd, fault->address);
		break;
	}
	return err;
}

static int answer_all(struct lazy_server *s)
{
	int err = 0;

	while (!err && s->nr_faults) {
		struct fault fault = s->fault[--s->nr_faults];

		err = answer(s, &fault);
	}
	return err;
}

static int load_all(struct lazy_server *s)
{
	size_t next = 0, count = deferred_count(s->deferred);
	int err = 0;

	while (!err && next < count && s->nr_targets) {
		struct deferred_chunk *chunk = deferred_at(s->deferred, next);

		err = lazy_look(s, 0);
		if (!err)
			err = answer_all(s);
		if (!err && !chunk->loaded)
			err = load_chunk(s, chunk);
		if (!err)
			err = answer_all(s);
		lazy_targets_sweep(s);
		next++;
	}
	return err;
}

static void *serve(void *arg)
{
	struct lazy_server *s = arg;
	int err = load_all(s);

	if (!err)
		err = device_resume(s->job, KCR_RESUME_LOADED, NULL);
	if (err && err != -ECANCELED) {
		report_errno(err, "the memory of the programs cannot be loaded");
		s->message = strdup(report_message());
		/* Before the userfaultfds are closed: missing pages would be zeros. */
		close(s->end_fd);
		s->end_fd = -1;
	}
	s->error = err;
	/* If somebody else is ending the restart, the job goes first, too. */
	if (err != -ECANCELED)
		lazy_targets_free(s);
	return NULL;
}

/* ---- for the caller --------------------------------------------------------------------------- */

int lazy_server_new(struct lazy_server **out, int job, struct deferred *deferred)
{
	struct lazy_server *s = calloc(1, sizeof(*s));

	if (!s)
		return report_errno(-ENOMEM, "--lazy");
	s->job = job;
	s->end_fd = -1;
	s->deferred = deferred;
	*out = s;
	return 0;
}

int lazy_server_add(struct lazy_server *s, int fd, size_t process)
{
	struct target model = { .process = process };

	return lazy_target_add(s, fd, &model);
}

int lazy_server_arm(struct lazy_server *s, size_t process, int32_t pid, uint64_t start,
		    uint64_t end)
{
	struct target *t = NULL;
	int err = 0;

	for (size_t i = 0; i < s->nr_targets; i++)
		if (s->target[i]->process == process)
			t = s->target[i];
	if (!t)
		return -ESRCH;
	t->pid = pid;
	t->placed = true;
	if (!t->begun)
		err = userfault_begin(t->fd);
	t->begun = !err;
	if (!err)
		err = userfault_register(t->fd, start, end);
	return err ? err : areas_add(&t->areas, start, end, start);
}

/* Those of which nothing is deferred. */
static void drop_unused(struct lazy_server *s)
{
	for (size_t i = 0; i < s->nr_targets; i++)
		s->target[i]->gone = !s->target[i]->begun;
	lazy_targets_sweep(s);
}

int lazy_server_start(struct lazy_server *s)
{
	int err;

	drop_unused(s);
	s->end_fd = fcntl(s->job, F_DUPFD_CLOEXEC, 0);
	s->pages = malloc(CONTEXT_CHUNK_BYTES);
	if (s->end_fd < 0 || !s->pages)
		return report_errno(s->end_fd < 0 ? -errno : -ENOMEM, "--lazy");
	err = thread_start(&s->thread, serve, s);
	s->started = !err;
	return err ? report_errno(err, "--lazy: cannot start a thread") : 0;
}

int lazy_server_wait(struct lazy_server *s)
{
	pthread_join(s->thread, NULL);
	s->started = false;
	close(s->job);
	if (s->error && !report_message() && s->message)
		report_fail(s->error, "%s", s->message);
	return s->error;
}

void lazy_server_stop(struct lazy_server *s)
{
	atomic_store(&s->stop, true);
	close(s->job);
	if (s->started)
		pthread_join(s->thread, NULL);
	s->started = false;
}

void lazy_server_free(struct lazy_server *s)
{
	if (!s)
		return;
	lazy_targets_free(s);
	if (s->end_fd >= 0)
		close(s->end_fd);
	free(s->target);
	free(s->fault);
	free(s->poll);
	free(s->pages);
	free(s->message);
	free(s);
}
