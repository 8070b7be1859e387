// SPDX-License-Identifier: GPL-2.0
/*
 * Segments and the bits of their pages; see missing.h.
 *
 * An event is reported when the call that causes it has done its work but has not
 * returned.  So for one thread, and for threads that wait for each other, events come in
 * order.  But the kernel may give an address that one thread is just unmapping, or moving
 * something away from, to another thread's mremap(2), and report that first.  Then the
 * segment that is still listed there becomes stale: the late event is for it, not for what
 * has moved in.  The unmapping that is a part of moving is known by its range.
 *
 * Ranges grow without an event, so a late event may be for a part that is not listed; then
 * it cannot be told from one for what is listed.  Such a case is noticed, at the latest when
 * nothing is outstanding any more and a range is registered that should be unmapped.
 */
#include "restart/missing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE	((uint64_t)CONTEXT_PAGE)

static size_t bytes_of(const struct page_index *index)
{
	return page_index_pages(index) / 8 + 1;
}

int missing_init(struct missing *m, const struct page_index *index, int32_t pid)
{
	*m = (struct missing){ .index = index, .pid = pid, .done = calloc(1, bytes_of(index)) };
	return m->done ? 0 : -ENOMEM;
}

void missing_free(struct missing *m)
{
	free(m->segment);
	free(m->departure);
	free(m->done);
	*m = (struct missing){ 0 };
}

int missing_fork(struct missing *child, const struct missing *parent)
{
	*child = *parent;
	child->room = parent->nr_segments + 1;
	child->segment = malloc(child->room * sizeof(*child->segment));
	child->departure = NULL;	/* what it does itself is reported for itself */
	child->nr_departures = child->departure_room = 0;
	child->done = malloc(bytes_of(parent->index));
	if (!child->segment || !child->done) {
		missing_free(child);
		return -ENOMEM;
	}
	memcpy(child->segment, parent->segment, parent->nr_segments * sizeof(*child->segment));
	memcpy(child->done, parent->done, bytes_of(parent->index));
	return 0;
}

/* ---- bits -------------------------------------------------------------------------------- */

static bool is_done(const struct missing *m, uint64_t page)
{
	return m->done[page / 8] & (1 << page % 8);
}

uint64_t missing_pages_in(const struct page_index *index, int32_t pid, uint64_t start, uint64_t end)
{
	uint64_t count = 0;

	for (size_t i = page_index_find(index, pid, start); i < page_index_pieces(index); i++) {
		const struct index_piece *p = page_index_piece(index, i);
		uint64_t stop = p->address + p->nr_pages * PAGE;

		if (p->pid != pid || p->address >= end)
			break;
		count += ((stop < end ? stop : end) - (p->address > start ? p->address : start)) / PAGE;
	}
	return count;
}

/* Calls for the pages of every piece in a range of the image. */
static uint64_t for_pages(struct missing *m, uint64_t start, uint64_t end,
			  uint64_t (*each)(struct missing *m, uint64_t page))
{
	uint64_t sum = 0;

	for (size_t i = page_index_find(m->index, m->pid, start); i < page_index_pieces(m->index); i++) {
		const struct index_piece *piece = page_index_piece(m->index, i);
		uint64_t stop = piece->address + piece->nr_pages * PAGE;
		uint64_t at = piece->address > start ? piece->address : start;

		if (piece->pid != m->pid || piece->address >= end)
			break;
		for (; at < stop && at < end; at += PAGE)
			sum += each(m, page_index_number(m->index, piece, at));
	}
	return sum;
}

static uint64_t finish_page(struct missing *m, uint64_t page)
{
	if (is_done(m, page))
		return 0;
	m->done[page / 8] |= 1 << page % 8;
	return 1;
}

/* A part of a segment has no more missing pages. */
static void finish_part(struct missing *m, const struct segment *s, uint64_t start, uint64_t end)
{
	uint64_t image = s->image + (start - s->start);

	m->left -= for_pages(m, image, image + (end - start), finish_page);
}

void missing_done(struct missing *m, const struct index_piece *piece, uint64_t image,
		  uint64_t nr_pages)
{
	uint64_t page = page_index_number(m->index, piece, image);

	for (uint64_t i = 0; i < nr_pages; i++)
		m->left -= finish_page(m, page + i);
}

