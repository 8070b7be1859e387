// SPDX-License-Identifier: GPL-2.0
/*
 * The source: rounds of pre-copy whose images go through a pipe to the target.  Up to the
 * end of checkpoint_run() the module lets the processes run on if we end, however.
 */
#include "migrate/migrate.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "checkpoint/postponed.h"
#include "checkpoint/precopy.h"
#include "device/device.h"
#include "migrate/feed.h"
#include "migrate/spool.h"
#include "proc/clock.h"
#include "report/report.h"

struct source {
	struct precopy_store store;
	const struct migrate_options *options;
	const struct link *link;
	struct pages *pages;		/* of a lazy migration; or NULL */
	struct feed feed;
	struct link_hello hello;
	char parent[PATH_MAX + 16];
	unsigned int last;		/* number of the last image */
	sigset_t mask;
	bool held;			/* signals are blocked, and `mask` is the old mask */
	int err;			/* of the connection */
};

/* ---- answers ----------------------------------------------------------------------------- */

static int lost(struct source *s, int err)
{
	s->err = err;
	return report_fail(err, "the connection to %s is lost (%s)", s->options->host,
			   err == -ECONNRESET ? "closed" : strerror(-err));
}

/* The target says why it cannot. */
static int take_failure(struct source *s, const struct link_head *head)
{
	struct link_failure failure;
	int err;

	if (head->length != sizeof(failure))
		return lost(s, -EPROTO);
	err = link_read(s->link, &failure, sizeof(failure));
	if (err)
		return lost(s, err);
	failure.text[sizeof(failure.text) - 1] = '\0';
	s->err = failure.code > 0 && failure.code < 256 ? -failure.code : -EIO;
	return report_fail(s->err, "%s: %s", s->options->host, failure.text);
}

/* The next message must be this one, with `length` bytes. */
static int expect(struct source *s, enum link_type type, void *data, size_t length)
{
	struct link_head head;
	int err = link_receive(s->link, &head);

	if (!err && head.type == LINK_FAILED)
		return take_failure(s, &head);
	if (!err && (head.type != type || head.length != length))
		err = -EPROTO;
	if (!err)
		err = link_read(s->link, data, length);
	return err ? lost(s, err) : 0;
}

/* What could not be sent: the target may have said why before it closed. */
static int explain(struct source *s, int err)
{
	struct link_head head;

	report_clear();
	while (err == -ECONNRESET && !link_receive(s->link, &head))
		if (head.type == LINK_FAILED)
			return take_failure(s, &head);
	return lost(s, err);
}

/* What the image's thread has found. */
static int explain_feed(struct source *s, int err)
{
	if (!s->feed.unkept)
		return explain(s, err);
	s->err = err;
	report_clear();
	return report_errno(err, "cannot keep the outline of an image in %s (see TMPDIR)", spool_path());
}

static int check_target(struct source *s)
{
	const struct link_hello *h = &s->hello;
	struct kcr_info info;
	struct utsname here;
	int job, err = expect(s, LINK_HELLO, &s->hello, sizeof(s->hello));

	if (err == -EPROTO || err == -ECONNRESET ||
	    (!err && memcmp(h->magic, LINK_MAGIC, sizeof(h->magic)))) {
		s->err = err ?: -EPROTO;
		report_clear();
		if (s->options->tcp)	/* which has said why */
			return report_fail(s->err, "%s does not answer: nothing was stopped",
					   s->options->host);
		return report_fail(s->err, "cr_migrate does not answer at %s: it must be installed there, "
				   "and the start-up files of the shell must print nothing",
				   s->options->host);
	}
	if (err)
		return err;
	if (h->protocol != LINK_PROTOCOL)
		return report_fail(-EPROTO, "%s has another version of cr_migrate (%.*s, here "
				   KCR_VERSION "): install the same on both", s->options->host,
				   (int)sizeof(h->version), h->version);
	uname(&here);
	if (strncmp(h->machine, here.machine, sizeof(h->machine)))
		return report_fail(-EOPNOTSUPP, "%s is a %.*s machine, this is %s", s->options->host,
				   (int)sizeof(h->machine), h->machine, here.machine);
	job = device_open(&info);
	if (job < 0)
		return job;
	close(job);
	if (s->pages && !(info.features & KCR_FEATURE_SNAPSHOT))
		return report_fail(-EOPNOTSUPP, "--lazy needs copies of memory (cr_checkpoint --snapshot), "
				   "which this kernel does not allow: leave it out");
	if (info.xstate_size > h->xstate_size)
		report_warn("%s may have fewer CPU registers (%u bytes of state, here %u): programs that use "
			    "those will be refused", s->options->host, h->xstate_size, info.xstate_size);
	report_verbose("%s: KCR %.*s, Linux %.*s", s->options->host, (int)sizeof(h->version),
		       h->version, (int)sizeof(h->kernel), h->kernel);
	return 0;
}

/* ---- images ------------------------------------------------------------------------------ */

static struct source *source(struct precopy_store *store)
{
	return (struct source *)store;
}

/* Waits until the target has all of the image. */
static int store_image(struct source *s)
{
	int err = feed_finish(&s->feed);

	return err ? explain_feed(s, err) : expect(s, LINK_STORED, NULL, 0);
}

