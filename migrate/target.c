// SPDX-License-Identifier: GPL-2.0
/*
 * The target: takes images into its spool folder and has cr_restart make the processes of
 * the last one.  Whatever fails before they are held, or before the source has ended its
 * own, is undone.  Only if the connection is lost between HELD and the source's answer are the
 * images kept: they may be all that is left.
 *
 * Where that is possible cr_restart loads the memory while the processes run, so that they need not
 * wait until all that came in rounds has been read once more.  It is verified as it comes
 * (arrival.h), and the images stay until all is loaded.
 */
#include "migrate/migrate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/precopy.h"
#include "device/device.h"
#include "migrate/arrival.h"
#include "migrate/held.h"
#include "migrate/join.h"
#include "migrate/spool.h"
#include "report/report.h"
#include "restart/lazy.h"

static const struct link source = { .in = STDIN_FILENO, .out = STDOUT_FILENO };

struct target {
	const struct target_options *options;
	unsigned int nr_images;
	int file;			/* the image that is being received; -1: none */
	bool late;			/* memory is loaded from them while the processes run */
	struct arrival arrival;		/* of images, with `late` */
	struct held held;
	int listener, pages;		/* of a lazy migration (join.h); -1: closed */
	char data[LINK_DATA_MAX];
};

/* The source tells its user.  Returns err. */
static int say_failed(int err)
{
	struct link_failure failure = { .code = report_exit_code(err) };

	snprintf(failure.text, sizeof(failure.text), "%s",
		 report_message() ? report_message() : strerror(-err));
	link_send(&source, LINK_FAILED, &failure, sizeof(failure));
	return err;
}

static int say_hello(struct target *t)
{
	struct link_hello hello = { .protocol = LINK_PROTOCOL, .version = KCR_VERSION };
	struct utsname here;
	struct kcr_info info;
	int job = device_open(&info), err;

	if (job < 0)
		return job;
	close(job);
	err = lazy_check_host(&info);
	if (err && t->options->lazy)
		return err;
	report_clear();
	t->late = !err && !t->options->lazy;
	uname(&here);
	memcpy(hello.magic, LINK_MAGIC, sizeof(hello.magic));
	hello.xstate_size = info.xstate_size;
	snprintf(hello.machine, sizeof(hello.machine), "%.63s", here.machine);
	snprintf(hello.kernel, sizeof(hello.kernel), "%.63s", here.release);
	snprintf(hello.spool, sizeof(hello.spool), "%s", spool_path());
	return link_send(&source, LINK_HELLO, &hello, sizeof(hello));
}

/* ---- images ------------------------------------------------------------------------------ */

static int open_image(struct target *t)
{
	if (t->file >= 0 || t->nr_images > PRECOPY_MAX_ROUNDS)
		return report_fail(-EPROTO, "the source sends an image at a wrong moment");
	t->file = spool_create(t->nr_images);
	if (t->file < 0)
		return t->file;
	t->nr_images++;
	return 0;
}