/* ---- segments ---------------------------------------------------------------------------- */

static int make_room(struct missing *m, size_t more)
{
	size_t room = m->room ? 2 * m->room : 64;
	struct segment *larger;

	if (m->nr_segments + more <= m->room)
		return 0;
	while (room < m->nr_segments + more)
		room *= 2;
	larger = reallocarray(m->segment, room, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	m->segment = larger;
	m->room = room;
	return 0;
}

int missing_add(struct missing *m, uint64_t start, uint64_t end)
{
	int err = make_room(m, 1);

	if (err)
		return err;
	m->segment[m->nr_segments++] = (struct segment){ .start = start, .end = end, .image = start };
	m->left += missing_pages_in(m->index, m->pid, start, end);
	return 0;
}

/* Splits the segment that has the address inside.  0 or -ENOMEM. */
static int split_at(struct missing *m, uint64_t address)
{
	size_t count = m->nr_segments;

	for (size_t i = 0; i < count; i++) {
		struct segment tail = m->segment[i];
		int err;

		if (address <= tail.start || address >= tail.end)
			continue;
		err = make_room(m, 1);
		if (err)
			return err;
		m->segment[i].end = address;
		tail.image += address - tail.start;
		tail.start = address;
		m->segment[m->nr_segments++] = tail;
	}
	return 0;
}

static int split(struct missing *m, uint64_t start, uint64_t end)
{
	return split_at(m, start) ?: split_at(m, end);
}

static bool is_inside(const struct segment *s, uint64_t start, uint64_t end)
{
	return s->start >= start && s->end <= end;
}

static void forget(struct missing *m, size_t i)
{
	finish_part(m, &m->segment[i], m->segment[i].start, m->segment[i].end);
	m->segment[i] = m->segment[--m->nr_segments];
}

/* Does the range have listed segments that are, or are not, stale? */
static bool has(const struct missing *m, uint64_t start, uint64_t end, bool stale)
{
	for (size_t i = 0; i < m->nr_segments; i++) {
		const struct segment *s = &m->segment[i];

		if (!s->lost && s->stale == stale && is_inside(s, start, end))
			return true;
	}
	return false;
}

void missing_drop(struct missing *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->nr_segments; i++) {
		const struct segment *s = &m->segment[i];
		uint64_t from = s->start > start ? s->start : start;
		uint64_t to = s->end < end ? s->end : end;

		if (from < to && !s->stale && !s->lost)
			finish_part(m, s, from, to);
	}
}

/* Is this the unmapping of what was moved away? */
static bool is_departure(struct missing *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->nr_departures; i++) {
		struct departure *d = &m->departure[i];

		if (d->unmapped || d->start != start || d->end != end)
			continue;
		d->unmapped = true;
		return true;
	}
	return false;
}

static bool meets_departure(const struct missing *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->nr_departures; i++)
		if (m->departure[i].start < end && m->departure[i].end > start)
			return true;
	return false;
}

int missing_unmap(struct missing *m, uint64_t start, uint64_t end)
{
	bool late;
	int err;

	if (is_departure(m, start, end))
		return 0;
	err = split(m, start, end);
	if (err)
		return err;
	late = has(m, start, end, true);
	if (!late && !has(m, start, end, false))
		return meets_departure(m, start, end) ? -EDEADLK : 0;
	for (size_t i = m->nr_segments; i-- > 0;) {
		struct segment *s = &m->segment[i];

		if (s->lost || s->stale != late || !is_inside(s, start, end))
			continue;
		if (s->moved && !late)
			s->lost = true;
		else
			forget(m, i);
	}
	return 0;
}

