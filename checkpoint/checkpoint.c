// SPDX-License-Identifier: GPL-2.0
/*
 * The order of steps of a checkpoint.
 *
 *	precheck → callbacks → stop → describe → write → release → sync → commit
 *
 * With a signal the release comes last, so that no program is killed before
 * its context file is safe.  With --snapshot it comes as early as possible:
 * after the snapshot and after what a snapshot does not hold.  If a stopped
 * (SIGSTOP) process was continued meanwhile, what was read is worthless and
 * everything is done again.
 *
 * Programs with callbacks (libcr) are notified just before they are stopped, and
 * finish their callbacks before any other thread goes on: see clients.c.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/duplicates.h"
#include "checkpoint/family.h"
#include "device/device.h"
#include "image/chooser.h"
#include "image/pages.h"
#include "proc/clock.h"
#include "proc/handle.h"
#include "report/report.h"
#include "resource/seccomp.h"

#define MAX_TRIES	3
#define MAX_UNREAD	40	/* threads come and go, each with seccomp filters of its own */

/* A pipe read by a stopped process would fill up and block us for ever. */
static int check_reader(const struct checkpoint *c)
{
	struct stat st;

	if (fstat(c->destination->fd, &st) || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) ||
	    !file_table_is_read(c->attempt.description.files, &st))
		return 0;
	return report_fail(-EDEADLK, "the destination is a pipe or socket that one of the processes "
			   "to checkpoint holds open: it could not go on reading");
}

/*
 * If no snapshot can be made (the module cannot copy something, or a limit of
 * processes or memory is reached), the processes wait until all is written.
 */
static int make_snapshot(struct checkpoint *c)
{
	int err = device_snapshot(c->attempt.job, &c->result->snapshot_ns);
	const char *why;

	if (err != -EOPNOTSUPP && err != -EAGAIN && err != -ENOMEM)
		return err;
	report_clear();
	why = err == -EOPNOTSUPP ? "the kernel lacks it, a process is stopped, has private huge pages or "
	      "uses userfaultfd" : "a limit of processes or of memory is reached";
	if (c->options->postponed)
		return report_fail(err, "--lazy needs a snapshot, which is not possible (%s): leave it out",
				   why);
	report_warn("no snapshot is possible (%s): the processes stand still until all is written", why);
	c->attempt.snapshot = false;
	return 0;
}

static int write_contents(struct checkpoint *c)
{
	uint64_t start = now_ns();
	int err = file_table_write_contents(c->attempt.description.files, c->attempt.writer);

	c->result->content_ns = now_ns() - start;
	return err;
}

/* Everything that has to be done while the processes are stopped. */
static int save_stopped(struct checkpoint *c)
{
	struct file_table *files;
	uint64_t start = now_ns();
	int err = describe(c);

	if (!err)
		err = check_reader(c);
	if (!err)
		err = family_find(c);
	if (!err)
		figures_describe(c);
	c->result->describe_ns = now_ns() - start;
	if (!err && c->attempt.snapshot)
		err = make_snapshot(c);
	if (!err)
		err = changes_find(c);
	if (err)
		return err;
	files = c->attempt.description.files;
	/* Without contents to save now, even the description can be written later. */
	if (c->attempt.snapshot && !file_table_content_bytes(files) && !memory_has_early(c))
		return 0;
	start = now_ns();
	err = describe_write(c);
	if (!err)
		err = write_contents(c);
	if (!err && (!c->attempt.snapshot || memory_has_early(c)))
		err = memory_write(c, MEMORY_SHARED, c->attempt.snapshot);
	if (!err)
		err = memory_write(c, MEMORY_EARLY, false);
	if (!err && !c->attempt.snapshot)
		err = memory_write(c, MEMORY_REST, false);
	c->result->write_ns = now_ns() - start;
	return err;
}

/* -EAGAIN: what was read of a process may be torn, or it has not been found any more. */
static int save_whole(struct checkpoint *c)
{
	int err = save_stopped(c);

	if (!err)
		err = changes_track(c);
	return err && err != -ESRCH ? err : stop_verify(c) ?: err;
}

/* Writes the rest from the snapshot while the processes run. */
static int save_running(struct checkpoint *c)
{
	uint64_t start = now_ns();
	int err = 0;

	if (!c->attempt.description.written)
		err = describe_write(c);
	if (!err && !memory_has_early(c))
		err = memory_write(c, MEMORY_SHARED, true);
	if (!err)
		err = memory_write(c, MEMORY_REST, true);
	if (!err)
		err = postponed_write(c);
	c->result->write_ns += now_ns() - start;
	return err;
}

