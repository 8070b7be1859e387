// SPDX-License-Identifier: GPL-2.0
/*
 * The parent of an increment: which file it is, whether it can be one, and the
 * comparison of pages with its tables.  What it says is believed as much as the new
 * image is, so it must belong to the same user.  A parent that is offered, or is to be
 * carried into another folder, is only a wish: without it the image is full.
 */
#include "checkpoint/increment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/internal.h"
#include "image/chain.h"
#include "image/place.h"
#include "proc/proc.h"
#include "report/report.h"

/* Where the parent is, and what becomes of it. */
enum parentage {
	NAMED,				/* by the user: it stays */
	OFFERED,			/* likewise, but only a wish */
	KEPT,				/* it has the destination's name, and gets another one */
	CARRIED,			/* likewise in another folder: gets a link beside the new image */
};

struct increment {
	struct page_sieve sieve;
	enum parentage parentage;
	const char *path;		/* of the parent, for messages */
	char *made;			/* … if it was put together */
	struct place place;
	int fd;				/* -1: there is no parent */
	struct stat st;
	char aside[NAME_MAX + 1];	/* the parent's next name; "": it keeps its own */
	size_t nr_links;		/* that were made beside the new image; uncommitted */
	struct context_reader *reader;
	struct context *context;	/* its description */
	struct chain *chain;		/* its ancestors */
	struct page_map *pages;		/* its tables; NULL: the image will be full */
	Kcr__Ancestor parent, *ancestor[CONTEXT_MAX_ANCESTORS];
	size_t nr_ancestors;
	uint64_t unchanged, unwritten;	/* atomic */
};

/* ---- finding the parent --------------------------------------------------------------- */