static int add_departure(struct missing *m, uint64_t start, uint64_t end)
{
	size_t room = m->departure_room ? 2 * m->departure_room : 16;
	struct departure *larger;

	if (m->nr_departures == m->departure_room) {
		larger = reallocarray(m->departure, room, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		m->departure = larger;
		m->departure_room = room;
	}
	m->departure[m->nr_departures++] = (struct departure){ .start = start, .end = end };
	return 0;
}

int missing_move(struct missing *m, uint64_t from, uint64_t to, uint64_t length)
{
	int err = split(m, from, from + length) ?: split(m, to, to + length);
	bool late = has(m, from, from + length, true);

	if (!err)
		err = add_departure(m, from, from + length);
	if (!err && late && has(m, from, from + length, false))
		err = -EDEADLK;
	/* What is at the target has gone away, which will be told. */
	for (size_t i = 0; !err && i < m->nr_segments; i++)
		if (is_inside(&m->segment[i], to, to + length))
			m->segment[i].stale = true;
	for (size_t i = 0; !err && i < m->nr_segments; i++) {
		struct segment *s = &m->segment[i];

		if (s->lost || s->stale != late || !is_inside(s, from, from + length))
			continue;
		s->end += to - from;
		s->start += to - from;
		s->stale = false;
		s->moved = true;
	}
	return err;
}

bool missing_has_hidden(const struct missing *m)
{
	for (size_t i = 0; i < m->nr_segments; i++)
		if (m->segment[i].stale || m->segment[i].lost)
			return true;
	return false;
}

/* A segment that was unmapped: is its place registered, though nothing is listed there? */
static int confirm(const struct missing *m, const struct segment *lost,
		   int (*look)(int fd, uint64_t address), int fd)
{
	int result;

	for (size_t i = 0; i < m->nr_segments; i++) {
		const struct segment *s = &m->segment[i];

		if (!s->lost && !s->stale && s->start < lost->end && s->end > lost->start)
			return 0;
	}
	result = look(fd, lost->start);
	if (result && result != -EAGAIN)
		result = look(fd, lost->end - PAGE);
	return !result ? -EDEADLK : result == -EAGAIN ? result : 0;
}

int missing_settle(struct missing *m, int (*look)(int fd, uint64_t address), int fd)
{
	m->nr_departures = 0;
	for (size_t i = m->nr_segments; i-- > 0;) {
		int result = 0;

		m->segment[i].moved = false;
		if (m->segment[i].lost)
			result = confirm(m, &m->segment[i], look, fd);
		if (result == -EDEADLK)
			return result;
		if (m->segment[i].stale || (m->segment[i].lost && !result))
			forget(m, i);
	}
	return 0;
}

/* ---- looking things up ------------------------------------------------------------------- */

const struct index_piece *missing_find(const struct missing *m, uint64_t address, uint64_t *image)
{
	for (size_t i = 0; i < m->nr_segments; i++) {
		const struct segment *s = &m->segment[i];
		const struct index_piece *piece;
		size_t found;

		if (s->stale || s->lost || address < s->start || address >= s->end)
			continue;
		*image = s->image + (address - s->start);
		found = page_index_find(m->index, m->pid, *image);
		if (found >= page_index_pieces(m->index))
			return NULL;
		piece = page_index_piece(m->index, found);
		if (piece->address > *image ||
		    is_done(m, page_index_number(m->index, piece, *image)))
			return NULL;
		return piece;
	}
	return NULL;
}

/* The segment that has this address of the image, or NULL. */
static const struct segment *segment_of(const struct missing *m, uint64_t image)
{
	for (size_t i = 0; i < m->nr_segments; i++) {
		const struct segment *s = &m->segment[i];

		if (!s->stale && !s->lost && image >= s->image && image - s->image < s->end - s->start)
			return s;
	}
	return NULL;
}

uint64_t missing_place(const struct missing *m, const struct index_piece *piece, uint64_t image,
		       uint64_t most, uint64_t *address, uint64_t *skip)
{
	uint64_t page = page_index_number(m->index, piece, image), count = 0, room;
	const struct segment *s;

	for (*skip = 0; *skip < most && is_done(m, page + *skip); ++*skip)
		;
	if (*skip)
		return 0;
	s = segment_of(m, image);
	if (!s) {
		*skip = 1;
		return 0;
	}
	room = (s->end - s->start - (image - s->image)) / PAGE;
	*address = s->start + (image - s->image);
	while (count < most && count < room && !is_done(m, page + count))
		count++;
	return count;
}
