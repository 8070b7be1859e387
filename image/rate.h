/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How fast does a destination take bytes?  What is written to it passes through buffers,
 * which take bytes as fast as memory until they are full: of pipes and sockets the kernel
 * says how much is in them, so only what has left them counts.  The page cache of a file is
 * left out if it is `paced`: bytes are sent to the disk as they come, and only so many are
 * under way that it always has some.
 *
 * What is behind the kernel's buffers here counts as taken: the receiver's, those of a
 * program such as ssh, of a file server, of the disk itself.
 *
 * For the thread that writes.
 */
#ifndef KCR_IMAGE_RATE_H
#define KCR_IMAGE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Sums of what was measured lately; older parts weigh less. */
struct rate_mean {
	double bytes, ns;
	uint64_t all;			/* bytes, ever */
};

#define RATE_ALONE	4u		/* measurements of which the best counts */
#define RATE_WINDOWS	8u		/* under way at once, at most */

struct rate_window {
	uint64_t from, length, started_ns;
};

struct rate {
	int fd;
	enum { RATE_PLAIN, RATE_PIPE, RATE_SOCKET, RATE_FILE } kind;
	bool paced;
	struct rate_mean taken;		/* from us */
	double alone[RATE_ALONE];	/* ns per byte, while we did nothing else: the latest */
	unsigned int nr_alone;		/* ever */
	uint64_t began_ns;		/* the write */
	bool is_alone;			/* … is of that kind; the last one … */
	uint64_t alone_ns;		/* … ended then … */
	uint64_t alone_took_ns;		/* … and took so long */
	uint64_t queued;		/* in a pipe or socket after the last write … */
	uint64_t ended_ns;		/* … which ended then */

	/* A paced file: */
	struct rate_mean written;	/* to the disk */
	struct rate_window window[RATE_WINDOWS];
	unsigned int first, count;	/* of those under way */
	uint64_t under_way;		/* their bytes */
	uint64_t position;		/* what was written before is in a window, or done */
	uint64_t done_ns;		/* a window was seen to be done */
	uint64_t exact_ns;		/* … and had been waited for */
};

void rate_init(struct rate *r, int fd);

/*
 * From now on a file's page cache counts as the destination, or (paced) its disk does.
 * Paced writes take as long as the disk needs, which a later fsync(2) then need not wait for.
 */
void rate_pace(struct rate *r, bool paced);

/*
 * Before bytes are written, and after.  0, or -errno with a message: they are not on the disk.
 * alone: no other thread of ours takes processors from who reads a pipe.
 */
void rate_begin(struct rate *r, bool alone);
int rate_end(struct rate *r, uint64_t bytes);

/* Time per byte, in ns; negative: not known yet. */
double rate_cost(const struct rate *r);
/*
 * The same of what was written alone.  Others may always have taken the processor from us or
 * from a reader, so the best of the latest counts: a destination that is believed to be
 * faster than it is gets bytes and shows what it is; one that is believed to be slower
 * would not.
 */
double rate_cost_alone(const struct rate *r);

/* Adds a measurement. */
void rate_mean_add(struct rate_mean *m, uint64_t bytes, uint64_t ns);

#endif /* KCR_IMAGE_RATE_H */
