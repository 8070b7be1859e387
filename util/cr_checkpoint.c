// SPDX-License-Identifier: GPL-2.0
/*
 * cr_checkpoint: saves running processes to a context file.  Arguments and
 * outcome only; the work is done in checkpoint/.  See cr_checkpoint(1).
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/inside.h"
#include "checkpoint/precopy.h"
#include "proc/signal_name.h"
#include "report/report.h"
#include "util/choices.h"
#include "util/ending.h"
#include "util/mpi_job.h"
#include "util/progress.h"
#include "util/saved.h"
#include "util/status.h"
#include "util/usage.h"

#define EXIT_USAGE	255

struct arguments {
	struct checkpoint_options checkpoint;
	int nr_destinations;
	char path[64];			/* context.ID */
	bool quiet, verbose, json;
	const char *for_increments;	/* an option that needs --incremental, or NULL */
	struct mpi_job_options job;
};

enum {
	OPT_ATOMIC = 256, OPT_BACKUP, OPT_CLOBBER, OPT_NOCLOBBER,
	OPT_RUN, OPT_STOP, OPT_TERM, OPT_ABORT, OPT_KILL, OPT_CONT,
	OPT_SYNC, OPT_NOSYNC,
	OPT_SAVE_EXE, OPT_SAVE_PRIVATE, OPT_SAVE_SHARED, OPT_SAVE_ALL, OPT_SAVE_NONE,
	OPT_PTRACED_ERROR, OPT_PTRACED_SKIP, OPT_PTRACED_ALLOW, OPT_PTRACER_ERROR, OPT_PTRACER_SKIP,
	OPT_KMSG, OPT_SNAPSHOT, OPT_SKIP_UNSUPPORTED, OPT_COMPRESS, OPT_DEDUP, OPT_KEEP, OPT_LOCAL,
	OPT_INCREMENTAL, OPT_CHANGES, OPT_FULL_EVERY, OPT_CHAIN_PATH, OPT_PRECOPY, OPT_JSON, OPT_VERSION,
	OPT_STATUS_FD, OPT_PROHIBIT, OPT_REQUESTER, OPT_HOLD_FD, OPT_PARENT_FOLDER,
	OPT_HOLD_END_FD, OPT_ENDS, OPT_BANDWIDTH,
};

