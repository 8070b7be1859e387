// SPDX-License-Identifier: GPL-2.0
/*
 * The thread that brings pages.  In turn it reads what the programs report, brings the
 * pages for which they wait, and a few more; in file order, but first the rest of the chunk
 * for which somebody has waited.  It alone reads events and puts pages, so what it knows of
 * an address space is what the kernel knew before the outstanding events, and while there
 * are such the kernel refuses pages (faults.h).
 */
#include "restart/lazy_state.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"

#define PAGE		((uint64_t)CONTEXT_PAGE)
#define AT_FAULT	16u		/* pages that are brought at a time, for one who waits … */
#define AT_REST		256u		/* … and for nobody */
#define PAUSE_US	100		/* until a program has gone on after an event */
#define ENOUGH_MESSAGES	16u

/* ---- chunks in memory --------------------------------------------------------------------- */

const char *lazy_chunk(struct lazy *l, size_t number, int *err)
{
	struct lazy_chunk *oldest = &l->chunk[0];

	for (size_t i = 0; i < LAZY_CHUNKS; i++) {
		struct lazy_chunk *c = &l->chunk[i];

		if (c->number == number) {
			c->used = ++l->uses;
			return c->pages;
		}
		if (c->used < oldest->used)
			oldest = c;
	}
	if (!oldest->pages)
		oldest->pages = malloc(CONTEXT_CHUNK_BYTES);
	if (!oldest->pages) {
		*err = report_errno(-ENOMEM, "pages of the image");
		return NULL;
	}
	oldest->number = SIZE_MAX;
	*err = page_index_load(l->index, number, oldest->pages);
	if (*err)
		return NULL;
	oldest->number = number;
	oldest->used = ++l->uses;
	return oldest->pages;
}

struct lazy *lazy_new(void)
{
	struct lazy *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	l->wanted = SIZE_MAX;
	for (size_t i = 0; i < LAZY_CHUNKS; i++)
		l->chunk[i].number = SIZE_MAX;
	return l;
}

/* ---- address spaces ------------------------------------------------------------------------ */

