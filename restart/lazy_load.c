// SPDX-License-Identifier: GPL-2.0
/*
 * Loads the memory of a lazy restart: threads that each take a chunk, read it, and give its pages
 * to all processes that have them: the one that was saved, and what it has forked since.  One
 * thread more than there are processors waits for chunks that somebody needs at once.
 *
 * What is given is right because the kernel takes no page (EAGAIN) while a change of the mappings
 * is under way of which the server has not been told, and nothing is followed while pages are given.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "image/pages.h"
#include "proc/thread.h"
#include "restart/lazy_internal.h"
#include "restart/userfault.h"

#define MAX_LOADERS	5
#define PIECE		(64u * CONTEXT_PAGE)	/* given at a time: others wait for it */
#define WAIT_US		500			/* for the server to follow an event */
#define NONE		SIZE_MAX

enum progress { LEFT, WANTED, TAKEN, LOADED };

/* What has become of a chunk. */
struct load {
	enum progress progress;
	uint64_t first;			/* the page that is waited for, in the image */
	size_t next;			/* WANTED: the next one, or NONE */
};

struct loader {
	struct loaders *all;
	pthread_t thread;
	bool spare;			/* only for what somebody waits for */
	struct deferred_reader *reader;
	char *pages;			/* of a chunk */
};

struct loaders {
	struct lazy_server *server;
	size_t nr_loaders;
	struct loader loader[MAX_LOADERS];
	pthread_mutex_t lock;		/* protects what follows; after `places` */
	pthread_cond_t changed;
	struct load *load;		/* of each chunk */
	size_t next;			/* those before it are not LEFT */
	size_t first_wanted, last_wanted;
	size_t nr_left;			/* LEFT or WANTED */
	size_t nr_missing;		/* not LOADED */
	int error;
	bool end;
};

/* ---- which chunk ---------------------------------------------------------------------------- */

static size_t pop_wanted(struct loaders *l)
{
	size_t chunk = l->first_wanted;

	l->first_wanted = l->load[chunk].next;
	return chunk;
}

static size_t pop_next(struct loaders *l)
{
	while (l->load[l->next].progress != LEFT)
		l->next++;
	return l->next;
}

