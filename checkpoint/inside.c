// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint of a program in a container, see inside.h.
 *
 * What is to be found outside is opened before: the device, and the destination's folder,
 * which becomes the child's working folder, so that the destination is a name there.  What
 * names other files outside is refused.  The child looks up no users or groups, as the
 * C library would take the container's files, and code, for that.
 *
 * A container ends with its process 1, and all that is in it, the child included, is
 * killed.  So the child says when the file has its name, and its end by SIGKILL after that
 * is no failure if the program has ended as well.  Process 1 itself gets no SIGKILL from
 * inside: the parent sends it, while the programs are still stopped.
 */
#include "checkpoint/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "image/place.h"
#include "proc/container.h"
#include "proc/handle.h"
#include "report/report.h"

#define END_MS	30000			/* for a program that was killed */

typedef int run_function(const struct checkpoint_options *, struct checkpoint_result *);
typedef void obstacle_function(void *, const char *);

/* What the child leaves, in memory that it shares with its parent. */
struct outcome {
	union {
		struct checkpoint_result result;
		struct checkpoint_estimate estimate;
	};
	int err;
	char message[2048];
};

struct inside {
	const struct checkpoint_options *options;
	struct container container;
	struct place place;		/* the destination; its folder is -1: a descriptor */
	int parent;			/* a pidfd of the parent of whoever uses it */
	int pipe[2];			/* the child says what the parent is to know meanwhile */
	struct outcome *outcome;
};

static bool kills_init(const struct inside *i)
{
	return i->container.inner == 1 && i->options->signal == SIGKILL;
}

/* ---- before ---------------------------------------------------------------------------- */

static int refuse_name(const char *option)
{
	return report_fail(-EINVAL, "%s names a file outside of the program's container: leave it "
			   "out, or run cr_checkpoint inside (cr_checkpoint(1), CONTAINERS)", option);
}

static int check_options(const struct checkpoint_options *o)
{
	if (o->parent)
		return refuse_name("--incremental=FILE");
	if (o->chain_path)
		return refuse_name("--chain-path");
	if (o->parent_folder)
		return refuse_name("--parent-folder");
	if (o->backup)
		return refuse_name("--backup=NAME");
	return 0;
}