static const struct option long_options[] = {
	{ "tree", no_argument, NULL, 'T' },
	{ "pid", no_argument, NULL, 'p' },
	{ "process", no_argument, NULL, 'p' },
	{ "pgid", no_argument, NULL, 'g' },
	{ "group", no_argument, NULL, 'g' },
	{ "sid", no_argument, NULL, 's' },
	{ "session", no_argument, NULL, 's' },
	{ "cwd", no_argument, NULL, 'c' },
	{ "file", required_argument, NULL, 'f' },
	{ "fd", required_argument, NULL, 'F' },
	{ "atomic", no_argument, NULL, OPT_ATOMIC },
	{ "backup", optional_argument, NULL, OPT_BACKUP },
	{ "clobber", no_argument, NULL, OPT_CLOBBER },
	{ "noclobber", no_argument, NULL, OPT_NOCLOBBER },
	{ "signal", required_argument, NULL, 'S' },
	{ "run", no_argument, NULL, OPT_RUN },
	{ "stop", no_argument, NULL, OPT_STOP },
	{ "term", no_argument, NULL, OPT_TERM },
	{ "abort", no_argument, NULL, OPT_ABORT },
	{ "kill", no_argument, NULL, OPT_KILL },
	{ "cont", no_argument, NULL, OPT_CONT },
	{ "sync", no_argument, NULL, OPT_SYNC },
	{ "nosync", no_argument, NULL, OPT_NOSYNC },
	{ "save-exe", no_argument, NULL, OPT_SAVE_EXE },
	{ "save-private", no_argument, NULL, OPT_SAVE_PRIVATE },
	{ "save-shared", no_argument, NULL, OPT_SAVE_SHARED },
	{ "save-all", no_argument, NULL, OPT_SAVE_ALL },
	{ "save-none", no_argument, NULL, OPT_SAVE_NONE },
	{ "ptraced-error", no_argument, NULL, OPT_PTRACED_ERROR },
	{ "ptraced-skip", no_argument, NULL, OPT_PTRACED_SKIP },
	{ "ptraced-allow", no_argument, NULL, OPT_PTRACED_ALLOW },
	{ "ptracer-error", no_argument, NULL, OPT_PTRACER_ERROR },
	{ "ptracer-skip", no_argument, NULL, OPT_PTRACER_SKIP },
	{ "kmsg-none", no_argument, NULL, OPT_KMSG },
	{ "kmsg-error", no_argument, NULL, OPT_KMSG },
	{ "kmsg-warning", no_argument, NULL, OPT_KMSG },
	{ "snapshot", no_argument, NULL, OPT_SNAPSHOT },
	{ "dedup", no_argument, NULL, OPT_DEDUP },
	{ "skip-unsupported", no_argument, NULL, OPT_SKIP_UNSUPPORTED },
	{ "compress", required_argument, NULL, OPT_COMPRESS },
	{ "bandwidth", required_argument, NULL, OPT_BANDWIDTH },
	{ "precopy", optional_argument, NULL, OPT_PRECOPY },
	{ "incremental", optional_argument, NULL, OPT_INCREMENTAL },
	{ "changes", required_argument, NULL, OPT_CHANGES },
	{ "full-every", required_argument, NULL, OPT_FULL_EVERY },
	{ "chain-path", required_argument, NULL, OPT_CHAIN_PATH },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "local", required_argument, NULL, OPT_LOCAL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "time", required_argument, NULL, 't' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "status-fd", required_argument, NULL, OPT_STATUS_FD },
	{ "prohibit", required_argument, NULL, OPT_PROHIBIT },
	{ "requester", required_argument, NULL, OPT_REQUESTER },
	{ "hold-fd", required_argument, NULL, OPT_HOLD_FD },
	{ "parent-folder", required_argument, NULL, OPT_PARENT_FOLDER },
	{ "hold-end-fd", required_argument, NULL, OPT_HOLD_END_FD },
	{ "ends", no_argument, NULL, OPT_ENDS },
	{}
};

static const char usage_text[] =
	"Usage: cr_checkpoint [options] ID\n"
	"Save running processes to a context file for cr_restart.\n\n"
	"What to save:\n"
	"  -T, --tree               process ID and its descendants (default)\n"
	"  -p, --pid, --process     only process ID\n"
	"  -g, --pgid, --group      process group ID\n"
	"  -s, --sid, --session     session ID\n"
	"Where to:\n"
	"  -c, --cwd                context.ID in this folder (default)\n"
	"  -f, --file FILE          FILE (-: standard output)\n"
	"  -F, --fd N               descriptor N (a pipe or socket will do)\n"
	"If the file exists:\n"
	"      --atomic             replace it once all is written (default)\n"
	"      --backup[=NAME]      rename it to NAME, or FILE.~N~\n"
	"      --clobber            remove it first\n"
	"      --noclobber          fail\n"
	"What the processes do afterwards:\n"
	"      --run                run on (default)\n"
	"  -S, --signal N           get signal N\n"
	"      --stop --term --abort --kill --cont   get that signal\n"
	"How:\n"
	"      --snapshot           let them run while their memory is written\n"
	"      --precopy[=ROUNDS]   before, save it up to ROUNDS times while they run: the file,\n"
	"                           a chain with FILE.1, FILE.2 ..., then holds only the rest\n"
	"      --incremental[=PARENT]   only what has changed since the image that FILE is now,\n"
	"                           which becomes FILE.1, FILE.2 ..., or since PARENT\n"
	"      --changes=HOW        found by dirty (writes are tracked), hash, or auto (default)\n"
	"      --full-every=N       a full image again after N\n"
	"      --chain-path=DIR     the older files of PARENT may also be there\n"
	"      --keep=N             keep N files of this name; older ones are FILE.~1~, ...\n"
	"      --local=FOLDER       of an MPI job: the ranks' files go to FOLDER on their own nodes\n"
	"      --compress=HOW       auto (what is fastest), lz4[:LEVEL], zstd[:LEVEL], none (default)\n"
	"      --bandwidth=RATE     write no more than RATE bytes per second (800K, 100M, 1.5G)\n"
	"      --dedup              equal pages only once\n"
	"      --[no]sync           wait until the disk has it (default) or not\n"
	"      --skip-unsupported   restore what cannot be saved as closed, do not refuse\n"
	"      --save-{exe,private,shared,all,none}   contents of mapped files, too\n"
	"      --ptraced-{error,skip,allow}           processes that are debugged\n"
	"      --ptracer-{error,skip}                 processes that debug others\n"
	"      --kmsg-{none,error,warning}            accepted for scripts written for BLCR\n"
	"  -t, --time SEC           fail if it takes longer\n"
	"  -q, --quiet              no messages\n"
	"  -v, --verbose            more messages\n"
	"      --json               progress and result as JSON lines\n"
	"  -?, -h, --help           this text\n"
	"      --version            version\n";