/* The next chunk for this thread; NONE: there will be none. */
static size_t take(struct loader *me, uint64_t *first)
{
	struct loaders *l = me->all;
	size_t chunk = NONE;

	pthread_mutex_lock(&l->lock);
	while (!l->end && l->nr_left && me->spare && l->first_wanted == NONE)
		pthread_cond_wait(&l->changed, &l->lock);
	if (!l->end && l->nr_left) {
		chunk = l->first_wanted != NONE ? pop_wanted(l) : pop_next(l);
		l->load[chunk].progress = TAKEN;
		*first = l->load[chunk].first;
		if (!--l->nr_left)
			pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return chunk;
}

bool loaders_want(struct loaders *l, size_t chunk, uint64_t origin)
{
	struct load *load = &l->load[chunk];
	bool loaded;

	pthread_mutex_lock(&l->lock);
	loaded = load->progress == LOADED;
	if (load->progress == LEFT) {
		*load = (struct load){ WANTED, origin, NONE };
		if (l->first_wanted == NONE)
			l->first_wanted = chunk;
		else
			l->load[l->last_wanted].next = chunk;
		l->last_wanted = chunk;
		pthread_cond_broadcast(&l->changed);
	}
	pthread_mutex_unlock(&l->lock);
	return loaded;
}

static void set_loaded(struct loaders *l, size_t chunk)
{
	pthread_mutex_lock(&l->lock);
	l->load[chunk].progress = LOADED;
	l->nr_missing--;
	pthread_mutex_unlock(&l->lock);
}

static void stop(struct loaders *l, int error)
{
	pthread_mutex_lock(&l->lock);
	l->end = true;
	l->error = l->error ?: error;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static bool is_ending(struct loaders *l)
{
	bool end;

	pthread_mutex_lock(&l->lock);
	end = l->end;
	pthread_mutex_unlock(&l->lock);
	return end;
}

int loaders_result(struct loaders *l)
{
	int result;

	pthread_mutex_lock(&l->lock);
	result = l->error ?: !l->nr_missing;
	pthread_mutex_unlock(&l->lock);
	return result;
}

/* ---- giving pages --------------------------------------------------------------------------- */

/* Pages that one process still has to get: [at, end) of the image. */
struct rest {
	uint64_t target;		/* its number */
	uint64_t at, end;
	const char *pages;		/* those at `at` */
	uint64_t most;			/* that are given at a time, in bytes */
};

/* The next `length` bytes are done. */
static void advance(struct rest *rest, uint64_t length)
{
	rest->at += length;
	rest->pages += length;
}

/* Gives some to the target, wherever they are: 0, -EAGAIN: later, or another -errno.  `places` held. */
static int give_some(struct target *t, struct rest *rest)
{
	struct area area;
	uint64_t length;
	int64_t n;

	if (!t->placed)
		return -EAGAIN;
	if (!areas_place(&t->areas, rest->at, rest->end, &area)) {
		rest->at = rest->end;
		return 0;
	}
	advance(rest, area.origin - rest->at);
	length = area.end - area.start;
	n = userfault_copy(t->fd, area.start, rest->pages, length < rest->most ? length : rest->most);
	switch (n) {
	case -ENOENT:
		/* It may be in two mappings now. */
		if (rest->most > CONTEXT_PAGE) {
			rest->most = rest->most / 2 / CONTEXT_PAGE * CONTEXT_PAGE;
			return 0;
		}
		n = CONTEXT_PAGE;
		break;
	case -EEXIST:
		n = CONTEXT_PAGE;
		break;
	case -ESRCH:
		t->gone = true;
		return 0;
	}
	if (n < 0)
		return (int)n;
	advance(rest, (uint64_t)n);
	rest->most = PIECE;
	return 0;
}

static int give_rest(struct loaders *l, struct rest *rest)
{
	struct lazy_server *s = l->server;

	while (rest->at < rest->end) {
		struct target *t;
		int err = 0;

		pthread_rwlock_rdlock(&s->places);
		t = lazy_target_from(s, rest->target);
		if (!t || t->number != rest->target || t->gone)
			rest->at = rest->end;
		else
			err = give_some(t, rest);
		pthread_rwlock_unlock(&s->places);
		if (err && err != -EAGAIN)
			return err;
		if (!err)
			continue;
		if (is_ending(l))
			return -ECANCELED;
		usleep(WAIT_US);
	}
	return 0;
}

/* The pages from `first` on, and then those before. */
static int give_chunk(struct loader *me, const struct deferred_chunk *chunk, uint64_t target,
		      uint64_t first)
{
	int err = 0;

	for (int before = 0; before < 2; before++) {
		const char *pages = me->pages;

		for (size_t i = 0; !err && i < chunk->nr_runs; i++) {
			uint64_t start = chunk->runs[i].address;
			uint64_t end = start + chunk->runs[i].nr_pages * CONTEXT_PAGE;
			uint64_t split = first < start ? start : first > end ? end : first;
			struct rest rest = { target, split, end, pages + (split - start), PIECE };

			if (before)
				rest = (struct rest){ target, start, split, pages, PIECE };
			err = give_rest(me->all, &rest);
			pages += end - start;
		}
	}
	return err;
}

/* The number of the first target from this one on that has pages of the process; or UINT64_MAX. */
static uint64_t next_target(const struct lazy_server *s, int32_t pid, uint64_t number)
{
	const struct target *t = lazy_target_from(s, number);

	while (t && (t->pid != pid || t->gone))
		t = lazy_target_from(s, t->number + 1);
	return t ? t->number : UINT64_MAX;
}

/* To all, also to those that are forked meanwhile. */
static int load_chunk(struct loader *me, size_t number, uint64_t first)
{
	struct lazy_server *s = me->all->server;
	const struct deferred_chunk *chunk = deferred_at(s->deferred, number);
	int err = deferred_load(me->reader, chunk, me->pages);
	uint64_t target = 0;

	while (!err) {
		pthread_rwlock_rdlock(&s->places);
		target = next_target(s, chunk->pid, target);
		/* Whoever is forked from now on has its pages. */
		if (target == UINT64_MAX)
			set_loaded(me->all, number);
		pthread_rwlock_unlock(&s->places);
		if (target == UINT64_MAX)
			return 0;
		err = give_chunk(me, chunk, target++, first);
	}
	return err;
}

static void *work(void *arg)
{
	struct loader *me = arg;
	uint64_t first;
	size_t chunk;

	while ((chunk = take(me, &first)) != NONE) {
		int err = load_chunk(me, chunk, first);

		if (err)
			stop(me->all, err);
		lazy_server_wake(me->all->server);
	}
	return NULL;
}

/* ---- for the server ------------------------------------------------------------------------- */

static int start_one(struct loaders *l, bool spare)
{
	struct loader *me = &l->loader[l->nr_loaders];
	int err = -ENOMEM;

	me->all = l;
	me->spare = spare;
	me->reader = deferred_reader_new(l->server->deferred);
	me->pages = malloc(CONTEXT_CHUNK_BYTES);
	if (me->reader && me->pages)
		err = thread_start(&me->thread, work, me);
	if (!err) {
		l->nr_loaders++;
		return 0;
	}
	deferred_reader_free(me->reader);
	free(me->pages);
	return err;
}

int loaders_start(struct lazy_server *s)
{
	size_t count = deferred_count(s->deferred), wanted = pages_processors();
	struct loaders *l = calloc(1, sizeof(*l));
	int err = 0;

	/* They rather wait for others than work. */
	if (deferred_is_partial(s->deferred))
		wanted = MAX_LOADERS - 1;
	if (!l)
		return -ENOMEM;
	s->loaders = l;
	l->server = s;
	l->nr_left = l->nr_missing = count;
	l->first_wanted = NONE;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->load = calloc(count + 1, sizeof(*l->load));
	if (!l->load)
		return -ENOMEM;
	while (!err && l->nr_loaders <= wanted)
		err = start_one(l, l->nr_loaders == wanted);
	return l->nr_loaders ? 0 : err;
}

void loaders_end(struct loaders *l)
{
	if (!l)
		return;
	stop(l, 0);
	while (l->nr_loaders) {
		struct loader *one = &l->loader[--l->nr_loaders];

		pthread_join(one->thread, NULL);
		deferred_reader_free(one->reader);
		free(one->pages);
	}
}

void loaders_free(struct loaders *l)
{
	if (!l)
		return;
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l->load);
	free(l);
}