static int finish(struct checkpoint *c)
{
	uint64_t start;
	int err = context_writer_finish(c->attempt.writer);

	c->result->bytes = context_writer_bytes(c->attempt.writer);
	c->result->content_bytes = context_writer_content(c->attempt.writer);
	c->result->id = context_writer_id(c->attempt.writer);
	c->result->nr_unchanged = increment_unchanged(c->increment);
	c->result->nr_unwritten = increment_unwritten(c->increment);
	c->result->nr_duplicates = duplicates_count(c->attempt.duplicates);
	c->result->nr_pages -= c->result->nr_unchanged + c->result->nr_duplicates;
	increment_list_older(c->increment, c->result);
	c->result->target_rate = memory_target_rate(c);
	start = now_ns();
	if (!err)
		err = destination_sync(c->destination);
	c->result->commit_ns = c->result->sync_ns = now_ns() - start;
	return err;
}

/* ---- attempts ------------------------------------------------------------------- */

static int attempt_begin(struct checkpoint *c)
{
	struct checkpoint_result *r = c->result;

	c->attempt = (struct attempt){ .job = -1 };
	*r = (struct checkpoint_result){ .attempts = r->attempts + 1, .check_ns = r->check_ns };
	increment_again(c->increment);
	c->attempt.job = device_open(&c->attempt.info);
	postponed_begin(c);
	return c->attempt.job < 0 ? c->attempt.job : 0;
}

/* Closes the job, which releases everything that is still stopped. */
static void attempt_end(struct checkpoint *c)
{
	if (c->attempt.job >= 0) {
		clients_give_up(c);
		if (!postponed_end(c))
			close(c->attempt.job);
	}
	describe_free(&c->attempt.description);
	context_writer_free(c->attempt.writer);
	family_free(c->attempt.family);
	duplicates_free(c->attempt.duplicates);
	chooser_free(c->attempt.chooser);
	if (c->attempt.members.handle)
		handles_close(c->attempt.members.handle, c->attempt.members.count);
	free(c->attempt.members.process);
	scope_free(&c->attempt.scope);
}

/* Lets the processes go on, and says so. */
static int release(struct checkpoint *c)
{
	int err = stop_release(c, 0);

	if (err || !c->options->released)
		return err;
	c->attempt.announced = true;
	return c->options->released(c->attempt.snapshot);
}

/* From now on there is this much time. */
static void limit(struct checkpoint *c)
{
	if (c->options->timeout_s)
		c->deadline_ns = now_ns() + c->options->timeout_s * 1000000000ull;
}

/* Up to the complete file under its temporary name. */
static int attempt_run(struct checkpoint *c)
{
	const struct checkpoint_options *o = c->options;
	int err = context_writer_new(&c->attempt.writer, c->destination->fd,
				     increment_features(c->increment));

	if (!err)
		context_writer_limit(c->attempt.writer, o->bandwidth);
	if (!err && o->compression.adaptive)
		err = chooser_new(&c->attempt.chooser, c->destination->fd, pages_processors());
	if (!err)
		err = describe_host(c);
	if (err)
		return err;
	c->attempt.snapshot = (o->snapshot && !o->signal) || o->postponed;
	if (o->timeout_each)
		limit(c);
	err = stop_processes(c);
	if (!err)
		err = save_whole(c);
	/* Our duplicates, before anything runs again. */
	if (c->attempt.description.files)
		file_table_close(c->attempt.description.files);
	if (!err && !o->signal)
		err = release(c);
	if (!err && c->attempt.snapshot)
		err = save_running(c);
	return err ? err : finish(c);
}

/*
 * Replaces an attempt that failed with `why` by a new one; `unread`: it met threads whose
 * seccomp filters have to be read first.
 */
static int begin_again(struct checkpoint *c, int why, bool unread)
{
	int err = destination_rewind(c->destination);

	if (err && why == -EBUSY)
		return why;
	if (err) {
		report_clear();
		return report_fail(-EAGAIN, "a process was killed or continued during the checkpoint, or "
				   "its tracking disturbed, and what was written can't be taken back: "
				   "try again");
	}
	attempt_end(c);
	report_clear();
	if (why == -EBUSY)
		usleep(BUSY_US);
	err = attempt_begin(c);
	if (c->options->timeout_each)
		limit(c);
	return !err && unread ? filters_read(c, true) : err;
}