/* ---- arguments ------------------------------------------------------------------ */

static int bad_usage(void)
{
	if (report_message())
		report_print(-EINVAL);
	fputs("Try 'cr_checkpoint --help'.\n", stderr);
	status_done(EINVAL, 0);
	return EXIT_USAGE;
}

static bool parse_scope(int option, struct arguments *a)
{
	switch (option) {
	case 'T':
		a->checkpoint.scope = CHECKPOINT_TREE;
		return true;
	case 'p':
		a->checkpoint.scope = CHECKPOINT_PROCESS;
		return true;
	case 'g':
		a->checkpoint.scope = CHECKPOINT_GROUP;
		return true;
	case 's':
		a->checkpoint.scope = CHECKPOINT_SESSION;
		return true;
	default:
		return false;
	}
}

/* Destination options, and those for an existing file: 1 (done), 0 (another option) or -errno. */
static int parse_destination(int option, const char *value, struct arguments *a)
{
	struct checkpoint_options *o = &a->checkpoint;

	switch (option) {
	case 'c':
		a->nr_destinations++;
		return 1;
	case 'f':
		a->nr_destinations++;
		if (!strcmp(value, "-"))
			o->fd = STDOUT_FILENO;
		else
			o->path = value;
		return *value ? 1 : report_fail(-EINVAL, "-f needs the name of a file");
	case 'F':
		a->nr_destinations++;
		o->fd = choice_number(value, 0);
		return o->fd >= 0 ? 1 : report_fail(-EINVAL, "-F needs an open file "
						    "descriptor, not \"%s\"", value);
	case OPT_ATOMIC ... OPT_NOCLOBBER:
		o->replace = CHECKPOINT_ATOMIC + (option - OPT_ATOMIC);
		o->backup = option == OPT_BACKUP ? value : NULL;
		return 1;
	default:
		return 0;
	}
}

