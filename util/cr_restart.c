// SPDX-License-Identifier: GPL-2.0
/*
 * cr_restart: restores running processes from a context file, then stands for
 * them: passes signals on and ends as the program ends.  Arguments and the
 * order of steps only; the work is done in restart/.  See cr_restart(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "image/context.h"
#include "proc/clock.h"
#include "proc/signal_name.h"
#include "report/report.h"
#include "restart/elsewhere.h"
#include "restart/restart.h"
#include "util/choices.h"
#include "util/follow.h"
#include "util/foreground.h"
#include "util/hooks.h"
#include "util/join.h"
#include "util/mpi_job.h"
#include "util/pid_namespace.h"
#include "util/redirect.h"
#include "util/relocate.h"
#include "util/restart_file.h"
#include "util/restart_hold.h"
#include "util/restarted.h"
#include "util/status.h"
#include "util/usage.h"

#define EXIT_USAGE	255

struct arguments {
	const char *file;
	int fd;				/* -F, else -1 */
	int pages_fd;			/* to who has the pages that a partial file lacks, else -1 */
	bool json;
	const char *chain_path;		/* NULL: none */
	pid_t inside;			/* a process in the container; 0: none */
	bool pid_namespace;
	struct restart_options restart;
};

enum {
	OPT_RUN = 256, OPT_STOP, OPT_TERM, OPT_ABORT, OPT_KILL, OPT_CONT, OPT_OMIT,
	OPT_RELOCATE, OPT_REDIRECT, OPT_STRICT, OPT_CHAIN_PATH, OPT_TRUST, OPT_CHECK, OPT_LAZY, OPT_NO_LAZY,
	OPT_INSIDE, OPT_PID_NAMESPACE,
	OPT_KEEP, OPT_KMSG, OPT_JSON,
	OPT_VERSION, OPT_STATUS_FD, OPT_REQUESTER, OPT_HOLD_FD, OPT_PAGES_FD,
	OPT_PID, OPT_NO_PID, OPT_PGID, OPT_NO_PGID, OPT_SID, OPT_NO_SID,
	OPT_HOOK,			/* + enum hook; last */
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "quiet", no_argument, NULL, 'q' },
	{ "file", required_argument, NULL, 'f' },
	{ "fd", required_argument, NULL, 'F' },
	{ "signal", required_argument, NULL, 'S' },
	{ "run", no_argument, NULL, OPT_RUN },
	{ "stop", no_argument, NULL, OPT_STOP },
	{ "freeze", no_argument, NULL, OPT_STOP },
	{ "term", no_argument, NULL, OPT_TERM },
	{ "abort", no_argument, NULL, OPT_ABORT },
	{ "kill", no_argument, NULL, OPT_KILL },
	{ "cont", no_argument, NULL, OPT_CONT },
	{ "omit-maybe", no_argument, NULL, OPT_OMIT },
	{ "omit-always", no_argument, NULL, OPT_OMIT },
	{ "omit-never", no_argument, NULL, OPT_OMIT },
	{ "relocate", required_argument, NULL, OPT_RELOCATE },
	{ "redirect", required_argument, NULL, OPT_REDIRECT },
	{ "strict-files", no_argument, NULL, OPT_STRICT },
	{ "chain-path", required_argument, NULL, OPT_CHAIN_PATH },
	{ "trust", no_argument, NULL, OPT_TRUST },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "lazy", no_argument, NULL, OPT_LAZY },
	{ "no-lazy", no_argument, NULL, OPT_NO_LAZY },
	{ "inside", required_argument, NULL, OPT_INSIDE },
	{ "pid-namespace", no_argument, NULL, OPT_PID_NAMESPACE },
	{ "keep-monotonic", optional_argument, NULL, OPT_KEEP },
	{ "restore-pid", no_argument, NULL, OPT_PID },
	{ "no-restore-pid", no_argument, NULL, OPT_NO_PID },
	{ "restore-pgid", no_argument, NULL, OPT_PGID },
	{ "no-restore-pgid", no_argument, NULL, OPT_NO_PGID },
	{ "restore-sid", no_argument, NULL, OPT_SID },
	{ "no-restore-sid", no_argument, NULL, OPT_NO_SID },
	{ "kmsg-none", no_argument, NULL, OPT_KMSG },
	{ "kmsg-error", no_argument, NULL, OPT_KMSG },
	{ "kmsg-warning", no_argument, NULL, OPT_KMSG },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "status-fd", required_argument, NULL, OPT_STATUS_FD },
	{ "requester", required_argument, NULL, OPT_REQUESTER },
	{ "hold-fd", required_argument, NULL, OPT_HOLD_FD },
	{ "pages-fd", required_argument, NULL, OPT_PAGES_FD },
	{ "run-on-success", required_argument, NULL, OPT_HOOK + HOOK_SUCCESS },
	{ "run-on-fail-args", required_argument, NULL, OPT_HOOK + HOOK_FAIL_ARGS },
	{ "run-on-fail-temp", required_argument, NULL, OPT_HOOK + HOOK_FAIL_TEMP },
	{ "run-on-fail-env", required_argument, NULL, OPT_HOOK + HOOK_FAIL_ENV },
	{ "run-on-fail-perm", required_argument, NULL, OPT_HOOK + HOOK_FAIL_PERM },
	{ "run-on-failure", required_argument, NULL, OPT_HOOK + HOOK_FAILURE },
	{}
};