static int open_regular(struct increment *i)
{
	int node = openat(i->place.folder, i->place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (node < 0 && errno == ENOENT && i->parentage == KEPT)
		return 0;
	if (node < 0 || fstat(node, &i->st)) {
		int err = report_errno(-errno, "the parent %s", i->path);

		if (node >= 0)
			close(node);
		return err;
	}
	i->fd = S_ISREG(i->st.st_mode) ? proc_fd_reopen(node, O_RDONLY) : -EINVAL;
	close(node);
	if (i->fd >= 0)
		return 0;
	return i->fd == -EINVAL ? report_fail(-EINVAL, "%s is no regular file: an increment needs a "
					      "parent that can be read again", i->path) :
				  report_errno(i->fd, "the parent %s", i->path);
}

/* The path of the file that is to be carried, NULL: no memory. */
static const char *carried_path(struct increment *i, const struct checkpoint_options *o)
{
	const char *slash = strrchr(o->path, '/');

	if (asprintf(&i->made, "%s/%s", o->parent_folder, slash ? slash + 1 : o->path) < 0)
		i->made = NULL;
	return i->made;
}

static int find_parent(struct increment *i, const struct checkpoint_options *o)
{
	int err;

	i->path = i->parentage == CARRIED ? carried_path(i, o) : o->parent ?: o->path;
	if (!i->path)			/* a stream that begins a chain, or no memory */
		return i->parentage == CARRIED ? report_errno(-ENOMEM, "%s", o->path) : 0;
	err = place_find(&i->place, i->path, true);
	return err ? err : open_regular(i);
}

/* Is this one of the files that the increment will need? */
static bool is_member(const struct increment *i, const struct stat *st)
{
	bool same = st->st_dev == i->st.st_dev && st->st_ino == i->st.st_ino;

	for (size_t k = 0; i->chain && k < i->chain->count; k++)
		same |= st->st_dev == i->chain->member[k].st.st_dev &&
			st->st_ino == i->chain->member[k].st.st_ino;
	return same;
}

static int check_owner(const struct increment *i)
{
	if (i->st.st_uid == geteuid() && !(i->st.st_mode & 022))
		return 0;
	return report_fail(-EPERM, "%s can be no parent: others than user %u may have written it (it "
			   "belongs to user %u, its mode is %04o)", i->path, geteuid(), i->st.st_uid,
			   i->st.st_mode & 07777);
}

static int check_parent(const struct increment *i, const struct checkpoint_options *o)
{
	static const char *const advice[] = {
		[NAMED] = ": name another parent",
		[OFFERED] = "",
		[KEPT] = ": choose another name with -f, or remove it",
		[CARRIED] = "",
	};
	const Kcr__Preamble *p = i->context->preamble;
	struct stat st;

	if (p->target != o->target || p->scope != (uint32_t)o->scope)
		return report_fail(-EINVAL, "%s was made of another ID (%d) or another scope%s",
				   i->path, p->target, advice[i->parentage]);
	if (i->parentage != KEPT && o->path && !stat(o->path, &st) && is_member(i, &st))
		return report_fail(-EINVAL, "%s would replace a file that the increment needs: choose "
				   "another name with -f", o->path);
	return 0;
}

/* Can it have a child, or must the image be full? */
static int decide(const struct increment *i, const struct checkpoint_options *o, bool *full)
{
	size_t ancestors = i->context->preamble->n_ancestor;

	*full = !(context_reader_features(i->reader) & CONTEXT_HAS_TABLES) ||
		ancestors == CONTEXT_MAX_ANCESTORS ||
		(o->full_every && ancestors + 1 >= o->full_every);
	if (!*full || i->parentage != NAMED)
		return 0;
	if (ancestors == CONTEXT_MAX_ANCESTORS)
		return report_fail(-E2BIG, "%s has %zu ancestors, which is the most there may be: merge "
				   "them (cr_info --merge), or begin a new chain", i->path, ancestors);
	return report_fail(-EINVAL, "%s can be no parent: it was saved without --incremental and has no "
			   "tables of its pages", i->path);
}

/* The name that the parent will have when the new image has its own. */
static int choose_name(struct increment *i)
{
	for (size_t n = i->context->preamble->n_ancestor + 1; n < 1000000; n++) {
		struct stat st;

		if (snprintf(i->aside, sizeof(i->aside), "%s.%zu", i->place.name, n) >=
		    (int)sizeof(i->aside))
			return report_errno(-ENAMETOOLONG, "%s", i->path);
		/* A killed run may have given it the name already. */
		if (fstatat(i->place.folder, i->aside, &st, AT_SYMLINK_NOFOLLOW) ||
		    (st.st_dev == i->st.st_dev && st.st_ino == i->st.st_ino))
			return 0;
	}
	return report_fail(-EEXIST, "too many files named %s.N", i->path);
}

/*
 * The names that the parent and its older files will have beside the new image: NAME.1,
 * NAME.2 …, as in the folder where they are.
 */
static int choose_links(struct increment *i)
{
	const Kcr__Preamble *p = i->context->preamble;

	for (size_t k = 0; k <= p->n_ancestor; k++) {
		if (snprintf(i->aside, sizeof(i->aside), "%s.%zu", i->place.name, k + 1) >=
		    (int)sizeof(i->aside))
			return report_errno(-ENAMETOOLONG, "%s", i->path);
		if (k < p->n_ancestor && strcmp(p->ancestor[k]->name, i->aside))
			return report_fail(-EINVAL, "%s knows one of its older files by another name than %s",
					   i->path, i->aside);
	}
	return 0;
}

static int choose_names(struct increment *i)
{
	return i->parentage == KEPT ? choose_name(i) : i->parentage == CARRIED ? choose_links(i) : 0;
}

static int read_tables(struct increment *i)
{
	struct context_item item;
	int more;

	i->pages = page_map_new();
	if (!i->pages)
		return report_errno(-ENOMEM, "the tables of %s", i->path);
	context_reader_skim(i->reader, CONTEXT_SKIM_TABLES);
	while ((more = context_read(i->reader, &item)) > 0) {
		int err = item.type == CONTEXT_TABLE ? page_map_add(i->pages, &item) : 0;

		if (err)
			return err;
	}
	return more ? more : page_map_finish(i->pages, i->path);
}

/* The parent and its ancestors are those of the child. */
static void list_ancestors(struct increment *i)
{
	const Kcr__Preamble *p = i->context->preamble;

	kcr__ancestor__init(&i->parent);
	context_reader_identity(i->reader, &i->parent);
	i->parent.name = i->aside[0] ? i->aside : i->place.name;
	for (size_t k = 0; k < p->n_ancestor; k++)
		i->ancestor[i->nr_ancestors++] = p->ancestor[k];
	i->ancestor[i->nr_ancestors++] = &i->parent;
}

static int read_parent(struct increment *i, const struct checkpoint_options *o)
{
	bool full = false;
	int err = check_owner(i);

	if (!err)
		err = context_reader_new(&i->reader, i->fd, i->path);
	if (!err)
		err = context_load(i->reader, &i->context);
	if (!err)
		err = chain_open(&i->chain, i->context->preamble, i->path, i->fd, o->chain_path);
	if (!err)
		err = check_parent(i, o);
	if (!err)
		err = decide(i, o, &full);
	if (!err && !full)
		err = choose_names(i);
	if (err || full)
		return err;
	err = read_tables(i);
	if (!err)
		list_ancestors(i);
	return err;
}

/* ---- comparing pages ------------------------------------------------------------------- */

/* The file that has this page already; our own: none. */
static unsigned int owner_of(const struct increment *i, page_cursor *cursor, int32_t pid,
			     uint64_t address, const struct context_hash *hash)
{
	size_t page;

	if (!i->pages)
		return 0;
	page = page_map_find(i->pages, cursor, pid, address);
	if (page == SIZE_MAX)
		return i->nr_ancestors;
	return page_map_matches(i->pages, page, hash) ? page_map_owner(i->pages, page) :
							i->nr_ancestors;
}

/* What the parent's table says of pages, which the source has found there. */
static void copy_entries(const struct increment *i, page_cursor *cursor, int32_t pid,
			 uint64_t address, uint64_t nr_pages, struct page_table *t, uint64_t at)
{
	while (nr_pages) {
		size_t page;
		uint64_t n = page_map_span(i->pages, cursor, pid, address, nr_pages, &page);

		memcpy(t->hash + at, page_map_hashes(i->pages, page), n * sizeof(*t->hash));
		memcpy(t->owner + at, page_map_owners(i->pages, page), n * sizeof(*t->owner));
		address += n * CONTEXT_PAGE;
		at += n;
		nr_pages -= n;
	}
}

/* The table's entries of one run, from `at` on. */
static void fill_entries(const struct increment *i, page_cursor *cursor, const struct context_chunk *chunk,
			 const struct kcr_run *run, struct page_table *t, uint64_t at)
{
	const char *data = (const char *)chunk->data + at * CONTEXT_PAGE;

	if (chunk->unwritten) {
		copy_entries(i, cursor, chunk->pid, run->address, run->nr_pages, t, at);
		return;
	}
	for (uint64_t k = 0; k < run->nr_pages; k++, at++) {
		t->hash[at] = page_hash(data + k * CONTEXT_PAGE);
		t->owner[at] = owner_of(i, cursor, chunk->pid, run->address + k * CONTEXT_PAGE,
					&t->hash[at]);
	}
}

static int sift(struct page_sieve *sieve, const struct context_chunk *chunk, bool *keep,
		struct page_table *t)
{
	struct increment *i = (struct increment *)sieve;
	page_cursor cursor = 0;
	uint64_t page = 0, unchanged = 0;

	memcpy(t->run, chunk->runs, chunk->nr_runs * sizeof(*t->run));
	t->table.nr_runs = chunk->nr_runs;
	t->table.nr_pages = chunk->nr_pages;
	for (size_t r = 0; r < chunk->nr_runs; r++) {
		fill_entries(i, &cursor, chunk, &chunk->runs[r], t, page);
		page += chunk->runs[r].nr_pages;
	}
	for (page = 0; page < chunk->nr_pages; page++) {
		keep[page] = t->owner[page] == i->nr_ancestors;
		unchanged += !keep[page];
	}
	__atomic_fetch_add(&i->unchanged, unchanged, __ATOMIC_RELAXED);
	if (chunk->unwritten)
		__atomic_fetch_add(&i->unwritten, unchanged, __ATOMIC_RELAXED);
	return 0;
}

/* ---- the steps of a checkpoint ----------------------------------------------------------- */

static void drop_parent(struct increment *i)
{
	page_map_free(i->pages);
	chain_free(i->chain);
	context_reader_free(i->reader);
	context_free(i->context);
	if (i->fd >= 0)
		close(i->fd);
	i->pages = NULL;
	i->chain = NULL;
	i->reader = NULL;
	i->context = NULL;
	i->fd = -1;
	i->nr_ancestors = 0;
}

/* What failed is told; the image will be full. */
static int do_without(struct increment *i)
{
	report_warn("all memory is saved, not only what has changed: %s", report_message());
	report_clear();
	drop_parent(i);
	return 0;
}

/* Takes back those that were made. */
static void remove_links(struct increment *i, const struct destination *d)
{
	while (i->nr_links)
		destination_unlink(d, i->ancestor[--i->nr_links]->name);
}

static int make_links(struct increment *i, const struct destination *d)
{
	int err = 0;

	while (!err && i->nr_links < i->nr_ancestors) {
		const size_t k = i->nr_links;
		int fd = k < i->chain->count ? i->chain->member[k].fd : i->fd;

		err = destination_link(d, fd, i->ancestor[k]->name);
		i->nr_links += !err;
	}
	if (!err)
		return 0;
	remove_links(i, d);
	return do_without(i);
}

static enum parentage parentage(const struct checkpoint_options *o)
{
	if (o->parent)
		return o->parent_optional ? OFFERED : NAMED;
	return o->parent_folder ? CARRIED : KEPT;
}

static bool is_wish(const struct increment *i)
{
	return i->parentage == OFFERED || i->parentage == CARRIED;
}

int increment_open(struct checkpoint *c)
{
	static const struct page_sieve_ops ops = { .sift = sift };
	struct increment *i;
	int err;

	if (!c->options->incremental)
		return 0;
	i = calloc(1, sizeof(*i));
	if (!i)
		return report_errno(-ENOMEM, "--incremental");
	c->increment = i;
	i->sieve.ops = &ops;
	i->fd = i->place.folder = -1;
	i->parentage = parentage(c->options);
	err = find_parent(i, c->options);
	if (!err && i->fd >= 0)
		err = read_parent(i, c->options);
	return err && is_wish(i) ? do_without(i) : err;
}

int increment_set_aside(struct checkpoint *c)
{
	struct increment *i = c->increment;

	if (!i || !i->aside[0] || !i->pages)
		return 0;
	if (i->parentage == CARRIED)
		return make_links(i, c->destination);
	return destination_set_aside(c->destination, i->aside, &i->st);
}

void increment_committed(struct increment *i)
{
	if (!i)
		return;
	i->nr_links = 0;
	if (i->parentage != KEPT || i->pages || i->fd < 0)
		return;
	/* One that has another name may be the parent of others, too. */
	for (size_t k = 0; k < i->chain->count; k++) {
		const char *name = strrchr(i->chain->member[k].path, '/') + 1;

		if (place_is_numbered(name, i->place.name))
			place_remove(&i->place, name, &i->chain->member[k].st);
	}
	place_remove(&i->place, i->aside, &i->st);
}

void increment_free(struct increment *i, const struct destination *d)
{
	if (!i)
		return;
	remove_links(i, d);
	drop_parent(i);
	place_close(&i->place);
	free(i->made);
	free(i);
}

uint64_t increment_features(const struct increment *i)
{
	if (!i)
		return 0;
	return CONTEXT_HAS_TABLES | (i->pages ? CONTEXT_HAS_ANCESTORS : 0);
}

void increment_describe(const struct increment *i, Kcr__Preamble *preamble)
{
	if (!i)
		return;
	preamble->n_ancestor = i->nr_ancestors;
	preamble->ancestor = (Kcr__Ancestor **)i->ancestor;
}

void increment_list_older(const struct increment *i, struct checkpoint_result *result)
{
	result->nr_older = i ? i->nr_ancestors : 0;
	for (size_t k = 0; k < result->nr_older; k++) {
		const struct stat *st = k < i->chain->count ? &i->chain->member[k].st : &i->st;

		result->older[k] = (struct checkpoint_file){ st->st_size, i->ancestor[k]->id };
	}
}

struct page_sieve *increment_sieve(struct increment *i)
{
	return i ? &i->sieve : NULL;
}

uint64_t increment_unchanged(const struct increment *i)
{
	return i ? __atomic_load_n(&i->unchanged, __ATOMIC_RELAXED) : 0;
}

uint64_t increment_unwritten(const struct increment *i)
{
	return i ? __atomic_load_n(&i->unwritten, __ATOMIC_RELAXED) : 0;
}

const struct context *increment_parent(const struct increment *i, uint64_t *id)
{
	if (!i || !i->pages)
		return NULL;
	*id = i->parent.id;
	return i->context;
}

uint64_t increment_span(const struct increment *i, page_cursor *cursor, int32_t pid, uint64_t address,
			uint64_t nr_pages, bool *has)
{
	size_t page;
	uint64_t n = page_map_span(i->pages, cursor, pid, address, nr_pages, &page);

	*has = page != SIZE_MAX;
	return n;
}

void increment_again(struct increment *i)
{
	if (!i)
		return;
	__atomic_store_n(&i->unchanged, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&i->unwritten, 0, __ATOMIC_RELAXED);
}