/* Signal, ptrace and save-* options. */
static bool parse_choice(int option, struct checkpoint_options *o)
{
	static const int signals[] = { 0, SIGSTOP, SIGTERM, SIGABRT, SIGKILL, SIGCONT };
	static const unsigned int save[] = {
		CHECKPOINT_SAVE_EXE, CHECKPOINT_SAVE_PRIVATE, CHECKPOINT_SAVE_SHARED,
		CHECKPOINT_SAVE_EXE | CHECKPOINT_SAVE_PRIVATE | CHECKPOINT_SAVE_SHARED,
	};

	if (option >= OPT_RUN && option <= OPT_CONT)
		o->signal = signals[option - OPT_RUN];
	else if (option >= OPT_SAVE_EXE && option <= OPT_SAVE_ALL)
		o->save |= save[option - OPT_SAVE_EXE];
	else if (option == OPT_SAVE_NONE)
		o->save = 0;
	else if (option >= OPT_PTRACED_ERROR && option <= OPT_PTRACED_ALLOW)
		o->traced = CHECKPOINT_PTRACE_ERROR + (option - OPT_PTRACED_ERROR);
	else if (option >= OPT_PTRACER_ERROR && option <= OPT_PTRACER_SKIP)
		o->tracer = CHECKPOINT_PTRACE_ERROR + (option - OPT_PTRACER_ERROR);
	else if (option == OPT_SYNC || option == OPT_NOSYNC)
		o->sync = option == OPT_SYNC;
	else
		return false;
	return true;
}

/* Options of increments: 1 (done), 0 (another option) or -errno. */
static int parse_increment(int option, const char *value, struct arguments *a)
{
	struct checkpoint_options *o = &a->checkpoint;

	switch (option) {
	case OPT_INCREMENTAL:
		o->incremental = true;
		o->parent = value;
		return !value || *value ? 1 : report_fail(-EINVAL, "--incremental= needs the name of "
							  "a file");
	case OPT_CHANGES:
		a->for_increments = a->for_increments ?: "--changes";
		return choice_changes(value, o) ?: 1;
	case OPT_FULL_EVERY:
		a->for_increments = "--full-every";
		if (choice_number(value, 1) < 0)
			return report_fail(-EINVAL, "--full-every needs a number from 1 on, not \"%s\"",
					   value);
		o->full_every = choice_number(value, 1);
		return 1;
	case OPT_CHAIN_PATH:
		a->for_increments = "--chain-path";
		o->chain_path = value;
		return 1;
	case OPT_PARENT_FOLDER:
		a->for_increments = "--parent-folder";
		o->parent_folder = value;
		return 1;
	case OPT_PRECOPY:
		return choice_rounds("--precopy", value, o) ?: 1;
	default:
		return 0;
	}
}

/* The same for --precopy, which makes a chain, too. */
static int check_precopy(const struct arguments *a)
{
	const struct checkpoint_options *o = &a->checkpoint;

	if (o->incremental)
		return report_fail(-EINVAL, "--precopy begins a chain of its own: leave out --incremental");
	if (a->for_increments && strcmp(a->for_increments, "--changes"))
		return report_fail(-EINVAL, "%s needs --incremental", a->for_increments);
	if (o->fd >= 0)
		return report_fail(-EINVAL, "--precopy makes several files: name one with -f");
	if (o->keep || o->replace == CHECKPOINT_CLOBBER)
		return report_fail(-EINVAL, "--precopy makes a chain, whose files belong together: leave "
				   "out --keep and --clobber");
	return 0;
}

/* Options of increments that do not fit together: 0 or -EINVAL with a message. */
static int check_increment(const struct arguments *a)
{
	const struct checkpoint_options *o = &a->checkpoint;

	if (o->dedup && (o->precopy || o->incremental))
		return report_fail(-EINVAL, "--dedup is for full images: leave out %s",
				   o->precopy ? "--precopy" : "--incremental");
	if (o->precopy)
		return check_precopy(a);
	if (!o->incremental)
		return a->for_increments ? report_fail(-EINVAL, "%s needs --incremental",
						       a->for_increments) : 0;
	if (o->chain_path && !o->parent)
		return report_fail(-EINVAL, "--chain-path is for a parent that is named: a chain under "
				   "one name is in its folder");
	if (o->parent_folder && (o->parent || !o->path))
		return report_fail(-EINVAL, "--parent-folder is for a chain under one name: name the file "
				   "with -f, and no parent");
	return 0;
}