static int store(struct target *t, size_t length)
{
	size_t done = 0;

	if (t->file < 0)
		return report_fail(-EPROTO, "the source sends data of no image");
	while (done < length) {
		ssize_t n = write(t->file, t->data + done, length - done);

		if (n < 0 && errno != EINTR)
			return report_errno(-errno, "%s (see --spool)", spool_path());
		done += n > 0 ? n : 0;
	}
	return 0;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The connection for pages has been made before the first image was. */
static int take_joined(struct target *t)
{
	t->pages = join_take(t->listener);
	close_one(&t->listener);
	return t->pages < 0 ? t->pages : 0;
}

static int start_restart(struct target *t, struct held *h, bool check)
{
	return held_start(h, &(struct held_work) {
		.options = t->options, .file = check ? spool_image(0) : NULL, .check = check,
		.lazy = t->late || t->options->lazy, .pages_fd = t->pages,
	});
}

/* Could it be restarted here?  Better known before everything is stopped. */
static int check_first(struct target *t)
{
	struct held check;
	struct link_failure failure;
	int err = t->options->lazy ? take_joined(t) : 0, status;
	enum held_state state;

	if (!err)
		err = start_restart(t, &check, true);
	if (err)
		return err;
	state = held_listen(&check, &failure);
	status = held_end(&check);
	if (state == HELD_FAILED)
		return report_fail(failure.code > 0 ? -failure.code : -EIO, "%s", failure.text);
	return status ? report_fail(-EIO, "cr_restart --check has failed") : 0;
}

/* Later, its start would cost the stopped processes time. */
static int start_early(struct target *t)
{
	int err = start_restart(t, &t->held, false);

	/* Whoever is at the other end is to hear when cr_restart has ended. */
	close_one(&t->pages);
	return err;
}

static int complete(struct target *t)
{
	int err = 0;

	if (t->file < 0)
		return report_fail(-EPROTO, "the source ends no image");
	if (t->late)
		err = arrival_verify(&t->arrival, t->file, spool_image(t->nr_images - 1));
	else if (close(t->file))
		err = report_errno(-errno, "cannot write %s", spool_image(t->nr_images - 1));
	t->file = -1;
	if (!err && t->nr_images == 1)
		err = check_first(t) ?: start_early(t);
	return err ? err : link_send(&source, LINK_STORED, NULL, 0);
}

/* One message, before the restart.  1: it is time for that, 0, or -errno. */
static int take_message(struct target *t, const struct link_head *head)
{
	int err = link_read(&source, t->data, head->length);

	if (err)
		return err;
	switch (head->type) {
	case LINK_IMAGE:
		return open_image(t);
	case LINK_DATA:
		return store(t, head->length);
	case LINK_END:
		return complete(t);
	case LINK_RESTART:
		return t->nr_images && t->file < 0 ? 1 :
			report_fail(-EPROTO, "the source wants a restart without an image");
	case LINK_ABORT:
		return -ECANCELED;
	default:
		return report_fail(-EPROTO, "the source sends something unexpected (%u)", head->type);
	}
}

static int take_images(struct target *t)
{
	int result = 0;

	while (!result) {
		struct link_head head;

		result = link_receive(&source, &head);
		if (!result)
			result = take_message(t, &head);
	}
	return result < 0 ? result : 0;
}

/* ---- restart ----------------------------------------------------------------------------- */

static int hold(struct target *t)
{
	struct link_failure failure;

	held_name(&t->held, spool_image(t->nr_images - 1));
	switch (held_listen(&t->held, &failure)) {
	case HELD_READY:
		return arrival_finish(&t->arrival);
	case HELD_FAILED:
		/* It is not the connection to us that is lost (say_failed()). */
		if (failure.code <= 0 || failure.code == ECONNRESET)
			failure.code = EIO;
		return report_fail(-failure.code, "%s", failure.text);
	default:
		return report_fail(-ECHILD, "cr_restart has ended before the processes were restored");
	}
}

/* Images that lack pages are of no use. */
static int keep_images(const struct target *t, const char *why)
{
	if (t->options->lazy) {
		report_warn("%s: the processes were not started here", why);
		return -ECONNRESET;
	}
	report_warn("%s: the processes were not started here.  Unless they run where they were, restart "
		    "them: cr_restart %s; else remove %s", why, spool_image(t->nr_images - 1),
		    spool_path());
	return -ECONNRESET;
}

/*
 * All is restored.  Waits until the source has ended its own processes; -ECANCELED: it has
 * not, and will not.  If we are ended meanwhile the images stay.
 */
static int await_go(const struct target *t)
{
	struct link_head head;
	int err;

	spool_keep(!t->options->lazy);
	err = link_send(&source, LINK_HELD, NULL, 0);
	if (!err)
		err = link_receive(&source, &head);
	if (!err && head.type == LINK_GO)
		return 0;
	if (err || head.type != LINK_ABORT)
		return keep_images(t, "the connection to the source is lost");
	spool_keep(false);
	return -ECANCELED;
}

/* They run, and their memory comes from the images.  Has all of it come?  Else these are to stay. */
static bool await_loaded(struct target *t)
{
	struct link_failure failure;

	if (held_listen(&t->held, &failure) == HELD_LOADED)
		return true;
	report_warn("cr_restart has ended before all memory was loaded, so that the processes have been ended, "
		    "too.  As they were when they came here they can be restarted: cr_restart %s; else "
		    "remove %s", spool_image(t->nr_images - 1), spool_path());
	return false;
}

/* Now this is the only copy.  If cr_restart has been killed, the images are. */
static int let_go(struct target *t)
{
	struct pollfd held = { .fd = t->held.fd, .events = POLLIN };
	struct link_failure failure;
	enum held_state state;

	if (poll(&held, 1, 0) > 0) {
		say_failed(report_fail(-ECHILD, "cr_restart has ended"));
		return keep_images(t, "cr_restart has ended");
	}
	/* Before the program can write to the same descriptor. */
	link_send(&source, LINK_RUNNING, NULL, 0);
	held_let_go(&t->held);
	state = held_listen(&t->held, &failure);
	if (state != HELD_RUNNING)
		return keep_images(t, state == HELD_FAILED ? failure.text : "cr_restart has ended");
	if (t->late && !await_loaded(t))
		return 0;
	spool_keep(false);
	spool_remove();
	return 0;
}

int migrate_to(const struct target_options *o, int *status)
{
	static struct target t;
	int err = spool_make(o->spool);

	t = (struct target){ .options = o, .file = -1, .held.fd = -1, .listener = -1, .pages = -1 };
	if (!err && o->lazy)
		err = t.listener = join_listen();
	if (err >= 0)
		err = say_hello(&t);
	if (!err)
		err = take_images(&t);
	if (!err)
		err = hold(&t);
	if (err && err != -ECONNRESET && err != -ECANCELED)
		say_failed(err);
	if (!err)
		err = await_go(&t);
	if (!err)
		err = let_go(&t);
	arrival_finish(&t.arrival);
	*status = held_end(&t.held);
	close_one(&t.pages);
	spool_remove();
	return err;
}