static void usage(FILE *out)
{
	fputs("Usage: cr_restart [options] FILE\n"
	      "       cr_restart DIR [options of mpirun]\n"
	      "Restart processes from a context file made by cr_checkpoint, or an MPI job from\n"
	      "the folder of its snapshot.\n\n"
	      "  -f, --file FILE          the context file (as the argument; -: standard input)\n"
	      "  -F, --fd N               read it from descriptor N (a pipe or socket will do)\n"
	      "  -S, --signal N           send signal N to every process first\n"
	      "      --run                let them run (default)\n"
	      "      --stop, --freeze     leave them stopped (SIGSTOP)\n"
	      "      --term --abort --kill --cont   send that signal first\n"
	      "      --relocate OLD=NEW   look for saved paths below OLD under NEW\n"
	      "      --redirect [PID:]FD=FILE   FILE instead of a regular file\n"
	      "      --strict-files       fail if an open file has changed\n"
	      "      --chain-path DIR     the older files of an increment may also be there\n"
	      "      --trust              as root: whoever may have written the file\n"
	      "      --[no-]lazy          run them at once and load large memory meanwhile\n"
	      "      --check              only look whether it could be restarted here\n"
	      "      --inside PID         in the container that process PID is in\n"
	      "      --pid-namespace      with a PID namespace of its own, where all IDs are free\n"
	      "      --keep-monotonic[=yes|no|auto]   clocks that count from boot go on at their\n"
	      "                           old values (default: auto, where that is possible)\n"
	      "      --[no-]restore-pid   old process IDs (default: yes)\n"
	      "      --[no-]restore-pgid  old process groups also where the leader is not saved\n"
	      "      --[no-]restore-sid   old sessions likewise\n"
	      "      --run-on-success=CMD and --run-on-{fail-args,fail-temp,fail-env,\n"
	      "                           fail-perm,failure}=CMD: shell command for the outcome\n"
	      "      --json               print what was done as one JSON line\n"
	      "      --omit-{maybe,always,never}, --kmsg-{none,error,warning}\n"
	      "                           accepted for scripts written for BLCR\n"
	      "  -q, --quiet              no warnings\n"
	      "  -?, -h, --help           this text\n"
	      "  -v, --version            version\n\n"
	      "It ends as the restarted program ends; if the restart fails, with an error number.\n",
	      out);
}

/* Runs the hook of a failure, whose status replaces ours if it is not zero. */
static int fail(enum hook class, int err)
{
	int status = hook_run(class);

	if (restart_hold_is_open()) {
		restart_hold_failed(err);
		return report_exit_code(err);
	}
	if (status > 0)
		return status;
	if (err != -EXIT_USAGE)		/* printed already, and not an errno */
		report_print(err);
	return report_exit_code(err);
}

static int bad_usage(void)
{
	fputs("Try 'cr_restart --help'.\n", stderr);
	status_done(EINVAL, 0);
	return EXIT_USAGE;
}

static int parse_number(const char *text, int *out)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0 || n > 1 << 20)
		return -EINVAL;
	*out = (int)n;
	return 0;
}

/* Options for process, group and session IDs; false: none of them. */
static bool parse_ids(int option, struct restart_options *o)
{
	switch (option) {
	case OPT_PID:
	case OPT_NO_PID:
		o->restore_pid = option == OPT_PID;
		return true;
	case OPT_PGID:
	case OPT_NO_PGID:
		o->restore_pgid = option == OPT_PGID;
		return true;
	case OPT_SID:
	case OPT_NO_SID:
		o->restore_sid = option == OPT_SID;
		return true;
	default:
		return false;
	}
}

