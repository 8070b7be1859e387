// SPDX-License-Identifier: GPL-2.0
/* The rate at which a destination takes bytes; see rate.h. */
#include "image/rate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/clock.h"
#include "report/report.h"

#define MEMORY_NS	200000000.0	/* what was measured longer ago hardly counts */
#define WINDOW_BYTES	(4u << 20)
#define UNDER_WAY	(16u << 20)	/* bytes that keep a disk busy */
#define PROBE_NS	500000000ull	/* without an exact measurement: time for one */
#define BLOCKED_NS	100000u		/* a wait that has taken longer was one */
#define KNOWN_BYTES	(64u << 10)	/* fewer say nothing */

void rate_init(struct rate *r, int fd)
{
	struct stat st;

	*r = (struct rate){ .fd = fd };
	if (fstat(fd, &st))
		return;
	if (S_ISFIFO(st.st_mode))
		r->kind = RATE_PIPE;
	else if (S_ISSOCK(st.st_mode))
		r->kind = RATE_SOCKET;
	else if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		r->kind = RATE_FILE;
}

void rate_mean_add(struct rate_mean *m, uint64_t bytes, uint64_t ns)
{
	double keep = MEMORY_NS / (MEMORY_NS + (double)ns);

	m->bytes = m->bytes * keep + (double)bytes;
	m->ns = m->ns * keep + (double)ns;
	m->all += bytes;
}

static double cost(const struct rate_mean *m)
{
	return m->all >= KNOWN_BYTES ? m->ns / m->bytes : -1;
}

static double cost_on_disk(const struct rate *r, double taken)
{
	double written = cost(&r->written);

	return r->paced && written > taken ? written : taken;
}

double rate_cost(const struct rate *r)
{
	return cost_on_disk(r, cost(&r->taken));
}

double rate_cost_alone(const struct rate *r)
{
	double best = -1;

	for (unsigned int i = 0; i < r->nr_alone && i < RATE_ALONE; i++)
		if (best < 0 || r->alone[i] < best)
			best = r->alone[i];
	return cost_on_disk(r, best);
}

/* ---- pipes and sockets ------------------------------------------------------------- */

static uint64_t queue_length(const struct rate *r)
{
	int n = 0;

	if (r->kind == RATE_PIPE && !ioctl(r->fd, FIONREAD, &n))
		return (uint64_t)n;
	if (r->kind == RATE_SOCKET && !ioctl(r->fd, SIOCOUTQ, &n))
		return (uint64_t)n;
	return 0;
}

/*
 * If something is left in the queue, the reader has been busy since the last write.
 * Otherwise it has waited, nobody knows how long, and only this write counts.
 */
void rate_begin(struct rate *r, bool alone)
{
	uint64_t queued = queue_length(r);
	bool busy = queued && r->ended_ns;

	r->is_alone = alone;
	r->began_ns = busy ? r->ended_ns : now_ns();
	if (!busy)
		r->queued = queued;
}

/* ---- files -------------------------------------------------------------------------- */

void rate_pace(struct rate *r, bool paced)
{
	off_t position = paced && r->kind == RATE_FILE ? lseek(r->fd, 0, SEEK_CUR) : -1;

	r->paced = position >= 0;
	r->position = r->paced ? (uint64_t)position : 0;
	r->first = r->count = 0;
	r->under_way = 0;
}

/*
 * An error that is returned here is not returned again by fsync(2).  -EOPNOTSUPP, silently:
 * this is nothing that has a page cache.
 */
static int sync_range(const struct rate *r, const struct rate_window *w, unsigned int flags)
{
	int err = 0;

	do
		err = sync_file_range(r->fd, (off_t)w->from, (off_t)w->length, flags) ? -errno : 0;
	while (err == -EINTR);
	if (err == -EINVAL || err == -ESPIPE || err == -ENOSYS || err == -EOPNOTSUPP)
		return -EOPNOTSUPP;
	return err ? report_errno(err, "cannot write the context file") : 0;
}

/* One that was done before it was waited for says at least how long it has taken at most. */
static void note_window(struct rate *r, const struct rate_window *w, uint64_t wait_ns, uint64_t now)
{
	uint64_t took = now - w->started_ns;

	if (wait_ns > BLOCKED_NS) {
		if (r->done_ns > w->started_ns)
			took = now - r->done_ns;
		rate_mean_add(&r->written, w->length, took);
		r->exact_ns = now;
	} else if (!r->written.all || (double)took < cost(&r->written) * (double)w->length) {
		rate_mean_add(&r->written, w->length, took);
	}
	r->done_ns = now;
}

static int wait_oldest(struct rate *r)
{
	const struct rate_window *w = &r->window[r->first];
	uint64_t start = now_ns(), now;
	int err = sync_range(r, w, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			     SYNC_FILE_RANGE_WAIT_AFTER);

	if (err)
		return err;
	now = now_ns();
	note_window(r, w, now - start, now);
	r->under_way -= w->length;
	r->first = (r->first + 1) % RATE_WINDOWS;
	r->count--;
	return 0;
}

/* Has the disk begin with what was written, and waits until it has not too much to do. */
static int pace(struct rate *r)
{
	off_t end = lseek(r->fd, 0, SEEK_CUR);
	struct rate_window *w = &r->window[(r->first + r->count) % RATE_WINDOWS];
	uint64_t limit = UNDER_WAY;
	int err;

	if (end < (off_t)(r->position + WINDOW_BYTES))
		return 0;
	*w = (struct rate_window){ r->position, (uint64_t)end - r->position, now_ns() };
	err = sync_range(r, w, SYNC_FILE_RANGE_WRITE);
	if (err)
		return err;
	r->position = (uint64_t)end;
	r->under_way += w->length;
	r->count++;
	/* With nothing under way but what is waited for, the measurement is exact. */
	if (w->started_ns - r->exact_ns > PROBE_NS) {
		r->exact_ns = w->started_ns;
		limit = 0;
	}
	while (!err && r->count && (r->under_way > limit || r->count == RATE_WINDOWS))
		err = wait_oldest(r);
	return err;
}

int rate_end(struct rate *r, uint64_t bytes)
{
	uint64_t now = now_ns(), queued = queue_length(r), had = r->queued + bytes;
	uint64_t gone = had > queued ? had - queued : 0, took = now - r->began_ns;
	int err = 0;

	rate_mean_add(&r->taken, gone, took);
	if (r->is_alone) {
		if (gone >= KNOWN_BYTES)
			r->alone[r->nr_alone++ % RATE_ALONE] = (double)took / (double)gone;
		r->alone_ns = now;
		r->alone_took_ns = took;
	}
	r->queued = queued;
	r->ended_ns = now;
	if (r->paced)
		err = pace(r);
	if (err != -EOPNOTSUPP)
		return err;
	r->paced = false;
	return 0;
}