/* The same where the target is no MPI job, whose snapshots stay as they are. */
static int check_chain(const struct checkpoint_options *o)
{
	if (!o->incremental || o->precopy)
		return 0;
	if (o->keep)
		return report_fail(-EINVAL, "--keep removes older files, which increments need: see "
				   "--full-every");
	if (o->parent)
		return o->full_every ? report_fail(-EINVAL, "--full-every is for a chain kept under one "
						   "name: leave out the parent") : 0;
	if (o->fd >= 0)
		return report_fail(-EINVAL, "--incremental to a descriptor needs the name of the parent "
				   "(--incremental=FILE)");
	if (o->replace != CHECKPOINT_ATOMIC)
		return report_fail(-EINVAL, "--incremental keeps the existing file itself: leave out "
				   "--backup, --clobber and --noclobber, or name the parent");
	return 0;
}

/* One option: 0, or -errno with a message. */
static int parse_one(int option, const char *value, struct arguments *a)
{
	struct checkpoint_options *o = &a->checkpoint;
	int done;

	if (parse_scope(option, a) || parse_choice(option, o))
		return 0;
	done = parse_destination(option, value, a) ?: parse_increment(option, value, a);
	if (done)
		return done < 0 ? done : 0;
	switch (option) {
	case 'S':
		o->signal = signal_number(value);
		return o->signal >= 0 ? 0 : report_fail(-EINVAL, "\"%s\" is not a signal", value);
	case 't':
		if (choice_number(value, 0) < 0)
			return report_fail(-EINVAL, "-t needs a number of seconds, not \"%s\"", value);
		o->timeout_s = choice_number(value, 0);
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_SNAPSHOT:
		o->snapshot = true;
		return 0;
	case OPT_DEDUP:
		o->dedup = true;
		return 0;
	case OPT_SKIP_UNSUPPORTED:
		o->skip_unsupported = true;
		return 0;
	case OPT_COMPRESS:
		return choice_compression(value, &o->compression);
	case OPT_BANDWIDTH:
		return choice_bandwidth(value, &o->bandwidth);
	case OPT_KEEP:
		if (choice_number(value, 1) < 0)
			return report_fail(-EINVAL, "--keep needs a number from 1 on, not \"%s\"", value);
		a->job.keep = o->keep = choice_number(value, 1);
		return 0;
	case OPT_LOCAL:
		a->job.local = value;
		return 0;
	case OPT_STATUS_FD:
		return status_open(value);
	case OPT_HOLD_FD:
		return hold_open(value);
	case OPT_ENDS:			/* with --stop: they are killed then */
		o->ends = true;
		return 0;
	case OPT_HOLD_END_FD:
		o->saved = saved_held;
		o->saved_arg = o;
		return hold_end_open(value);
	case OPT_PROHIBIT:
		o->prohibited = choice_number(value, 1);
		return o->prohibited > 0 ? 0 : report_fail(-EINVAL, "--prohibit needs a process "
							   "ID, not \"%s\"", value);
	case OPT_REQUESTER:
		o->requester = choice_number(value, 1);
		return o->requester > 0 ? 0 : report_fail(-EINVAL, "--requester needs a process "
							  "ID, not \"%s\"", value);
	default:			/* OPT_KMSG */
		return 0;
	}
}

/* Of what is written to our standard output nothing else may come, and no terminal shows it. */
static int check_output(const struct arguments *a)
{
	if (a->checkpoint.fd != STDOUT_FILENO)
		return 0;
	if (a->json)
		return report_fail(-EINVAL, "--json and the context file cannot both go to standard "
				   "output: name a file, or another descriptor with -F");
	if (isatty(STDOUT_FILENO))
		return report_fail(-EINVAL, "standard output is a terminal: redirect it");
	return 0;
}

