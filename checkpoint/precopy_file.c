// SPDX-License-Identifier: GPL-2.0
/*
 * Pre-copy to a chain under one name.  Whatever had the name stays in place until the last
 * image is renamed to it; the older files of a chain that had it are removed after that.
 */
#include "checkpoint/precopy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image/chain.h"
#include "image/context.h"
#include "image/place.h"
#include "proc/proc.h"
#include "report/report.h"

#define MAX_NAMES	1000000u

struct file_store {
	struct precopy_store store;
	const char *path;		/* as the user says */
	char base[PATH_MAX];		/* the same, at the end of a symbolic link */
	unsigned int next;		/* the number of the next name to try */
	struct stat present;		/* what has the name before the last image; zero: nothing */
	struct timespec begun;
	sigset_t mask;			/* see hold_signals() */
};

/* The images of the rounds, which are of no use without the last one.  For precopy_abandon(). */
static char *made[PRECOPY_MAX_ROUNDS];
static struct made_file {
	struct place place;
	struct stat st;
	bool found;
} made_file[PRECOPY_MAX_ROUNDS];	/* the same: a path may lead elsewhere later */
static volatile size_t nr_made;

void precopy_abandon(void)
{
	struct stat st;

	checkpoint_abandon();
	for (size_t i = 0; i < nr_made; i++) {
		const struct made_file *f = &made_file[i];

		if (f->found && !fstatat(f->place.folder, f->place.name, &st, AT_SYMLINK_NOFOLLOW) &&
		    st.st_dev == f->st.st_dev && st.st_ino == f->st.st_ino)
			unlinkat(f->place.folder, f->place.name, 0);
	}
}

static void forget_made(void)
{
	nr_made = 0;
	for (size_t i = 0; i < PRECOPY_MAX_ROUNDS; i++) {
		free(made[i]);
		made[i] = NULL;
		if (made_file[i].found)
			place_close(&made_file[i].place);
		made_file[i].found = false;
	}
}

/* The file that was made just now: one that is older is another's. */
static void find_made(size_t number, const struct timespec *begun)
{
	struct made_file *f = &made_file[number];

	if (place_find(&f->place, made[number], false)) {
		report_clear();
		return;
	}
	f->found = !fstatat(f->place.folder, f->place.name, &f->st, AT_SYMLINK_NOFOLLOW) &&
		   S_ISREG(f->st.st_mode) && f->st.st_uid == geteuid() &&
		   f->st.st_ctim.tv_sec >= begun->tv_sec;
	if (!f->found)
		place_close(&f->place);
}

/* ---- names ----------------------------------------------------------------------------- */

/*
 * Where the chain will be: beside the file, if the path leads to it by a link.  A link that
 * leads nowhere is replaced, as by any checkpoint.
 */
static int find_base(struct file_store *s)
{
	struct place p;
	struct stat st;
	ssize_t length;
	int err = place_find(&p, s->path, true);

	if (err)
		return err;
	if (!p.followed || fstatat(p.folder, p.name, &st, AT_SYMLINK_NOFOLLOW)) {
		length = snprintf(s->base, sizeof(s->base), "%s", s->path);
	} else {
		char folder[PATH_MAX];

		length = proc_fd_link(p.folder, folder, sizeof(folder));
		if (length >= 0)
			length = snprintf(s->base, sizeof(s->base), "%s/%s", folder, p.name);
	}
	place_close(&p);
	if (length >= 0 && length < (ssize_t)sizeof(s->base))
		return 0;
	return report_errno(length < 0 ? (int)length : -ENAMETOOLONG, "%s", s->path);
}

/* What the last image would find out in the end. */
static int check_destination(struct file_store *s, const struct checkpoint_options *o)
{
	if (lstat(s->base, &s->present))
		return 0;
	if (!S_ISREG(s->present.st_mode) && !S_ISLNK(s->present.st_mode))
		return report_fail(-EINVAL, "%s is no regular file: --precopy makes a chain of files",
				   s->path);
	if (o->replace == CHECKPOINT_NOCLOBBER)
		return report_fail(-EEXIST, "%s exists already (--noclobber)", s->path);
	return 0;
}

