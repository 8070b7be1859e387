// SPDX-License-Identifier: GPL-2.0
/*
 * The index of an image's pages.  Files are skimmed once, in the order in which
 * chain_pages.c reads them; of an older file of a chain only those pages count that the
 * tables of the last one place there.  Later each chunk is read whole, at any time, and
 * verified anew: the file may have changed meanwhile.
 */
#include "image/page_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/page_map.h"
#include "reader.h"
#include "report/report.h"

/* Where a chunk is stored. */
struct place_of_chunk {
	uint64_t section;		/* position of its head */
	uint64_t data;
	uint32_t stored;		/* bytes */
	uint16_t member;		/* the number of its file; the chain's count: the last one */
	uint16_t compression;
};

struct page_index {
	const struct chain *chain;	/* or NULL */
	int last_fd;
	uint64_t last_id;
	char *last_name;
	uint64_t member_id[CONTEXT_MAX_ANCESTORS];
	struct index_chunk *chunk;
	struct place_of_chunk *place;	/* of each chunk */
	size_t nr_chunks, room_chunks;
	struct index_piece *piece;
	size_t nr_pieces, room_pieces;
	uint32_t *by_chunk;		/* numbers of pieces, by chunk and offset */
	size_t *first_of;		/* of each chunk, and one more: where in by_chunk */
	uint64_t nr_pages;
	struct codec *codec;
	void *packed;			/* a chunk as stored, if it is compressed */
};

static unsigned int nr_members(const struct page_index *x)
{
	return x->chain ? x->chain->count : 0;
}

static int no_memory(void)
{
	return report_errno(-ENOMEM, "the index of the image's pages");
}

/* ---- reading it ----------------------------------------------------------------------- */

static int grow(void **array, size_t size, size_t count, size_t *room)
{
	size_t more = *room ? 2 * *room : 1024;
	void *larger;

	if (count < *room)
		return 0;
	larger = reallocarray(*array, more, size);
	if (!larger)
		return no_memory();
	*array = larger;
	*room = more;
	return 0;
}

/* Adds pages of the newest chunk, to the last piece if that goes on with them. */
static int add_pages(struct page_index *x, int32_t pid, uint64_t address, uint32_t offset,
		     uint32_t count)
{
	struct index_piece *last = x->nr_pieces ? &x->piece[x->nr_pieces - 1] : NULL;
	uint32_t chunk = x->nr_chunks - 1;
	int err;

	x->chunk[chunk].needed += count;
	if (last && last->chunk == chunk && last->offset + last->nr_pages == offset &&
	    last->address + (uint64_t)last->nr_pages * CONTEXT_PAGE == address) {
		last->nr_pages += count;
		return 0;
	}
	err = grow((void **)&x->piece, sizeof(*x->piece), x->nr_pieces, &x->room_pieces);
	if (!err)
		x->piece[x->nr_pieces++] = (struct index_piece){
			.address = address, .pid = pid, .nr_pages = count, .chunk = chunk,
			.offset = offset,
		};
	return err;
}

static int add_place(struct page_index *x, const struct context_reader *r, unsigned int member)
{
	const struct context_item *item = &r->item;
	size_t room = x->room_chunks;
	int err = grow((void **)&x->chunk, sizeof(*x->chunk), x->nr_chunks, &x->room_chunks);

	if (!err)
		err = grow((void **)&x->place, sizeof(*x->place), x->nr_chunks, &room);
	if (err)
		return err;
	if (x->nr_chunks >= UINT32_MAX - 1)
		return report_fail(-E2BIG, "the image has too many sections");
	x->place[x->nr_chunks] = (struct place_of_chunk){
		.section = item->position, .data = r->position, .stored = item->length,
		.member = member, .compression = item->compression,
	};
	x->chunk[x->nr_chunks++] = (struct index_chunk){
		.pid = item->pid, .nr_pages = item->nr_pages, .first = x->nr_pages,
	};
	x->nr_pages += item->nr_pages;
	return 0;
}

/* Those pages of a run that the map places in this file. */
static int add_some(struct page_index *x, int32_t pid, const struct kcr_run *run, uint32_t offset,
		    const struct page_map *map, unsigned int member)
{
	page_cursor cursor = 0;
	int err = 0;

	for (uint64_t k = 0; !err && k < run->nr_pages; k++) {
		uint64_t address = run->address + k * CONTEXT_PAGE;
		size_t page = page_map_find(map, &cursor, pid, address);

		if (page != SIZE_MAX && page_map_owner(map, page) == member)
			err = add_pages(x, pid, address, offset + k, 1);
	}
	return err;
}