/* Options that choose the signal; false: none of them. */
static bool parse_signal(int option, struct restart_options *o)
{
	static const int signals[] = {
		[OPT_RUN - OPT_RUN] = 0,	[OPT_STOP - OPT_RUN] = SIGSTOP,
		[OPT_TERM - OPT_RUN] = SIGTERM,	[OPT_ABORT - OPT_RUN] = SIGABRT,
		[OPT_KILL - OPT_RUN] = SIGKILL,	[OPT_CONT - OPT_RUN] = SIGCONT,
	};

	if (option < OPT_RUN || option > OPT_CONT)
		return false;
	o->signal = signals[option - OPT_RUN];
	return true;
}

/* NULL: yes. */
static int parse_clocks(const char *text, enum restart_clocks *out)
{
	static const char *const names[] = {
		[RESTART_CLOCKS_AUTO] = "auto", [RESTART_CLOCKS_KEPT] = "yes",
		[RESTART_CLOCKS_NEW] = "no",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(text ?: "yes", names[i])) {
			*out = i;
			return 0;
		}
	}
	return report_fail(-EINVAL, "--keep-monotonic is yes, no or auto, not \"%s\"", text);
}

/* The context file; "-": standard input. */
static void name_file(const char *name, struct arguments *a)
{
	if (!strcmp(name, "-"))
		a->fd = STDIN_FILENO;
	else
		a->file = name;
}

/* One option: 0, or -errno with a message. */
static int parse_one(int option, const char *value, struct arguments *a)
{
	if (parse_ids(option, &a->restart) || parse_signal(option, &a->restart))
		return 0;
	if (option >= OPT_HOOK) {
		hook_set(option - OPT_HOOK, value);
		return 0;
	}
	switch (option) {
	case 'f':
		name_file(value, a);
		return 0;
	case 'F':
		if (parse_number(value, &a->fd))
			return report_fail(-EINVAL, "-F needs an open file descriptor, not \"%s\"",
					   value);
		return 0;
	case 'S':
		a->restart.signal = signal_number(value);
		if (a->restart.signal < 0)
			return report_fail(-EINVAL, "\"%s\" is not a signal", value);
		return 0;
	case 'q':
		report_set_level(-1);
		return 0;
	case OPT_RELOCATE:
		a->restart.relocate = relocate_path;
		return relocate_add(value);
	case OPT_REDIRECT:
		return redirect_add(value);
	case OPT_STRICT:
		a->restart.strict_files = true;
		return 0;
	case OPT_CHAIN_PATH:
		a->chain_path = value;
		return 0;
	case OPT_TRUST:
		a->restart.trust = true;
		return 0;
	case OPT_CHECK:
		a->restart.check_only = true;
		return 0;
	case OPT_LAZY:
	case OPT_NO_LAZY:
		a->restart.lazy = option == OPT_LAZY;
		return 0;
	case OPT_INSIDE:
		a->inside = choice_number(value, 1);
		return a->inside > 0 ? 0 : report_fail(-EINVAL, "--inside needs the PID of a process, "
						       "not \"%s\"", value);
	case OPT_PID_NAMESPACE:
		a->pid_namespace = true;
		return 0;
	case OPT_KEEP:
		return parse_clocks(value, &a->restart.clocks);
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_STATUS_FD:
		return status_open(value);
	case OPT_REQUESTER:
		a->restart.requester = choice_number(value, 1);
		return a->restart.requester > 0 ? 0 : report_fail(-EINVAL, "--requester needs a process ID, "
								  "not \"%s\"", value);
	case OPT_HOLD_FD:
		return restart_hold_open(value);
	case OPT_PAGES_FD:
		if (parse_number(value, &a->pages_fd) || fcntl(a->pages_fd, F_SETFD, FD_CLOEXEC))
			return report_fail(-EINVAL, "--pages-fd needs an open file descriptor, not "
					   "\"%s\"", value);
		return 0;
	default:			/* OPT_OMIT, OPT_KMSG */
		return 0;
	}
}

static bool has_command(void)
{
	for (enum hook hook = 0; hook < HOOK_COUNT; hook++)
		if (hook_is_set(hook))
			return true;
	return false;
}

