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
		one.ready = NULL;
	}
	err = store->place(store, number, last, &one);
	if (!err)
		err = checkpoint_run(&one, result);
	return !err && !last && store->placed ? store->placed(store, number) : err;
}

/* Is it time to stop them, after an image of so many pages and one of `before`? */
static bool is_enough(const struct checkpoint_result *r, uint64_t before)
{
	return r->nr_pages >= before || r->write_ns < ENOUGH_NS;
}

int precopy_run(const struct checkpoint_options *options, struct precopy_store *store,
		struct checkpoint_result *result)
{
	uint64_t before = UINT64_MAX, bytes = 0;
	int pidfd = watch_target(options), err = 0;
	unsigned int rounds = 0;
	bool enough = false;

	while (!err && !enough) {
		err = run_one(options, store, rounds, false, result);
		if (!err)
			err = check_target(options, pidfd);
		if (err)
			break;
		rounds++;
		bytes += result->bytes;
		report_verbose("round %u: %llu pages, %.1f MB; the processes were stopped for %.1f ms",
			       rounds, (unsigned long long)result->nr_pages,
			       (double)result->bytes / 1e6, (double)result->stopped_ns / 1e6);
		if (options->round)
			options->round(options->round_arg, rounds, result);
		enough = rounds == options->precopy || is_enough(result, before);
		before = result->nr_pages;
	}
	if (!err)
		err = run_one(options, store, rounds, true, result);
	if (pidfd >= 0)
		close(pidfd);
	result->nr_rounds = rounds;
	result->rounds_bytes = bytes;
	return err;
}