/* The section that was just read.  `map`: only the pages that it places in this file. */
static int add_chunk(struct page_index *x, const struct context_reader *r,
		     const struct page_map *map, unsigned int member)
{
	const struct context_item *item = &r->item;
	uint32_t offset = 0;
	int err = add_place(x, r, member);

	for (size_t i = 0; !err && i < item->nr_runs; i++) {
		const struct kcr_run *run = &item->runs[i];

		err = map ? add_some(x, item->pid, run, offset, map, member) :
			    add_pages(x, item->pid, run->address, offset, run->nr_pages);
		offset += run->nr_pages;
	}
	return err;
}

/* *given: the pages of this file. */
static int skim(struct page_index *x, struct context_reader *r, unsigned int member,
		const struct page_map *filter, struct page_map *tables, uint64_t *given)
{
	struct context_item item;
	int more;

	*given = 0;
	context_reader_skim(r);
	while ((more = context_read(r, &item)) > 0) {
		int err = 0;

		if (item.type == CONTEXT_TABLE && tables)
			err = page_map_add(tables, &item);
		else if (item.type == CONTEXT_MEMORY)
			err = add_chunk(x, r, filter, member);
		else if (item.type != CONTEXT_TABLE)
			err = reader_damaged(r, "its sections are out of order");
		if (err)
			return err;
		if (item.type == CONTEXT_MEMORY)
			*given += x->chunk[x->nr_chunks - 1].needed;
	}
	return more;
}

static int check_given(const char *name, uint64_t given, uint64_t owned)
{
	if (given == owned)
		return 0;
	return report_fail(-EINVAL, "%s: damaged context file: it has %llu of %llu pages that are needed",
			   name, (unsigned long long)given, (unsigned long long)owned);
}

static int skim_member(struct page_index *x, unsigned int member, const struct page_map *map)
{
	const struct chain_member *m = &x->chain->member[member];
	struct context_reader *r;
	uint64_t given;
	int err;

	if (!page_map_owned(map, member))
		return 0;
	if (lseek(m->fd, 0, SEEK_SET) < 0)
		return report_errno(-errno, "%s", m->path);
	err = context_reader_new(&r, m->fd, m->path);
	if (err)
		return err;
	x->member_id[member] = r->id;
	err = skim(x, r, member, map, NULL, &given);
	if (!err)
		err = check_given(m->path, given, page_map_owned(map, member));
	context_reader_free(r);
	return err;
}