/* What options mean together.  0 or -errno with a message. */
static int check_together(const struct arguments *a)
{
	if (a->inside && has_command())
		return report_fail(-EINVAL, "--run-on-* would be run in the container: leave it out with "
				   "--inside");
	if (a->pages_fd >= 0 && !a->restart.lazy)
		return report_fail(-EINVAL, "--pages-fd is for --lazy");
	if (!a->pid_namespace)
		return 0;
	if (a->inside)
		return report_fail(-EINVAL, "choose one of --inside and --pid-namespace: the container "
				   "has its own IDs");
	if (!a->restart.restore_pid)
		return report_fail(-EINVAL, "--pid-namespace is for the old IDs: leave --no-restore-pid "
				   "out, or --pid-namespace");
	if (restart_hold_is_open())
		return report_fail(-EINVAL, "--pid-namespace does not go with --hold-fd: cr_migrate moves "
				   "programs without it");
	return 0;
}

/* Returns -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct arguments *a)
{
	int option;

	while ((option = getopt_long(argc, argv, "?hqvf:F:S:", long_options, NULL)) != -1) {
		if (usage_is_wanted(option, argv)) {
			usage(stdout);
			return 0;
		}
		if (option == OPT_VERSION || option == 'v') {
			puts("cr_restart (KCR) " KCR_VERSION);
			return 0;
		}
		if (option == '?')
			return fail(HOOK_FAIL_ARGS, -bad_usage());
		if (parse_one(option, optarg, a)) {
			report_print(-EINVAL);
			report_clear();
			return fail(HOOK_FAIL_ARGS, -bad_usage());
		}
	}
	if (check_together(a)) {
		report_print(-EINVAL);
		report_clear();
		return bad_usage();
	}
	if (optind < argc && !a->file && a->fd < 0)
		name_file(argv[optind++], a);
	if (optind < argc || (a->file && a->fd >= 0) ||
	    (!a->file && a->fd < 0 && !restart_hold_is_open())) {
		report_fail(-EINVAL, "name one context file, or a descriptor with -F");
		report_print(-EINVAL);
		report_clear();
		return fail(HOOK_FAIL_ARGS, -bad_usage());
	}
	return -1;
}

/*
 * Reads, rebuilds, lets run.  The file is closed in any case.  0; PID_NAMESPACE_OUTSIDE:
 * another process has done it, and is the program's parent; or -errno.
 */
static int restart(const struct arguments *a, int fd, struct restart_result *result)
{
	struct restart_options options = a->restart;
	struct context_reader *reader;
	struct context *context = NULL;
	struct chain *chain = NULL;
	struct join join;
	struct pid_namespace own;
	const char *name = a->file ?: "the descriptor given";
	uint64_t start = now_ns(), loaded;
	int err = a->pages_fd < 0 ? context_reader_new(&reader, fd, name) :
				    context_reader_new_partial(&reader, fd, name);

	if (err)
		return err;
	options.redirect = redirect_rules(&options.nr_redirects);
	/* In a PID namespace the parent is another process, which stays: see stand_for(). */
	options.leaves = !a->pid_namespace && (status_is_open() || hook_is_set(HOOK_SUCCESS));
	err = context_load(reader, &context);
	if (!err && context->preamble->n_ancestor)
		err = chain_open(&chain, context->preamble, name, fd, a->chain_path);
	options.chain = chain;
	if (a->inside) {
		join = (struct join){ a->inside, context };
		options.join = join_container;
		options.join_arg = &join;
	} else if (a->pid_namespace) {
		own = (struct pid_namespace){ context, options.commit, hook_is_set(HOOK_SUCCESS),
					      options.check_only, result };
		options.join = pid_namespace_enter;
		options.join_arg = &own;
		options.own_pids = true;
		options.commit = pid_namespace_commit;
	}
	loaded = now_ns();
	if (!err)
		err = restart_run(reader, context, &options, result);
	result->load_ns = loaded - start;
	chain_free(chain);
	context_free(context);
	context_reader_free(reader);
	return err;
}

/* The program is about to run, and gets our terminal if it had one. */
static int commit(pid_t leader, pid_t foreground)
{
	int err = restart_hold_wait();

	if (err)
		return err;
	follow_commit();
	if (!status_is_open() && !hook_is_set(HOOK_SUCCESS))
		foreground_share(leader, foreground);
	return 0;
}

/* Likewise for a rank: the terminal is mpirun's. */
static int commit_rank(pid_t leader, pid_t foreground)
{
	(void)leader;
	(void)foreground;
	follow_commit();
	return 0;
}