/* A free name for the next image, malloc()ed.  0 or -errno with a message. */
static int choose_name(struct file_store *s, char **out)
{
	struct stat st;
	char *name;

	while (s->next < MAX_NAMES) {
		if (asprintf(&name, "%s.%u", s->base, s->next++) < 0)
			return report_errno(-ENOMEM, "%s", s->path);
		if (lstat(name, &st) && errno == ENOENT) {
			*out = name;
			return 0;
		}
		free(name);
	}
	return report_fail(-EEXIST, "too many files named %s.N", s->path);
}

/* ---- the images ------------------------------------------------------------------------- */

static struct file_store *file_store(struct precopy_store *s)
{
	return (struct file_store *)s;
}

/*
 * Between the name of an image and its place in the list no signal may end us, nor between
 * the name of the last one and the moment when the others are no longer to be removed.
 */
static int hold_signals(void *arg)
{
	struct file_store *s = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &s->mask);
	return 0;
}

static int place(struct precopy_store *store, unsigned int number, bool last,
		 struct checkpoint_options *o)
{
	struct file_store *s = file_store(store);
	int err;

	if (number)
		o->parent = made[number - 1];
	o->ready = hold_signals;
	o->ready_arg = s;
	if (last) {
		lstat(s->base, &s->present);
		return 0;
	}
	err = choose_name(s, &made[number]);
	if (err)
		return err;
	o->path = made[number];
	o->replace = CHECKPOINT_NOCLOBBER;
	return 0;
}

static int placed(struct precopy_store *store, unsigned int number)
{
	find_made(number, &file_store(store)->begun);
	nr_made = number + 1;
	pthread_sigmask(SIG_SETMASK, &file_store(store)->mask, NULL);
	return 0;
}

/* Has the last image its name?  Then it needs the others, even if a later step has failed. */
static bool is_committed(const struct file_store *s)
{
	struct stat st;

	return !lstat(s->base, &st) &&
	       (st.st_dev != s->present.st_dev || st.st_ino != s->present.st_ino);
}

/* ---- the chain that is replaced ----------------------------------------------------------- */

struct replaced {
	struct place place;
	struct context_reader *reader;
	struct context *context;
	struct chain *chain;		/* NULL: it is none, or not complete */
};

static int read_replaced(struct replaced *r, const char *path)
{
	struct stat st;
	int fd, err = place_find(&r->place, path, true);

	if (err)
		return err;
	fd = openat(r->place.folder, r->place.name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		err = -EINVAL;
	if (!err)
		err = context_reader_new(&r->reader, fd, path);
	if (!err)
		err = context_load(r->reader, &r->context);
	if (!err)
		err = chain_open(&r->chain, r->context->preamble, path, fd, NULL);
	close(fd);
	return err;
}

/* A user's own parents, with other names, may have other children. */
static void remove_replaced(const struct replaced *r)
{
	for (size_t i = 0; r->chain && i < r->chain->count; i++) {
		const char *name = strrchr(r->chain->member[i].path, '/') + 1;

		if (place_is_numbered(name, r->place.name))
			place_remove(&r->place, name, &r->chain->member[i].st);
	}
}

static void free_replaced(struct replaced *r)
{
	chain_free(r->chain);
	context_free(r->context);
	context_reader_free(r->reader);
	place_close(&r->place);
}

/* ---- all together ------------------------------------------------------------------------ */

static int run(struct file_store *s, const struct checkpoint_options *options,
	       struct checkpoint_result *result)
{
	struct replaced replaced = { .place.folder = -1 };
	int err = find_base(s);

	if (!err)
		err = check_destination(s, options);
	if (err)
		return err;
	/* What is no chain, or cannot be read, is replaced all the same. */
	if (options->replace == CHECKPOINT_ATOMIC && read_replaced(&replaced, s->path))
		report_clear();
	err = precopy_run(options, &s->store, result);
	if (!err)
		remove_replaced(&replaced);
	else if (!is_committed(s))
		precopy_abandon();
	free_replaced(&replaced);
	return err;
}

int precopy_to_file(const struct checkpoint_options *options, struct checkpoint_result *result)
{
	struct file_store s = {
		.store = { .place = place, .placed = placed }, .path = options->path, .next = 1,
	};
	int err;

	sigprocmask(SIG_SETMASK, NULL, &s.mask);
	clock_gettime(CLOCK_REALTIME_COARSE, &s.begun);
	err = run(&s, options, result);
	sigprocmask(SIG_SETMASK, &s.mask, NULL);
	forget_made();
	return err;
}