/* The image is complete, and the processes are stopped: could they run at the target? */
static int ready(void *arg)
{
	struct source *s = arg;
	sigset_t all;
	int err = store_image(s);

	if (err)
		return err;
	/* To undo a huge page it may need a part of one. */
	if (s->pages)
		err = pages_serve(s->pages);
	if (err)
		return err;
	err = link_send(s->link, LINK_RESTART, NULL, 0);
	if (err)
		return explain(s, err);
	err = expect(s, LINK_HELD, NULL, 0);
	if (!err && s->pages)
		err = pages_check(s->pages);
	if (err)
		return err;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &s->mask);
	s->held = true;
	if (s->options->held)
		s->options->held();
	return 0;
}

static int place(struct precopy_store *store, unsigned int number, bool last,
		 struct checkpoint_options *o)
{
	struct source *s = source(store);
	int err, fd = spool_create(number);

	if (fd < 0)
		return fd;
	if (number)
		snprintf(s->parent, sizeof(s->parent), "%s", spool_image(number - 1));
	err = link_send(s->link, LINK_IMAGE, &number, sizeof(number));
	if (err) {
		close(fd);
		return explain(s, err);
	}
	err = feed_start(&s->feed, s->link, fd);
	if (err)
		return err;
	o->path = NULL;
	o->elsewhere = true;
	o->fd = s->feed.pipe[1];
	o->parent = number && !s->pages ? s->parent : NULL;
	s->last = number;
	if (last) {
		o->ready = ready;
		o->ready_arg = s;
	}
	return 0;
}

static int placed(struct precopy_store *store, unsigned int number)
{
	(void)number;
	return store_image(source(store));
}

/* ---- all together ------------------------------------------------------------------------ */

/* Why has no image been made?  That the target has gone shows up as EPIPE. */
static int give_up(struct source *s, int err)
{
	int why = feed_finish(&s->feed);

	if (why && why != -EPIPE && !s->err)
		err = explain_feed(s, why);
	/* If it is still there. */
	link_send(s->link, LINK_ABORT, NULL, 0);
	return err;
}

/* They have ended here, and do not run there, or it was the last what we heard of them. */
static int explain_lazily(struct source *s, int err)
{
	int lost = pages_finish(s->pages);

	report_clear();
	return report_fail(err, lost ? "process %d has ended here, and was not started at %s: it is lost" :
			   "process %d has ended here; the connection to it at %s is lost, but all of its "
			   "memory was there before", s->options->checkpoint.target, s->options->host);
}

/* The processes have been killed here. */
static int commit(struct source *s, struct migrate_result *result)
{
	const char *why;
	uint64_t start = now_ns();
	int err = link_send(s->link, LINK_GO, NULL, 0);

	err = err ? explain(s, err) : expect(s, LINK_RUNNING, NULL, 0);
	result->downtime_ns = result->checkpoint.stopped_ns + now_ns() - start;
	if (s->pages)
		result->nr_postponed = postponed_pages(s->pages->postponed);
	if (!err)
		return 0;
	why = report_message();
	report_warn("%s", why ? why : strerror(-err));
	report_clear();
	if (s->pages)
		return explain_lazily(s, err);
	return report_fail(err, "process %d has ended here, but %s has not said that it runs there: if it "
			   "does not, restart it there: cr_restart %.*s/image.%u",
			   s->options->checkpoint.target, s->options->host, PATH_MAX,
			   s->hello.spool, s->last);
}

/* One image is made to find out what is refused, while the processes run on; it has no more than the last. */
static int prepare_pages(struct source *s, struct checkpoint_options *o)
{
	int err;

	s->pages->remote.lasting = true;
	s->pages->compression = o->compression;
	/* Each connection would have to be measured anew. */
	if (o->compression.adaptive)
		s->pages->compression = (struct compression){ .kind = CONTEXT_LZ4 };
	err = pages_connect(s->pages, s->options->rsh, s->options->host, s->hello.spool);
	o->precopy = 1;
	o->postponed = s->pages->postponed;
	return err;
}

int migrate_from(const struct migrate_options *o, struct remote *r, struct migrate_result *result)
{
	struct source s = {
		.store = { .place = place, .placed = placed }, .options = o, .link = &r->link,
	};
	struct checkpoint_options checkpoint = o->checkpoint;
	int err;

	r->lasting = o->lazy;
	result->pages.remote.link = (struct link){ .in = -1, .out = -1 };
	err = remote_start(r, o->rsh, o->host, o->command);
	if (err)
		return err;
	if (o->lazy)
		s.pages = &result->pages;
	err = check_target(&s);
	if (!err)
		err = spool_make(NULL);
	if (!err && o->lazy)
		err = prepare_pages(&s, &checkpoint);
	if (!err)
		err = precopy_run(&checkpoint, &s.store, &result->checkpoint);
	err = err ? give_up(&s, err) : commit(&s, result);
	spool_remove();
	result->lazy = o->lazy && !err;
	result->mask = s.mask;
	if (result->lazy)
		return 0;
	if (o->lazy)
		pages_drop(&result->pages);
	if (s.held)
		sigprocmask(SIG_SETMASK, &s.mask, NULL);
	return err;
}

int migrate_rest(struct migrate_result *result)
{
	int err;

	if (!result->lazy)
		return 0;
	err = pages_finish(&result->pages);
	sigprocmask(SIG_SETMASK, &result->mask, NULL);
	return err;
}
