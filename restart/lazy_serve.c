// SPDX-License-Identifier: GPL-2.0
/*
 * See lazy_serve.h.  A thread reads the kernel's messages (lazy_follow.c) and says what is needed
 * first; others give it (lazy_load.c).
 */
#include "restart/lazy_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/device.h"
#include "proc/thread.h"
#include "report/report.h"
#include "restart/lazy_internal.h"
#include "restart/userfault.h"

#define RETRY_MS	5	/* if the kernel is about to tell of an event */

/* ---- faults --------------------------------------------------------------------------------- */

enum answer {
	ANSWERED,
	WAITS,			/* for its chunk, or until it is placed */
	RETRIED,		/* when the kernel has told of an event */
};

/* The page is of a chunk that is not loaded yet, or has never been in the file, or not any more. */
static enum answer answer(struct lazy_server *s, const struct fault *fault)
{
	struct target *t = fault->target;
	uint64_t origin = areas_origin(&t->areas, fault->address);
	size_t chunk = origin == AREAS_NONE ? SIZE_MAX : deferred_find(s->deferred, t->pid, origin);
	int64_t n;

	/* What it lacks is not known yet. */
	if (!t->placed)
		return WAITS;
	if (chunk != SIZE_MAX && !loaders_want(s->loaders, chunk, origin))
		return WAITS;
	n = userfault_zero(t->fd, fault->address);
	if (n == -EAGAIN)
		return RETRIED;
	if (n == -ESRCH)
		t->gone = true;
	else if (n < 0)
		userfault_wake(t->fd, fault->address);
	return ANSWERED;
}

/* Is any to be answered soon although nothing more is heard? */
static bool answer_all(struct lazy_server *s)
{
	size_t kept = 0;
	bool again = false;

	for (size_t i = 0; i < s->nr_faults; i++) {
		enum answer result = answer(s, &s->fault[i]);

		if (result != ANSWERED)
			s->fault[kept++] = s->fault[i];
		again |= result == RETRIED;
	}
	s->nr_faults = kept;
	return again;
}

/* ---- the thread ------------------------------------------------------------------------------- */

static int serve_all(struct lazy_server *s)
{
	bool again = false;
	int result = s->nr_targets ? loaders_start(s) : 0;

	while (!result && s->nr_targets) {
		result = lazy_look(s, again ? RETRY_MS : -1);
		if (!result) {
			again = answer_all(s);
			result = loaders_result(s->loaders);
		}
	}
	return result < 0 ? result : 0;
}

static void *serve(void *arg)
{
	struct lazy_server *s = arg;
	int err = serve_all(s);

	if (!err)
		err = device_resume(s->job, KCR_RESUME_LOADED, NULL);
	if (!err) {
		loading_end(&s->loading);
		if (s->loaded)
			s->loaded();
	}
	if (err && err != -ECANCELED) {
		report_errno(err, "the memory of the programs cannot be loaded");
		s->message = strdup(report_message() ?: strerror(-err));
		/* Before the userfaultfds are closed: missing pages would be zeros. */
		close(s->end_fd);
		s->end_fd = -1;
	}
	s->error = err;
	/* What they have asked for comes, unless it is no use to wait for it. */
	if (err)
		deferred_end(s->deferred, false);
	loaders_end(s->loaders);
	if (!err)
		deferred_end(s->deferred, true);
	/* If somebody else is ending the restart, the job goes first, too. */
	if (err != -ECANCELED)
		lazy_targets_free(s);
	return NULL;
}

void lazy_server_wake(const struct lazy_server *s)
{
	const uint64_t one = 1;

	/* Fails if it was woken as often as that without having looked. */
	if (write(s->news, &one, sizeof(one)) < 0)
		return;
}

/* ---- for the caller --------------------------------------------------------------------------- */

int lazy_server_new(struct lazy_server **out, int job, struct deferred *deferred)
{
	struct lazy_server *s = calloc(1, sizeof(*s));
	pthread_rwlockattr_t attributes;

	if (!s)
		return report_errno(-ENOMEM, "--lazy");
	s->job = job;
	s->end_fd = -1;
	s->deferred = deferred;
	/* Loaders hold it nearly all the time. */
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&s->places, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	*out = s;
	s->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->news < 0 ? report_errno(-errno, "--lazy") : 0;
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
		err = userfault_register(t->fd, start, end, UFFDIO_REGISTER_MODE_MISSING);
	return err ? err : areas_add(&t->areas, start, end, start);
}

/* Those of which nothing is deferred. */
static void drop_unused(struct lazy_server *s)
{
	for (size_t i = 0; i < s->nr_targets; i++)
		s->target[i]->gone = !s->target[i]->begun;
	lazy_targets_sweep(s);
}

int lazy_server_start(struct lazy_server *s, void (*loaded)(void))
{
	int err;

	s->loaded = loaded;
	drop_unused(s);
	s->end_fd = fcntl(s->job, F_DUPFD_CLOEXEC, 0);
	if (s->end_fd < 0)
		return report_errno(-errno, "--lazy");
	loading_begin(&s->loading);
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
	lazy_server_wake(s);
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
	loaders_free(s->loaders);
	if (s->end_fd >= 0)
		close(s->end_fd);
	if (s->news >= 0)
		close(s->news);
	pthread_rwlock_destroy(&s->places);
	free(s->target);
	free(s->fault);
	free(s->poll);
	free(s->message);
	free(s);
}