int lazy_add_space(struct lazy *l, const struct space *space)
{
	size_t room = l->room ? 2 * l->room : 16;
	struct space *larger;

	if (l->nr_spaces == l->room) {
		larger = reallocarray(l->space, room, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		l->space = larger;
		l->room = room;
	}
	l->space[l->nr_spaces++] = *space;
	return 0;
}

/* Closing the descriptor leaves memory that is like any other. */
static void drop_space(struct space *s)
{
	close(s->fd);
	missing_free(&s->missing);
	free(s->message);
}

static void drop_spaces_that_are_over(struct lazy *l)
{
	for (size_t i = l->nr_spaces; i-- > 0;) {
		if (!l->space[i].over)
			continue;
		drop_space(&l->space[i]);
		l->space[i] = l->space[--l->nr_spaces];
		l->full = false;
	}
}

/* ---- reading what is reported --------------------------------------------------------------- */

static int queue(struct space *s, const struct uffd_msg *message, size_t count)
{
	size_t room = 2 * s->room + ENOUGH_MESSAGES;

	if (s->nr_messages + count > s->room) {
		struct uffd_msg *larger = reallocarray(s->message, room, sizeof(*larger));

		if (!larger)
			return report_errno(-ENOMEM, "restart");
		s->message = larger;
		s->room = room;
	}
	memcpy(s->message + s->nr_messages, message, count * sizeof(*message));
	s->nr_messages += count;
	return 0;
}

/* Everything that is there.  0 or -errno, reported. */
static int read_space(struct lazy *l, struct space *s)
{
	struct uffd_msg message[ENOUGH_MESSAGES];
	ssize_t got;
	int err = 0;

	while (!err && (got = read(s->fd, message, sizeof(message))) > 0)
		err = queue(s, message, (size_t)got / sizeof(*message));
	if (err || !got || errno == EAGAIN || errno == EINTR)
		return err;
	/* A fork brings a descriptor; it waits until others have been closed. */
	l->full = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
	return l->full ? 0 : report_errno(-errno, "process %d: its page faults cannot be read", s->pid);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int take_fork(struct lazy *l, struct space *parent, int fd)
{
	struct space child = { .fd = fd, .pid = parent->pid, .forked = true };
	int err = missing_fork(&child.missing, &parent->missing);

	/* This may move `parent`. */
	if (!err)
		err = lazy_add_space(l, &child);
	if (!err)
		return 0;
	missing_free(&child.missing);
	close(fd);
	return report_errno(err, "process %d has forked", child.pid);
}

static int not_followed(const struct space *s, int err)
{
	if (err == -EDEADLK)
		return report_fail(err, "process %d: several threads have moved and unmapped the same "
				   "memory at once, which --lazy cannot follow", s->pid);
	return report_errno(err, "process %d has changed its memory", s->pid);
}

/* A page was put: nothing is outstanding. */
static int settle(struct space *s)
{
	int err = missing_settle(&s->missing, faults_look, s->fd);

	return err ? not_followed(s, err) : 0;
}

static int take_event(struct lazy *l, struct space *s, const struct uffd_msg *m)
{
	int err = 0;

	switch (m->event) {
	case UFFD_EVENT_FORK:
		return take_fork(l, s, m->arg.fork.ufd);
	case UFFD_EVENT_REMOVE:
		missing_drop(&s->missing, m->arg.remove.start, m->arg.remove.end);
		return 0;
	case UFFD_EVENT_UNMAP:
		err = missing_unmap(&s->missing, m->arg.remove.start, m->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		err = missing_move(&s->missing, m->arg.remap.from, m->arg.remap.to, m->arg.remap.len);
		break;
	default:
		return report_fail(-EPROTO, "process %d: an unknown event of its memory (%u)", s->pid,
				   m->event);
	}
	return err ? not_followed(s, err) : 0;
}

/* ---- pages ------------------------------------------------------------------------------------ */

/* What a failed copy or zero page means: 0: nothing, or -EAGAIN, or another -errno, reported. */
static int judge(struct space *s, int result)
{
	if (result == -ESRCH)
		s->over = true;
	if (result == -ESRCH || result == -EEXIST || result == -ENOENT)
		return 0;
	return result == -EAGAIN ? result : report_errno(result, "process %d: a page cannot be brought",
							 s->pid);
}

/*
 * Brings `count` pages from address `image` on, which are together.  1: some of them are
 * there, 0: the address space is over, -EAGAIN, or another -errno, reported.
 */
static int bring(struct lazy *l, struct space *s, const struct index_piece *piece, uint64_t image,
		 uint64_t address, uint64_t count)
{
	uint64_t offset = piece->offset + (image - piece->address) / PAGE;
	int err = 0;
	const char *pages = lazy_chunk(l, piece->chunk, &err);
	ssize_t result;

	if (!pages)
		return err;
	result = faults_copy(s->fd, address, pages + offset * PAGE, count * PAGE);
	if (result == -ENOENT && count > 1)	/* more than one mapping by now */
		result = faults_copy(s->fd, address, pages + offset * PAGE, PAGE);
	if (result > 0) {
		missing_done(&s->missing, piece, image, (uint64_t)result / PAGE);
		return settle(s) ?: 1;
	}
	/* The range is looked up before it is checked whether an event is outstanding. */
	if (result == -ENOENT && faults_look(s->fd, address) == -EAGAIN)
		return -EAGAIN;
	if (result == -ENOENT && s->forked) {	/* MADV_DONTFORK */
		missing_done(&s->missing, piece, image, 1);
		return 1;
	}
	if (result == -ENOENT || result == -EEXIST)
		return report_fail(-EFAULT, "process %d: its memory at %" PRIx64 " is not as it was left",
				   s->pid, address);
	return judge(s, (int)result);
}

/* How many pages from `address` on can be brought together, `most` at most. */
static uint64_t together(const struct space *s, const struct index_piece *piece, uint64_t image,
			 uint64_t most)
{
	uint64_t rest = piece->nr_pages - (image - piece->address) / PAGE, address, skip;

	return missing_place(&s->missing, piece, image, most < rest ? most : rest, &address, &skip);
}

/* 0, -EAGAIN: later, or another -errno, reported. */
static int take_fault(struct lazy *l, struct space *s, uint64_t address)
{
	const struct index_piece *piece;
	uint64_t image;
	int result;

	address &= ~(PAGE - 1);
	if (missing_has_hidden(&s->missing)) {
		if (faults_look(s->fd, address) == -EAGAIN)
			return -EAGAIN;
		result = settle(s);
		if (result || missing_has_hidden(&s->missing))
			return result ? result : -EAGAIN;
	}
	piece = missing_find(&s->missing, address, &image);
	if (piece) {
		result = bring(l, s, piece, image, address, together(s, piece, image, AT_FAULT));
		if (result > 0)
			l->wanted = piece->chunk;
		return result < 0 ? result : 0;
	}
	result = faults_zero(s->fd, address);
	/* It is there already, or not registered any more. */
	if (result == -EEXIST || result == -ENOENT)
		faults_wake(s->fd, address);
	return result ? judge(s, result) : 0;
}

/* The oldest message that is an event, or is none: removes it.  False: there is none. */
static bool next_message(struct space *s, bool event, struct uffd_msg *out)
{
	for (size_t i = 0; i < s->nr_messages; i++) {
		if ((s->message[i].event != UFFD_EVENT_PAGEFAULT) != event)
			continue;
		*out = s->message[i];
		s->nr_messages--;
		memmove(s->message + i, s->message + i + 1, (s->nr_messages - i) * sizeof(*out));
		return true;
	}
	return false;
}

/*
 * All events first: the program has gone on since they were read, so the kernel takes pages
 * again.  By number, as a fork may move all.
 */
static int take_messages(struct lazy *l, size_t number)
{
	struct uffd_msg message;
	size_t count;
	int err = 0;

	while (!err && next_message(&l->space[number], true, &message))
		err = take_event(l, &l->space[number], &message);
	count = err ? 0 : l->space[number].nr_messages;
	for (size_t i = 0; i < count && !err && !l->space[number].over; i++) {
		struct space *s = &l->space[number];

		next_message(s, false, &message);
		err = take_fault(l, s, message.arg.pagefault.address);
		if (err == -EAGAIN)
			err = queue(s, &message, 1);
	}
	return err;
}

/* ---- in the background ------------------------------------------------------------------------- */

/* As bring(), of a piece that has missing pages in the address space; 0 if it has none. */
static int bring_some(struct lazy *l, struct space *s, const struct index_piece *piece)
{
	uint64_t k = 0, count, address, skip;

	while (k < piece->nr_pages) {
		uint64_t image = piece->address + k * PAGE, most = piece->nr_pages - k;

		count = missing_place(&s->missing, piece, image, most < AT_REST ? most : AT_REST,
				      &address, &skip);
		if (count)
			return bring(l, s, piece, image, address, count);
		k += skip;
	}
	return 0;
}

/* Likewise of a chunk, in the first address space that has any. */
static int bring_of_chunk(struct lazy *l, size_t chunk)
{
	const struct index_chunk *info = page_index_chunk(l->index, chunk);
	size_t count;
	const uint32_t *piece = page_index_of_chunk(l->index, chunk, &count);
	int result = 0;

	for (size_t i = 0; i < l->nr_spaces; i++) {
		struct space *s = &l->space[i];

		if (s->over || s->missing.pid != info->pid || !s->missing.left)
			continue;
		for (size_t k = 0; k < count && !result; k++)
			result = bring_some(l, s, page_index_piece(l->index, piece[k]));
		if (result && result != -EAGAIN)
			return result;
	}
	return result;
}

/* Brings a few pages: 1, 0: nothing can be brought now, or -errno, reported. */
static int bring_more(struct lazy *l)
{
	size_t chunks = page_index_chunks(l->index);
	int result = l->wanted < chunks ? bring_of_chunk(l, l->wanted) : 0;

	if (!result)
		l->wanted = SIZE_MAX;
	for (size_t passed = 0; !result && passed <= chunks; passed++) {
		if (l->next >= chunks)
			l->next = 0;
		if (chunks)
			result = bring_of_chunk(l, l->next);
		if (!result)
			l->next++;
	}
	return result == -EAGAIN ? 0 : result;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

/*
 * Marks it as over if nothing is missing in an address space, nor in any that was forked
 * from it unnoticed.
 */
static int finish_if_complete(struct space *s)
{
	int err;

	if (s->over || s->nr_messages || (s->missing.left && !missing_has_hidden(&s->missing)) ||
	    faults_look(s->fd, PAGE) == -EAGAIN)
		return 0;
	err = settle(s);
	s->over = !s->missing.left;
	return err;
}

/* Reads from all, for which it waits if there is nothing else to do. */
static int read_all(struct lazy *l, bool idle)
{
	struct pollfd *p = calloc(l->nr_spaces, sizeof(*p));
	int err = 0;

	if (!p)
		return report_errno(-ENOMEM, "restart");
	for (size_t i = 0; i < l->nr_spaces; i++)
		p[i] = (struct pollfd){ .fd = l->space[i].fd, .events = POLLIN };
	if (poll(p, l->nr_spaces, idle ? 1 : 0) > 0)
		for (size_t i = 0; i < l->nr_spaces && !err; i++)
			if (p[i].revents)
				err = read_space(l, &l->space[i]);
	free(p);
	return err;
}

static bool is_stopped(struct lazy *l)
{
	bool stop;

	pthread_mutex_lock(&l->lock);
	stop = l->stop;
	pthread_mutex_unlock(&l->lock);
	return stop;
}

static bool any_left(const struct lazy *l)
{
	for (size_t i = 0; i < l->nr_spaces; i++)
		if (l->space[i].missing.left)
			return true;
	return false;
}

/* One round.  0 or -errno, reported. */
static int serve_once(struct lazy *l, bool *idle)
{
	int err = read_all(l, *idle), brought;

	/* Those that are forked meanwhile have their turn in the next round. */
	for (size_t i = 0, count = l->nr_spaces; i < count && !err; i++)
		err = take_messages(l, i);
	brought = err ? err : bring_more(l);
	if (brought < 0)
		return brought;
	*idle = !brought;
	for (size_t i = 0; i < l->nr_spaces && !err; i++)
		err = finish_if_complete(&l->space[i]);
	if (err)
		return err;
	drop_spaces_that_are_over(l);
	if (l->full && *idle && !any_left(l))
		return report_fail(-EMFILE, "the programs fork more processes at a time than cr_restart "
				   "can have open files (ulimit -Hn)");
	return 0;
}

int lazy_run(struct lazy *l)
{
	bool idle = false;
	int err = 0;

	while (!err && l->nr_spaces && !is_stopped(l))
		err = serve_once(l, &idle);
	return err;
}

/* Waits until the programs run; false: they will not. */
static bool await_let_go(struct lazy *l)
{
	bool run;

	pthread_mutex_lock(&l->lock);
	while (!l->running && !l->stop)
		pthread_cond_wait(&l->changed, &l->lock);
	run = l->running;
	pthread_mutex_unlock(&l->lock);
	return run;
}

static void *work(void *arg)
{
	struct lazy *l = arg;

	l->error = lazy_run(l);
	if (!l->error && !await_let_go(l))
		return NULL;
	if (!l->error)
		l->error = device_resume(l->job, 0, NULL);
	/* Kills all that are still guarded, and returns when they are dead. */
	close(l->job);
	l->closed = true;
	return NULL;
}

int lazy_serve(struct lazy *l, int job)
{
	sigset_t all, old;
	int err;

	l->job = job;
	/* Signals are the other thread's business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&l->thread, NULL, work, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	l->serving = !err;
	return err ? report_errno(err, "a thread that loads memory") : 0;
}

static void tell(struct lazy *l, bool *what)
{
	pthread_mutex_lock(&l->lock);
	*what = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

void lazy_let_go(struct lazy *l)
{
	tell(l, &l->running);
}

bool lazy_stop(struct lazy *l)
{
	if (!l || !l->serving)
		return false;
	tell(l, &l->stop);
	pthread_join(l->thread, NULL);
	l->serving = false;
	return l->closed;
}

int lazy_wait(struct lazy *l)
{
	char *why;

	pthread_join(l->thread, NULL);
	l->serving = false;
	if (!l->error)
		return 0;
	why = strdup(report_message() ?: strerror(-l->error));
	report_clear();
	report_fail(l->error, "%s: the programs were killed, as not all of their memory had been loaded",
		    why ?: "out of memory");
	free(why);
	return l->error;
}

void lazy_free(struct lazy *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nr_spaces; i++)
		drop_space(&l->space[i]);
	for (size_t i = 0; i < LAZY_CHUNKS; i++)
		free(l->chunk[i].pages);
	free(l->space);
	page_index_free(l->index);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