/*
 * A rank of an MPI job may be placed on a node where its process and thread IDs are in
 * use, and does not need them.  The ranks of a node have had one clock, and have it again:
 * each in a namespace of its own, they would differ by the times of their restarts.
 */
static int restart_rank(struct arguments *a, int fd, struct restart_result *result)
{
	int err;

	a->restart.any_port = a->restart.any_cpu = true;
	a->restart.clocks = RESTART_CLOCKS_NEW;
	err = restart(a, fd, result);
	if (err != -EBUSY || !a->restart.restore_pid || lseek(fd, 0, SEEK_SET))
		return err;
	report_clear();
	report_warn("process or thread IDs of this rank are in use here: it gets new ones");
	a->restart.restore_pid = false;
	memset(result, 0, sizeof(*result));
	return restart(a, fd, result);
}

/* As the program has ended; its parent may be another process, which reaped it. */
static int end_as(int status)
{
	if (status >= 0)
		follow_mimic(status);
	return 0;
}

/* All memory must be loaded before we end, or another process has seen to it: 0 or an exit code. */
static int finish_loading(struct restart_result *result, bool outside)
{
	int err = outside ? pid_namespace_result() : restart_wait(result->lazy);

	if (!err)
		return 0;
	report_print(err);
	return report_exit_code(err);
}

/*
 * The programs run: follows them, or not if somebody else does.  outside: as
 * PID_NAMESPACE_OUTSIDE.  The exit code.
 */
static int stand_for(struct restart_result *result, bool outside)
{
	int status, code;

	if (status_is_open()) {
		prctl(PR_SET_PDEATHSIG, 0);	/* cr_batch(1) has set it for as long as nothing runs */
		status_done(0, result->leader);
		if (outside) {
			status_close();
			status = pid_namespace_follow(false);
			return finish_loading(result, true) ?: end_as(status);
		}
		follow_end();		/* libcr waits for the program itself */
		return finish_loading(result, false);
	}
	if (hook_is_set(HOOK_SUCCESS)) {
		follow_end();
		status = hook_run(HOOK_SUCCESS);
		return finish_loading(result, outside) ?: status;
	}
	status = outside ? pid_namespace_follow(true) : follow_leader(result->leader);
	code = finish_loading(result, outside);
	return code ? code : end_as(status);
}

static int open_image(const struct arguments *a, bool is_rank)
{
	int fd = restart_file_open(a->file, a->fd, a->restart.trust), err = 0;

	if (fd >= 0 && is_rank)
		err = mpi_job_check_rank();
	if (!err)
		return fd;
	close(fd);
	return err;
}

int main(int argc, char **argv)
{
	struct arguments a = { .fd = -1, .pages_fd = -1, .restart.restore_pid = true };
	struct restart_result result = {};
	char source[4096], *rank_file = NULL;
	uint64_t start = now_ns();
	int code, err, fd;

	report_set_program("cr_restart");
	err = mpi_job_restart(argc, argv, &rank_file);
	if (err < 0)
		return fail(hook_class(err), err);
	code = parse(argc, argv, &a);
	if (code >= 0)
		return code;
	a.file = rank_file ?: a.file;
	if (!a.file && a.fd < 0)
		a.file = restart_hold_file();
	if (!a.file && a.fd < 0)
		return report_exit_code(-ECANCELED);

	fd = open_image(&a, rank_file);
	if (fd < 0) {
		status_done(-fd, 0);
		return fail(HOOK_FAIL_ARGS, fd);
	}
	restart_file_path(fd, source, sizeof(source));
	a.restart.source = source;
	a.restart.commit = rank_file ? commit_rank : commit;
	a.restart.loaded = restart_hold_loaded;
	if (a.pages_fd >= 0 && elsewhere_new(&a.restart.elsewhere, a.pages_fd))
		return fail(HOOK_FAIL_TEMP, report_error());
	follow_begin();
	err = rank_file ? restart_rank(&a, fd, &result) : restart(&a, fd, &result);
	pid_namespace_finish(err, &result, a.restart.check_only);
	close(fd);
	free(rank_file);
	if (err < 0) {
		follow_fail();
		status_done(-err, 0);
		return fail(hook_class(err), err);
	}
	if (a.restart.check_only)
		return 0;
	restart_hold_running();
	if (!result.lazy)
		restart_hold_loaded();
	result.total_ns = now_ns() - start;
	if (a.json)
		restarted_json(&result);
	return stand_for(&result, err == PID_NAMESPACE_OUTSIDE);
}