static int prepare(struct inside *i)
{
	int err = check_options(i->options);

	if (!err)
		err = device_pin();
	if (!err && i->options->path)
		err = place_find(&i->place, i->options->path, true);
	if (err)
		return err;
	i->parent = handle_open(getpid());
	if (i->parent < 0)
		return report_errno(i->parent, "cannot enter the container");
	if (pipe2(i->pipe, O_CLOEXEC))
		return report_errno(-errno, "cannot enter the container");
	i->outcome = mmap(NULL, sizeof(*i->outcome), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (i->outcome == MAP_FAILED)
		return report_errno(-errno, "cannot enter the container");
	if (i->container.inner == 1)
		report_warn("process %d is the init of its container, PID 1 there, and only an init can "
			    "have that PID: it is to be restarted with new IDs (cr_restart "
			    "--no-restore-pid)", i->options->target);
	return 0;
}

static int enter(const struct inside *i)
{
	pid_t pid = i->options->target;
	int err = container_enter(&i->container);

	if (err == -EPERM)
		return report_fail(err, "process %d is in a container that you may not enter: save it "
				   "as user %u, as root if it has no user namespace of its own, or run "
				   "cr_checkpoint inside (cr_checkpoint(1), CONTAINERS)", pid,
				   i->container.uid);
	return err ? report_errno(err, "cannot enter the container of process %d", pid) : 0;
}

/* ---- the child ------------------------------------------------------------------------- */

/* A byte, when the file has its name; waits for the end if that is the parent's to bring about. */
static void say_committed(void *arg)
{
	const struct inside *i = arg;

	if (write(i->pipe[1], "", 1) == 1 && kills_init(i))
		pause();
}

/* One more reason why the program cannot be saved. */
static void say_obstacle(void *arg, const char *message)
{
	const struct inside *i = arg;

	if (write(i->pipe[1], message, strlen(message) + 1) < 0)
		_exit(1);
}

/* Ends with its parent from now on: by SIGTERM, which removes what is unfinished. */
static void end_with_parent(const struct inside *i)
{
	const struct container parent = { .process = i->parent };
	struct sigaction term;
	bool ignored = !sigaction(SIGTERM, NULL, &term) && term.sa_handler == SIG_IGN;

	prctl(PR_SET_PDEATHSIG, ignored ? SIGKILL : SIGTERM);
	if (container_has_ended(&parent, 0))
		_exit(1);
}

static void begin_child(struct inside *i, struct checkpoint_options *o)
{
	end_with_parent(i);
	*o = *i->options;
	o->target = i->container.inner;
	o->namespaces = i->container.namespaces;
	o->progress = NULL;
}

static void end_child(const struct inside *i, int err)
{
	i->outcome->err = err;
	snprintf(i->outcome->message, sizeof(i->outcome->message), "%s",
		 err ? report_message() ?: strerror(-err) : "");
	fflush(NULL);
	_exit(0);
}

static void save(struct inside *i, run_function *run)
{
	struct checkpoint_options o;
	int err = 0;

	begin_child(i, &o);
	o.committed = say_committed;
	o.committed_arg = i;
	if (o.path) {
		o.path = i->place.name;
		err = fchdir(i->place.folder) ? -errno : 0;
	}
	err = err ? report_errno(err, "the folder of %s", i->options->path) :
		    run(&o, &i->outcome->result);
	end_child(i, err);
}

static void examine(struct inside *i, bool stop)
{
	struct checkpoint_options o;

	begin_child(i, &o);
	end_child(i, checkpoint_examine(&o, stop, say_obstacle, i, &i->outcome->estimate));
}

/* ---- the parent ------------------------------------------------------------------------ */

/* Until the child has ended: was the file complete before? */
static bool wait_committed(const struct inside *i)
{
	bool committed = false;
	char byte;
	ssize_t n;

	while ((n = read(i->pipe[0], &byte, 1)) > 0 || (n < 0 && errno == EINTR)) {
		committed |= n > 0;
		if (n > 0 && kills_init(i))
			handle_signal(i->container.process, SIGKILL);
	}
	return committed;
}

/* The child's own outcome, or -EINTR without a message: it did not come to its end. */
static int collect(const struct inside *i, pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return -EINTR;
	return i->outcome->err ? report_fail(i->outcome->err, "%s", i->outcome->message) : 0;
}

/*
 * In a process between the two, as only what is forked after it has entered is in the PID
 * namespace, and the parent is to stay where it is.  Returns in the child.
 */
static void enter_and_fork(struct inside *i)
{
	int err, status;
	pid_t child;

	close(i->pipe[0]);
	err = enter(i);
	/* Another user namespace may have cleared what was asked for before. */
	end_with_parent(i);
	close(i->parent);
	i->parent = err ? -1 : handle_open(getpid());
	if (!err && i->parent < 0)
		err = report_errno(i->parent, "cannot enter the container");
	child = err ? -1 : fork();
	if (!child)
		return;
	if (child < 0)
		end_child(i, err ?: report_errno(-errno, "cannot enter the container"));
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* The PID of what is to be waited for, 0 in the child, or -errno with a message. */
static pid_t begin(struct inside *i)
{
	int err = prepare(i);
	pid_t child;

	if (err)
		return err;
	fflush(NULL);
	child = fork();
	if (child < 0)
		return report_errno(-errno, "cannot enter the container");
	if (!child) {
		enter_and_fork(i);
		return 0;
	}
	close(i->pipe[1]);
	i->pipe[1] = -1;
	return child;
}

static int save_in_child(struct inside *i, struct checkpoint_result *result, run_function *run)
{
	pid_t child = begin(i);
	bool committed;
	int err;

	if (child < 0)
		return child;
	if (!child)
		save(i, run);
	committed = wait_committed(i);
	err = collect(i, child);
	*result = i->outcome->result;
	if (err != -EINTR || report_message())
		return err;
	if (committed && container_has_ended(&i->container, END_MS))
		return 0;
	return report_fail(err, "cr_checkpoint was ended in the container of process %d%s",
			   i->options->target,
			   committed ? ", after the file was complete: look whether the program runs" :
			   "");
}

static int examine_in_child(struct inside *i, bool stop, obstacle_function *obstacle, void *arg)
{
	pid_t child = begin(i);
	char *line = NULL;
	size_t size = 0;
	FILE *said;
	int err;

	if (child < 0)
		return child;
	if (!child)
		examine(i, stop);
	said = fdopen(i->pipe[0], "r");
	while (said && getdelim(&line, &size, '\0', said) > 0)
		obstacle(arg, line);
	free(line);
	if (said) {
		fclose(said);
		i->pipe[0] = -1;
	}
	err = collect(i, child);
	return err == -EINTR ? report_errno(err, "the container of process %d", i->options->target) : err;
}

static void clean_up(struct inside *i)
{
	container_forget(&i->container);
	place_close(&i->place);
	if (i->parent >= 0)
		close(i->parent);
	for (int end = 0; end < 2; end++)
		if (i->pipe[end] >= 0)
			close(i->pipe[end]);
	if (i->outcome && i->outcome != MAP_FAILED)
		munmap(i->outcome, sizeof(*i->outcome));
}

/* Is the target in other namespaces than we?  Why nothing is to be seen of it others say. */
static bool is_in_container(struct inside *i, const struct checkpoint_options *options)
{
	*i = (struct inside){
		.options = options, .place.folder = -1, .parent = -1, .pipe = { -1, -1 },
	};
	if (container_find(options->target, &i->container))
		return false;
	if (i->container.namespaces)
		return true;
	container_forget(&i->container);
	return false;
}

int inside_run(const struct checkpoint_options *options, struct checkpoint_result *result,
	       run_function *run)
{
	struct inside i;
	int err;

	if (!is_in_container(&i, options))
		return run(options, result);
	err = save_in_child(&i, result, run);
	clean_up(&i);
	return err;
}

int inside_examine(const struct checkpoint_options *options, bool stop,
		   obstacle_function *obstacle, void *arg, struct checkpoint_estimate *out)
{
	struct inside i;
	int err;

	*out = (struct checkpoint_estimate){};
	if (!is_in_container(&i, options))
		return checkpoint_examine(options, stop, obstacle, arg, out);
	err = examine_in_child(&i, stop, obstacle, arg);
	if (i.outcome && i.outcome != MAP_FAILED)
		*out = i.outcome->estimate;
	clean_up(&i);
	return err;
}