static int skim_all(struct page_index *x, struct context_reader *last, struct page_map *map)
{
	uint64_t given;
	int err = skim(x, last, nr_members(x), NULL, map, &given);

	if (err || !x->chain)
		return err;
	err = page_map_finish(map, x->chain->name);
	if (!err)
		err = check_given(x->chain->name, given, page_map_owned(map, nr_members(x)));
	for (unsigned int i = 0; !err && i < nr_members(x); i++)
		err = skim_member(x, i, map);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct index_piece *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static uint64_t end_of(const struct index_piece *piece)
{
	return piece->address + (uint64_t)piece->nr_pages * CONTEXT_PAGE;
}

static int sort(struct page_index *x)
{
	if (x->nr_pieces)
		qsort(x->piece, x->nr_pieces, sizeof(*x->piece), compare);
	for (size_t i = 1; i < x->nr_pieces; i++)
		if (x->piece[i].pid == x->piece[i - 1].pid &&
		    x->piece[i].address < end_of(&x->piece[i - 1]))
			return report_fail(-EINVAL, "%s: damaged context file: it has a page twice",
					   x->last_name);
	return 0;
}

static int compare_offset(const void *a, const void *b, void *arg)
{
	const struct page_index *x = arg;
	const struct index_piece *p = &x->piece[*(const uint32_t *)a];
	const struct index_piece *q = &x->piece[*(const uint32_t *)b];

	if (p->chunk != q->chunk)
		return p->chunk < q->chunk ? -1 : 1;
	return (p->offset > q->offset) - (p->offset < q->offset);
}

static int sort_by_chunk(struct page_index *x)
{
	size_t at = 0;

	x->by_chunk = calloc(x->nr_pieces + 1, sizeof(*x->by_chunk));
	x->first_of = calloc(x->nr_chunks + 1, sizeof(*x->first_of));
	if (!x->by_chunk || !x->first_of)
		return no_memory();
	for (size_t i = 0; i < x->nr_pieces; i++)
		x->by_chunk[i] = i;
	qsort_r(x->by_chunk, x->nr_pieces, sizeof(*x->by_chunk), compare_offset, x);
	for (size_t c = 0; c <= x->nr_chunks; c++) {
		while (at < x->nr_pieces && x->piece[x->by_chunk[at]].chunk < c)
			at++;
		x->first_of[c] = at;
	}
	return 0;
}

static int read_all(struct page_index *x, struct context_reader *last)
{
	struct page_map *map = x->chain ? page_map_new() : NULL;
	int err;

	x->codec = codec_new();
	x->packed = malloc(CONTEXT_CHUNK_BYTES);
	x->last_name = strdup(last->name);
	if (!x->codec || !x->packed || !x->last_name || (x->chain && !map))
		err = no_memory();
	else
		err = skim_all(x, last, map);
	page_map_free(map);
	if (!err)
		err = sort(x);
	return err ? err : sort_by_chunk(x);
}

int page_index_read(struct page_index **out, struct context_reader *last,
		    const struct chain *chain)
{
	struct page_index *x = calloc(1, sizeof(*x));
	int err;

	if (!x)
		return no_memory();
	x->chain = chain;
	x->last_fd = last->fd;
	x->last_id = last->id;
	err = read_all(x, last);
	if (err)
		page_index_free(x);
	else
		*out = x;
	return err;
}

void page_index_free(struct page_index *x)
{
	if (!x)
		return;
	codec_free(x->codec);
	free(x->packed);
	free(x->last_name);
	free(x->chunk);
	free(x->place);
	free(x->piece);
	free(x->by_chunk);
	free(x->first_of);
	free(x);
}

/* ---- looking things up ------------------------------------------------------------------ */

size_t page_index_chunks(const struct page_index *x)
{
	return x->nr_chunks;
}

const struct index_chunk *page_index_chunk(const struct page_index *x, size_t chunk)
{
	return &x->chunk[chunk];
}

uint64_t page_index_pages(const struct page_index *x)
{
	return x->nr_pages;
}

size_t page_index_pieces(const struct page_index *x)
{
	return x->nr_pieces;
}

const struct index_piece *page_index_piece(const struct page_index *x, size_t piece)
{
	return &x->piece[piece];
}

const uint32_t *page_index_of_chunk(const struct page_index *x, size_t chunk, size_t *count)
{
	*count = x->first_of[chunk + 1] - x->first_of[chunk];
	return x->by_chunk + x->first_of[chunk];
}

size_t page_index_find(const struct page_index *x, int32_t pid, uint64_t address)
{
	size_t low = 0, high = x->nr_pieces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct index_piece *piece = &x->piece[middle];

		if (piece->pid != pid ? piece->pid < pid : end_of(piece) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < x->nr_pieces && x->piece[low].pid == pid ? low : x->nr_pieces;
}

uint64_t page_index_number(const struct page_index *x, const struct index_piece *piece,
			   uint64_t address)
{
	return x->chunk[piece->chunk].first + piece->offset +
	       (address - piece->address) / CONTEXT_PAGE;
}

/* ---- the pages ---------------------------------------------------------------------------- */

static const char *name_of(const struct page_index *x, const struct place_of_chunk *p)
{
	return p->member < nr_members(x) ? x->chain->member[p->member].path : x->last_name;
}

static int read_at(const struct page_index *x, const struct place_of_chunk *p, uint64_t position,
		   void *buffer, size_t length)
{
	int fd = p->member < nr_members(x) ? x->chain->member[p->member].fd : x->last_fd;
	char *to = buffer;

	while (length) {
		ssize_t n = pread(fd, to, length, position);

		if (!n)
			return report_fail(-EINVAL, "%s: truncated context file: it ends before byte %llu",
					   name_of(x, p), (unsigned long long)(position + length));
		if (n < 0 && errno != EINTR)
			return report_errno(-errno, "%s: cannot read", name_of(x, p));
		if (n > 0) {
			to += n;
			position += n;
			length -= n;
		}
	}
	return 0;
}

static int damaged(const struct page_index *x, const struct place_of_chunk *p, const char *what)
{
	return report_fail(-EINVAL, "%s: damaged context file: %s (memory at byte %llu)",
			   name_of(x, p), what, (unsigned long long)p->section);
}

/* The checksum behind the data is protected by one of its own. */
static int verify(const struct page_index *x, const struct place_of_chunk *p, const void *data)
{
	uint64_t id = p->member < nr_members(x) ? x->member_id[p->member] : x->last_id;
	struct section_tail tail;
	int err = read_at(x, p, p->data + p->stored, &tail, sizeof(tail));

	if (err)
		return err;
	if (tail.sum != section_tail_sum(&tail, id, p->section) ||
	    tail.data_sum != XXH64(data, p->stored, 0))
		return damaged(x, p, "wrong checksum of the data");
	return 0;
}

int page_index_load(struct page_index *x, size_t chunk, void *buffer)
{
	const struct place_of_chunk *p = &x->place[chunk];
	void *data = p->compression == CONTEXT_RAW ? buffer : x->packed;
	int err = read_at(x, p, p->data, data, p->stored);

	if (!err)
		err = verify(x, p, data);
	if (err || p->compression == CONTEXT_RAW)
		return err;
	err = codec_decompress(x->codec, p->compression, data, p->stored, buffer,
			       (size_t)x->chunk[chunk].nr_pages * CONTEXT_PAGE);
	if (err == -ENOMEM)
		return no_memory();
	return err ? damaged(x, p, "malformed compression") : 0;
}
