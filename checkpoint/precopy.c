// SPDX-License-Identifier: GPL-2.0
/* The rounds of pre-copy, and when there have been enough; see precopy.h. */
#include "checkpoint/precopy.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/report.h"

/* An image that is written in this time leaves nothing that is worth another one. */
#define ENOUGH_NS	10000000ull
/* One that has this part fewer pages than the best before was worth while … */
#define LEAST_GAIN	8u
/* … and one that has not may be an accident, if it has at most this part of the first one's pages. */
#define SMALL		8u

/*
 * A process that has ended must not be followed by another one with its PID.  For groups
 * and sessions, which outlive their leaders, there is no such descriptor: -1.
 */
static int watch_target(const struct checkpoint_options *o)
{
	if (o->scope != CHECKPOINT_PROCESS && o->scope != CHECKPOINT_TREE)
		return -1;
	return (int)syscall(SYS_pidfd_open, o->target, 0);
}

static int check_target(const struct checkpoint_options *o, int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0 || poll(&p, 1, 0) <= 0)
		return 0;
	return report_fail(-ESRCH, "process %d has ended", o->target);
}

static int run_one(const struct checkpoint_options *o, struct precopy_store *store,
		   unsigned int number, bool last, struct checkpoint_result *result)
{
	struct checkpoint_options one = *o;
	int err;

	one.incremental = !o->postponed;
	/* What cannot be tracked is said once. */
	if (o->changes == CHECKPOINT_AUTO && !number)
		one.changes = CHECKPOINT_DIRTY;
	else if (o->changes == CHECKPOINT_DIRTY && number)
		one.changes = CHECKPOINT_AUTO;
	if (number)
		one.begun = NULL;
	if (!last) {
		one.snapshot = true;
		one.signal = 0;
		one.ends = false;
		one.ready = NULL;
		one.elsewhere = true;
	}
	err = store->place(store, number, last, &one);
	if (!err)
		err = checkpoint_run(&one, result);
	return !err && !last && store->placed ? store->placed(store, number) : err;
}

/* The rounds so far. */
struct rounds {
	unsigned int count;
	uint64_t first, best;		/* pages of an image */
	bool useless;			/* the last one was */
	uint64_t bytes;
};

/* Is it time to stop them, after this image? */
static bool is_enough(struct rounds *all, const struct checkpoint_result *r)
{
	bool useless = all->count > 1 && r->nr_pages > all->best - all->best / LEAST_GAIN;
	bool enough = r->write_ns < ENOUGH_NS ||
		      (useless && (all->useless || r->nr_pages > all->first / SMALL));

	if (all->count == 1)
		all->first = all->best = r->nr_pages;
	all->best = r->nr_pages < all->best ? r->nr_pages : all->best;
	all->useless = useless;
	return enough;
}

int precopy_run(const struct checkpoint_options *options, struct precopy_store *store,
		struct checkpoint_result *result)
{
	struct rounds all = { 0 };
	int pidfd = watch_target(options), err = 0;
	bool enough = false;

	while (!err && !enough) {
		err = run_one(options, store, all.count, false, result);
		if (!err)
			err = check_target(options, pidfd);
		if (err)
			break;
		all.count++;
		all.bytes += result->bytes;
		report_verbose("round %u: %llu pages, %.1f MB; the processes were stopped for %.1f ms",
			       all.count, (unsigned long long)result->nr_pages,
			       (double)result->bytes / 1e6, (double)result->stopped_ns / 1e6);
		if (options->round)
			options->round(options->round_arg, all.count, result);
		enough = is_enough(&all, result) || all.count == options->precopy;
	}
	if (!err)
		err = run_one(options, store, all.count, true, result);
	if (pidfd >= 0)
		close(pidfd);
	result->nr_rounds = all.count;
	result->rounds_bytes = all.bytes;
	return err;
}
