// SPDX-License-Identifier: GPL-2.0
/*
 * See duplicates.h.  An open hash table of all pages; workers compute hashes at a time and look
 * them up one chunk after the other, so which of two pages is the original is a matter of chance.
 */
#include "checkpoint/duplicates.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "image/page_map.h"
#include "report/report.h"

#define FIRST_ROOM	4096u		/* entries; a power of two */

struct entry {
	struct context_hash hash;
	uint64_t address;
	int32_t pid;			/* 0: the entry is free */
};

struct duplicate {
	uint64_t address, original;
	int32_t pid, original_pid;
};

struct duplicates {
	struct page_sieve sieve;
	pthread_mutex_t lock;		/* protects what follows */
	struct entry *entry;
	size_t nr_entries, room;
	struct duplicate *found;
	size_t nr_found, room_found;
};

static struct duplicates *of_sieve(struct page_sieve *sieve)
{
	return (struct duplicates *)((char *)sieve - offsetof(struct duplicates, sieve));
}

/* ---- finding them ------------------------------------------------------------------------ */

/* The entry of this hash, or the free one that it would take. */
static struct entry *look_up(struct entry *entries, size_t room, const struct context_hash *hash)
{
	size_t at = hash->low & (room - 1);

	while (entries[at].pid &&
	       (entries[at].hash.low != hash->low || entries[at].hash.high != hash->high))
		at = (at + 1) & (room - 1);
	return &entries[at];
}

/* Room for `more` entries, with a quarter of all left free. */
static int make_room(struct duplicates *d, size_t more)
{
	size_t room = d->room ?: FIRST_ROOM;
	struct entry *larger;

	while (d->nr_entries + more > room / 4 * 3)
		room *= 2;
	if (room == d->room)
		return 0;
	larger = calloc(room, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	for (size_t i = 0; i < d->room; i++)
		if (d->entry[i].pid)
			*look_up(larger, room, &d->entry[i].hash) = d->entry[i];
	free(d->entry);
	d->entry = larger;
	d->room = room;
	return 0;
}

static int make_room_found(struct duplicates *d, size_t more)
{
	size_t room = d->room_found;
	struct duplicate *larger;

	if (d->nr_found + more <= room)
		return 0;
	room = 2 * room > d->nr_found + more ? 2 * room : d->nr_found + more;
	larger = reallocarray(d->found, room, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	d->found = larger;
	d->room_found = room;
	return 0;
}

/* Is the page a new one? */
static bool note(struct duplicates *d, int32_t pid, uint64_t address, const struct context_hash *hash)
{
	struct entry *e = look_up(d->entry, d->room, hash);

	if (e->pid) {
		d->found[d->nr_found++] = (struct duplicate) {
			.address = address, .pid = pid, .original = e->address, .original_pid = e->pid,
		};
		return false;
	}
	*e = (struct entry){ .hash = *hash, .address = address, .pid = pid };
	d->nr_entries++;
	return true;
}

static int note_all(struct duplicates *d, const struct context_chunk *chunk,
		    const struct context_hash *hash, bool *keep)
{
	int err = make_room(d, chunk->nr_pages);

	if (!err)
		err = make_room_found(d, chunk->nr_pages);
	for (size_t i = 0; !err && i < chunk->nr_runs; i++)
		for (uint64_t k = 0; k < chunk->runs[i].nr_pages; k++)
			*keep++ = note(d, chunk->pid, chunk->runs[i].address + k * CONTEXT_PAGE, hash++);
	return err;
}

/* The table is not filled in, but has room for hashes. */
static int sift(struct page_sieve *sieve, const struct context_chunk *chunk, bool *keep,
		struct page_table *table)
{
	struct duplicates *d = of_sieve(sieve);
	const char *data = chunk->data;
	int err;

	for (uint64_t i = 0; i < chunk->nr_pages; i++)
		table->hash[i] = page_hash(data + i * CONTEXT_PAGE);
	pthread_mutex_lock(&d->lock);
	err = note_all(d, chunk, table->hash, keep);
	pthread_mutex_unlock(&d->lock);
	return err;
}

struct duplicates *duplicates_new(void)
{
	static const struct page_sieve_ops ops = { .sift = sift };
	struct duplicates *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->sieve.ops = &ops;
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

void duplicates_free(struct duplicates *d)
{
	if (!d)
		return;
	pthread_mutex_destroy(&d->lock);
	free(d->entry);
	free(d->found);
	free(d);
}

struct page_sieve *duplicates_sieve(struct duplicates *d)
{
	return d ? &d->sieve : NULL;
}

uint64_t duplicates_count(const struct duplicates *d)
{
	return d ? d->nr_found : 0;
}

/* ---- writing them ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct duplicate *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* What one section has. */
struct part {
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	struct context_original original[CONTEXT_CHUNK_PAGES];
};

/* Those of one process that fit into a section; how many. */
static size_t fill(struct part *part, const struct duplicate *found, size_t count, size_t *nr_runs)
{
	uint64_t end = 0;
	size_t n;

	*nr_runs = 0;
	for (n = 0; n < count && n < CONTEXT_CHUNK_PAGES && found[n].pid == found->pid; n++) {
		if (!*nr_runs || found[n].address != end)
			part->run[(*nr_runs)++] = (struct kcr_run){ .address = found[n].address };
		part->run[*nr_runs - 1].nr_pages++;
		end = found[n].address + CONTEXT_PAGE;
		part->original[n] = (struct context_original) {
			.address = found[n].original, .pid = found[n].original_pid,
		};
	}
	return n;
}

int duplicates_write(struct duplicates *d, struct context_writer *w)
{
	struct part *part;
	size_t done = 0, nr_runs;
	int err = 0;

	if (!d || !d->nr_found)
		return 0;
	part = malloc(sizeof(*part));
	if (!part)
		return report_errno(-ENOMEM, "pages that are equal to others");
	qsort(d->found, d->nr_found, sizeof(*d->found), compare);
	while (!err && done < d->nr_found) {
		int32_t pid = d->found[done].pid;

		done += fill(part, d->found + done, d->nr_found - done, &nr_runs);
		err = context_write_duplicates(w, pid, part->run, nr_runs, part->original);
	}
	free(part);
	return err;
}
