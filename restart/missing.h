/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which pages of a running address space are still missing, and where in the image they
 * are.  An address space is a list of segments: ranges that were registered with a
 * userfaultfd, each with the address that it had in the image; what the program does to its
 * memory changes them.  Nothing here makes a system call.
 */
#ifndef KCR_RESTART_MISSING_H
#define KCR_RESTART_MISSING_H

#include <stdbool.h>
#include <stdint.h>

#include "image/page_index.h"

struct segment {
	uint64_t start, end;		/* in the process */
	uint64_t image;			/* address of `start` in the image */
	/*
	 * Another range was moved here before the unmapping or moving of this one was reported:
	 * events of two threads may come in another order than that of their calls.
	 */
	bool stale;
	bool moved;			/* it came here since the last missing_settle() */
	bool lost;			/* and was unmapped since: to be confirmed by that */
};

/* A range that was moved away since the last missing_settle(). */
struct departure {
	uint64_t start, end;
	bool unmapped;			/* this was reported as well, by the same call */
};

struct missing {
	const struct page_index *index;
	int32_t pid;			/* of the process in the image */
	struct segment *segment;	/* in no order */
	size_t nr_segments, room;
	struct departure *departure;
	size_t nr_departures, departure_room;
	uint8_t *done;			/* a bit per page of the image: present, or dropped */
	uint64_t left;			/* pages of the segments that are not done */
};

/* 0 or -ENOMEM. */
int missing_init(struct missing *m, const struct page_index *index, int32_t pid);
void missing_free(struct missing *m);
/* The address space of a child: the same pages are missing.  0 or -ENOMEM. */
int missing_fork(struct missing *child, const struct missing *parent);

/* How many pages of the image are in a range of it. */
uint64_t missing_pages_in(const struct page_index *index, int32_t pid, uint64_t start, uint64_t end);
/* A range of the image is left out, none of which is done yet.  0 or -ENOMEM. */
int missing_add(struct missing *m, uint64_t start, uint64_t end);

/* The program has dropped the contents: the range reads as zeros. */
void missing_drop(struct missing *m, uint64_t start, uint64_t end);
/*
 * It has unmapped, or moved, the range.  0, -ENOMEM, or -EDEADLK: events of several threads
 * contradict each other, and what is where cannot be known.
 */
int missing_unmap(struct missing *m, uint64_t start, uint64_t end);
int missing_move(struct missing *m, uint64_t from, uint64_t to, uint64_t length);
/*
 * No event was outstanding just now.  `look`: 0: none is, and the address is in a registered
 * range; -EAGAIN: one is; else another -errno.  0 or -EDEADLK.
 */
int missing_settle(struct missing *m, int (*look)(int fd, uint64_t address), int fd);

/* Are there segments of which only missing_settle() will say what they are? */
bool missing_has_hidden(const struct missing *m);

/*
 * The page at `address`: a piece of the image, with its address there in *image; NULL:
 * the page is not missing any more, or never was: it reads as zeros.
 */
const struct index_piece *missing_find(const struct missing *m, uint64_t address,
				       uint64_t *image);
/*
 * Where in the process the pages from address `image` on are: how many of at most `most`
 * pages are together and missing, and *address; 0: none, and *skip pages are not.
 */
uint64_t missing_place(const struct missing *m, const struct index_piece *piece, uint64_t image,
		       uint64_t most, uint64_t *address, uint64_t *skip);
/* Pages of a piece, from address `image` on, are present (or gone). */
void missing_done(struct missing *m, const struct index_piece *piece, uint64_t image,
		  uint64_t nr_pages);

#endif /* KCR_RESTART_MISSING_H */