/* The one argument, and what depends on it.  -1 to go on, or the exit code. */
static int parse_target(int argc, char **argv, struct arguments *a)
{
	struct checkpoint_options *o = &a->checkpoint;
	long target;

	if (optind != argc - 1) {
		report_fail(-EINVAL, "name one process, group or session by its ID");
		return bad_usage();
	}
	target = choice_number(argv[optind], 1);
	if (target < 0) {
		report_fail(-EINVAL, "\"%s\" is not the ID of a process, group or session",
			    argv[optind]);
		return bad_usage();
	}
	o->target = target;
	/* The image may be all that is left then. */
	o->ends |= o->signal && o->signal != SIGSTOP && o->signal != SIGCONT;
	o->must_reopen = o->ends;
	if (o->keep && o->replace != CHECKPOINT_ATOMIC)
		report_fail(-EINVAL, "--keep says what becomes of older files: leave --backup, "
			    "--clobber and --noclobber out");
	if (a->nr_destinations > 1)
		report_fail(-EINVAL, "choose one of --cwd, --file and --fd");
	if (report_message() || check_output(a)) {
		report_print(-EINVAL);
		status_done(EINVAL, 0);
		return EINVAL;
	}
	if (check_increment(a))
		return bad_usage();
	if (!o->path && o->fd < 0) {
		snprintf(a->path, sizeof(a->path), "context.%ld", target);
		o->path = a->path;
	}
	return -1;
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct arguments *a)
{
	int option;

	while ((option = getopt_long(argc, argv, "?hTpgscf:F:S:t:qv", long_options, NULL)) != -1) {
		if (usage_is_wanted(option, argv)) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (option == OPT_VERSION) {
			puts("cr_checkpoint (KCR) " KCR_VERSION);
			return 0;
		}
		if (option == '?' || parse_one(option, optarg, a))
			return bad_usage();
	}
	return parse_target(argc, argv, a);
}

/* ---- outcome --------------------------------------------------------------------- */

static int fail(const struct arguments *a, int err)
{
	if (a->json)
		saved_error(err);
	report_print(err);
	status_done(-err, 0);
	return report_exit_code(err);
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.checkpoint = { .scope = CHECKPOINT_TREE, .fd = -1, .sync = true },
		.job = { .keep = 1 },
	};
	struct checkpoint_result result;
	struct progress progress;
	int err;

	report_set_program("cr_checkpoint");
	err = parse(argc, argv, &a);
	if (err >= 0)
		return err;
	report_set_level(a.quiet ? -2 : a.verbose);
	ending_prepare(&(struct ending) {
		.abandon = precopy_abandon, .late = "cr_checkpoint: not done in the time given by --time\n",
		.timeout_s = a.checkpoint.timeout_s, .quiet = a.quiet, .json = a.json,
	});
	progress_init(&progress, a.quiet, a.json);
	a.checkpoint.progress = progress_update;
	a.checkpoint.progress_arg = &progress;
	a.checkpoint.figures = a.json;
	a.checkpoint.round = a.json ? saved_round : NULL;
	a.checkpoint.round_arg = &a.checkpoint;
	a.checkpoint.begun = status_begun;
	a.checkpoint.released = status_released;
	if (mpi_job_checkpoint(&a.checkpoint, &a.job, a.json, &err))
		return err ? fail(&a, err) : 0;
	if (check_chain(&a.checkpoint))
		return bad_usage();
	if (a.job.local)
		return fail(&a, report_fail(-EINVAL, "--local is for MPI jobs: process %d is no "
					    "mpirun that takes requests", a.checkpoint.target));
	err = inside_run(&a.checkpoint, &result,
			 a.checkpoint.precopy ? precopy_to_file : checkpoint_run);
	progress_end(&progress);
	if (!err)
		status_done(0, 0);
	if (err)
		return fail(&a, err);
	if (a.json)
		saved_json(&a.checkpoint, &result);
	saved_tell(&a.checkpoint, &result);
	return 0;
}