static int attempts(struct checkpoint *c)
{
	int tries = 0, tries_unread = 0;

	for (;;) {
		int err = attempt_run(c);
		bool unread = seccomp_has_missed();

		/* What others were told of this attempt is not true of another one. */
		if ((err != -EAGAIN && err != -EBUSY) || c->attempt.announced || c->attempt.in_flight)
			return err;
		if (unread ? ++tries_unread == MAX_UNREAD : ++tries == MAX_TRIES)
			return err;
		/* EBUSY: a process was stopped while it became a client, with the device open. */
		err = begin_again(c, err, unread);
		if (err)
			return err;
	}
}

/* A restart beside those is not possible. */
static void warn_of_others(const struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;

	if (!c->options->elsewhere)
		held_outside_warn(d->files, d->process, d->nr_processes, d->time_ns);
}

static int commit(struct checkpoint *c)
{
	uint64_t start;
	int err;

	if (c->options->timeout_each)
		limit(c);
	/* A callback may still abort the checkpoint; but nothing is to run before `saved` lets it. */
	err = c->options->saved ? 0 : clients_finish(c);
	start = now_ns();
	if (!err && c->options->ends)
		err = stop_may_signal(c);
	if (!err && c->options->ready)
		err = c->options->ready(c->options->ready_arg);
	if (!err)
		err = destination_commit(c->destination);
	if (!err)
		increment_committed(c->increment);
	c->result->commit_ns += now_ns() - start;
	if (err || !c->options->signal)
		return err;
	if (c->options->committed)
		c->options->committed(c->options->committed_arg);
	c->result->total_ns = now_ns() - c->start_ns;		/* so far */
	if (c->options->saved) {
		warn_of_others(c);	/* who takes warnings does so now */
		err = c->options->saved(c->options->saved_arg, c->result);
	}
	if (!err)
		err = stop_release(c, c->options->signal);
	if (!err)
		postponed_keep(c);
	return err;
}

static void clean_up(struct checkpoint *c)
{
	attempt_end(c);
	increment_free(c->increment, c->destination);
	destination_close(c->destination);
	opened_free(c);
	free(c->excluded.pid);
	free(c->skipped.pid);
	free(c->forward);
	clients_forget_stopped(c);
	free(c->woken.pid);
}

int checkpoint_run(const struct checkpoint_options *options, struct checkpoint_result *result)
{
	struct checkpoint c = { .options = options, .result = result, .start_ns = now_ns() };
	int err;

	*result = (struct checkpoint_result){};
	limit(&c);
	err = attempt_begin(&c);
	if (!err)
		err = precheck(&c);
	if (!err)
		err = filters_read(&c, false);
	if (!err)
		err = increment_open(&c);
	if (!err)
		err = destination_open(&c.destination, options);
	if (!err)
		err = increment_set_aside(&c);
	result->check_ns = now_ns() - c.start_ns;
	if (!err && options->begun)
		err = options->begun();
	if (!err)
		err = attempts(&c);
	if (!err)
		err = commit(&c);
	if (!err && !(options->signal && options->saved))
		warn_of_others(&c);
	if (c.destination)
		err = destination_explain(c.destination, err);
	clean_up(&c);
	result->total_ns = now_ns() - c.start_ns;
	return err;
}

/* Describes the stopped processes, writes nothing, and lets them run on. */
static int stop_and_describe(struct checkpoint *c)
{
	int err = describe_host(c);

	if (!err)
		err = stop_processes(c);
	if (!err)
		err = describe(c);
	if (!err)
		c->expected_content = file_table_content_bytes(c->attempt.description.files);
	if (c->attempt.description.files)
		file_table_close(c->attempt.description.files);
	return err ? err : stop_release(c, 0);
}

int checkpoint_examine(const struct checkpoint_options *options, bool stop,
		       void (*obstacle)(void *arg, const char *message), void *arg,
		       struct checkpoint_estimate *out)
{
	struct checkpoint_result result = {};
	struct checkpoint c = {
		.options = options, .result = &result, .obstacle = obstacle, .obstacle_arg = arg,
	};
	const struct scope *scope = &c.attempt.scope;
	int err = attempt_begin(&c);

	*out = (struct checkpoint_estimate){};
	if (!err)
		err = precheck(&c);
	if (!err && stop)
		err = filters_read(&c, false);
	if (!err && stop)
		err = stop_and_describe(&c);
	for (size_t i = 0; i < scope->count; i++)
		out->nr_threads += scope->process[i].zombie ? 0 : scope->process[i].nr_threads;
	out->nr_processes = scope->count;
	out->bytes = c.expected_bytes + c.expected_content;
	clean_up(&c);
	return err;
}
