// SPDX-License-Identifier: GPL-2.0
/* The command line of cr_batch. */
#include "batch/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/folder.h"
#include "batch/hold.h"
#include "batch/metrics.h"
#include "image/context.h"
#include "proc/duration.h"
#include "proc/signal_name.h"
#include "report/report.h"
#include "util/choices.h"
#include "util/usage.h"

#define FULL_EVERY	10		/* by default */
#define HOLD_S		600
#define FULL_EVERY_MAX	(CONTEXT_MAX_ANCESTORS + 1)

enum {
	OPT_NAME = 256, OPT_INTERVAL, OPT_MTTF, OPT_EXIT_EACH, OPT_BEFORE_END, OPT_TIME,
	OPT_LEAVE_ON, OPT_SAVE_ON, OPT_HOLD, OPT_KEEP, OPT_KEEP_AT_END, OPT_VERIFY, OPT_SNAPSHOT, OPT_COMPRESS,
	OPT_BANDWIDTH, OPT_INCREMENTAL, OPT_FULL_EVERY,
	OPT_SKIP_UNSUPPORTED, OPT_MAX_RESTARTS, OPT_PIDS, OPT_EXIT_CODE, OPT_REQUEUE,
	OPT_ONCE, OPT_REQUIRE, OPT_SCRIPT, OPT_PROMETHEUS, OPT_STATUS, OPT_JSON, OPT_CLEAN,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "dir", required_argument, NULL, 'd' },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "mttf", required_argument, NULL, OPT_MTTF },
	{ "exit-each", required_argument, NULL, OPT_EXIT_EACH },
	{ "before-end", required_argument, NULL, OPT_BEFORE_END },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "leave-on", required_argument, NULL, OPT_LEAVE_ON },
	{ "save-on", required_argument, NULL, OPT_SAVE_ON },
	{ "hold", required_argument, NULL, OPT_HOLD },
	{ "keep", required_argument, NULL, OPT_KEEP },
	{ "keep-at-end", no_argument, NULL, OPT_KEEP_AT_END },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "snapshot", no_argument, NULL, OPT_SNAPSHOT },
	{ "compress", required_argument, NULL, OPT_COMPRESS },
	{ "bandwidth", required_argument, NULL, OPT_BANDWIDTH },
	{ "incremental", no_argument, NULL, OPT_INCREMENTAL },
	{ "full-every", required_argument, NULL, OPT_FULL_EVERY },
	{ "skip-unsupported", no_argument, NULL, OPT_SKIP_UNSUPPORTED },
	{ "max-restarts", required_argument, NULL, OPT_MAX_RESTARTS },
	{ "pids", required_argument, NULL, OPT_PIDS },
	{ "exit-code", required_argument, NULL, OPT_EXIT_CODE },
	{ "requeue", required_argument, NULL, OPT_REQUEUE },
	{ "once", no_argument, NULL, OPT_ONCE },
	{ "require", no_argument, NULL, OPT_REQUIRE },
	{ "script", no_argument, NULL, OPT_SCRIPT },
	{ "prometheus", required_argument, NULL, OPT_PROMETHEUS },
	{ "status", required_argument, NULL, OPT_STATUS },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "clean", no_argument, NULL, OPT_CLEAN },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{}
};

static const char usage_text[] =
	"Usage: cr_batch [options] [--] COMMAND [ARGUMENT...]\n"
	"       cr_batch --status FOLDER [--json]\n"
	"       cr_batch --clean [--dir FOLDER]\n"
	"Run a command that goes on where its last checkpoint was, if there is one.\n\n"
	"  -d, --dir FOLDER         for its checkpoints (./kcr, or that of the site's Grid Engine)\n"
	"      --name NAME          of the job there (its ID in the scheduler, else job)\n"
	"When to save:\n"
	"      --interval=TIME      every TIME (90, 15m, 12h, HH:MM:SS); auto, with --mttf=TIME:\n"
	"                           by the mean time to failure and the cost of a save\n"
	"      --before-end=TIME    before the allocation ends, then end\n"
	"      --time=TIME          how long the allocation is (asked of the scheduler)\n"
	"      --leave-on=SIGNALS   on these signals, then end (USR1,USR2,XCPU,TERM; none)\n"
	"      --hold=TIME          hold those back from the program for so long, if a save is due\n"
	"                           (10m; 0: not)\n"
	"      --save-on=SIGNALS    on these signals (none; Grid Engine: URG)\n"
	"      --exit-each=TIME     every TIME, then end (HTCondor)\n"
	"How:\n"
	"      --keep=N             checkpoints that are kept (2)\n"
	"      --keep-at-end        and stay when the command has succeeded\n"
	"      --verify             read each one again before it counts\n"
	"      --snapshot           let the program run while its memory is written\n"
	"      --compress=HOW       auto (what is fastest), lz4[:LEVEL], zstd[:LEVEL], none (default)\n"
	"      --bandwidth=RATE     write no more than RATE bytes per second (800K, 100M, 1.5G)\n"
	"      --incremental        save only what has changed since the checkpoint before\n"
	"      --full-every=N       with that, every Nth checkpoint is full (10)\n"
	"      --skip-unsupported   restore what cannot be saved as closed, do not refuse\n"
	"Then:\n"
	"      --exit-code=N        end with N after a save that ends the program (85)\n"
	"      --requeue=HOW        have the job run again: slurm, pbs, sge, auto, none (default)\n"
	"      --max-restarts=N     in a row without a new checkpoint (5; 0: any number)\n"
	"      --pids=HOW           keep: never give the program new process IDs; namespace: have it\n"
	"                           keep them in a PID namespace of its own; try (default)\n"
	"      --once               end with 0 at once if the command has done so before\n"
	"      --require            end with 75 where nothing can be saved (no module, no right)\n"
	"      --script             COMMAND is a job script: run a copy that stays in the folder\n"
	"      --prometheus=FILE    keep the state of the job in FILE for node_exporter\n"
	"  -q, --quiet              only failures on standard error\n"
	"  -v, --verbose            all events there\n"
	"      --status FOLDER      show the jobs of a folder; --json: for programs\n"
	"      --clean              remove what a deleted job has left (Grid Engine's clean_command)\n"
	"  -?, -h, --help           this text\n"
	"      --version            version\n";

static int bad_usage(void)
{
	if (report_message())
		report_print(-EINVAL);
	fputs("Try 'cr_batch --help'.\n", stderr);
	return EXIT_USAGE;
}

static int parse_time(const char *option, const char *text, int64_t least, int64_t *out)
{
	*out = duration_parse(text);
	return *out >= least ? 0 : report_fail(-EINVAL, "--%s needs a time such as 90, 15m, 12h or "
					       "1:30:00, not \"%s\"", option, text);
}

static int parse_number(const char *option, const char *text, long least, long most,
			unsigned int *out)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < least || n > most)
		return report_fail(-EINVAL, "--%s needs a number from %ld to %ld, not \"%s\"", option,
				   least, most, text);
	*out = (unsigned int)n;
	return 0;
}

/* Signals that no process can wait for, or that are used otherwise here. */
static bool is_usable(int signal)
{
	return signal > 0 && signal != SIGKILL && signal != SIGSTOP && signal != SIGCHLD;
}

/*
 * Names or numbers with commas between them, or "none".  What is asked for here is no more for the
 * `other` purpose.
 */
static int parse_signals(const char *text, sigset_t *out, sigset_t *other)
{
	char *copy = strdup(text), *rest = copy, *word;
	int err = copy ? 0 : -ENOMEM;

	sigemptyset(out);
	while (!err && strcmp(text, "none") && (word = strsep(&rest, ","))) {
		int signal = signal_number(word);

		if (is_usable(signal)) {
			sigaddset(out, signal);
			sigdelset(other, signal);
		} else {
			err = report_fail(-EINVAL, "\"%s\" is not a signal that can be waited for", word);
		}
	}
	free(copy);
	return err;
}

static int parse_hold(const char *value, struct options *o)
{
	int err = parse_time("hold", value, 0, &o->hold_s);

	if (!err && o->hold_s > HOLD_MAX_S)
		err = report_fail(-EINVAL, "--hold takes an hour at most, not \"%s\"", value);
	return err;
}

static int parse_requeue(const char *value, struct options *o)
{
	bool automatic = !strcmp(value, "auto");

	o->requeue = automatic ? o->scheduler : scheduler_named(value);
	if (automatic || !strcmp(value, "none"))
		return 0;
	if (!o->requeue || !(o->requeue->requeue || o->requeue->requeue_code))
		return report_fail(-EINVAL, "--requeue takes slurm, pbs, sge, auto or none, not \"%s\"",
				   value);
	return 0;
}

/* Options that say when to save: 0, -errno with a message, or 1: it is another one. */
static int parse_when(int option, const char *value, struct options *o)
{
	switch (option) {
	case OPT_INTERVAL:
		o->interval_s = 0;
		return strcmp(value, "auto") ? parse_time("interval", value, 1, &o->interval_s) : 0;
	case OPT_MTTF:
		return parse_time("mttf", value, 1, &o->mttf_s);
	case OPT_EXIT_EACH:
		return parse_time("exit-each", value, 1, &o->exit_each_s);
	case OPT_BEFORE_END:
		return parse_time("before-end", value, 0, &o->before_end_s);
	case OPT_TIME:
		return parse_time("time", value, 0, &o->time_s);
	case OPT_LEAVE_ON:
		return parse_signals(value, &o->leave_on, &o->save_on);
	case OPT_HOLD:
		return parse_hold(value, o);
	case OPT_SAVE_ON:
		return parse_signals(value, &o->save_on, &o->leave_on);
	default:
		return 1;
	}
}

static int parse_name(const char *value, struct options *o)
{
	if (!folder_name_valid(value))
		return report_fail(-EINVAL, "--name takes letters, digits, \"_\", \"-\" and \".\" (64 at "
				   "most, not \".\" or \"-\" first), not \"%s\"", value);
	snprintf(o->name, sizeof(o->name), "%s", value);
	return scheduler_task_name(o->scheduler, o->name, sizeof(o->name)) ?
		report_fail(-EINVAL, "--name=%s with the number of the array's task is longer than 64 "
			    "bytes", value) : 0;
}

static int parse_prometheus(const char *value, struct options *o)
{
	size_t length = strlen(value), suffix = strlen(METRICS_SUFFIX);

	if (length <= suffix || strcmp(value + length - suffix, METRICS_SUFFIX))
		return report_fail(-EINVAL, "--prometheus needs a file whose name ends in \"%s\", as "
				   "node_exporter reads no others, not \"%s\"", METRICS_SUFFIX, value);
	o->prometheus = value;
	return 0;
}

/* One option: 0, or -errno with a message. */
static int parse_one(int option, const char *value, struct options *o)
{
	unsigned int number = 0;
	int err = parse_when(option, value, o);

	if (err != 1)
		return err;
	switch (option) {
	case 'd':
		o->dir = value;
		return 0;
	case OPT_NAME:
		return parse_name(value, o);
	case OPT_COMPRESS:
		return choice_compression(value, &o->compression);
	case OPT_BANDWIDTH:
		return choice_bandwidth(value, &o->bandwidth);
	case OPT_KEEP:
		return parse_number("keep", value, 1, 1000000, &o->keep);
	case OPT_FULL_EVERY:
		return parse_number("full-every", value, 1, FULL_EVERY_MAX, &o->full_every);
	case OPT_MAX_RESTARTS:
		return parse_number("max-restarts", value, 0, 1000000, &o->max_restarts);
	case OPT_EXIT_CODE:
		err = parse_number("exit-code", value, 0, 255, &number);
		o->exit_code = (int)number;
		return err;
	case OPT_PIDS:
		o->keep_pids = !strcmp(value, "keep");
		o->pid_namespace = !strcmp(value, "namespace");
		return o->keep_pids || o->pid_namespace || !strcmp(value, "try") ? 0 :
			report_fail(-EINVAL, "--pids takes keep, namespace or try, not \"%s\"", value);
	case OPT_REQUEUE:
		return parse_requeue(value, o);
	case OPT_PROMETHEUS:
		return parse_prometheus(value, o);
	case OPT_STATUS:
		o->status = value;
		return 0;
	default:
		o->keep_at_end |= option == OPT_KEEP_AT_END;
		o->verify |= option == OPT_VERIFY;
		o->snapshot |= option == OPT_SNAPSHOT;
		o->incremental |= option == OPT_INCREMENTAL;
		o->skip_unsupported |= option == OPT_SKIP_UNSUPPORTED;
		o->once |= option == OPT_ONCE;
		o->require |= option == OPT_REQUIRE;
		o->script |= option == OPT_SCRIPT;
		o->json |= option == OPT_JSON;
		o->clean |= option == OPT_CLEAN;
		o->quiet |= option == 'q';
		o->verbose |= option == 'v';
		return 0;
	}
}

/* What options mean together.  0 or -errno with a message. */
static int check(struct options *o, bool automatic)
{
	if (automatic && !o->mttf_s)
		return report_fail(-EINVAL, "--interval=auto needs the mean time to failure: --mttf=TIME");
	if (!automatic && o->mttf_s)
		return report_fail(-EINVAL, "--mttf is for --interval=auto");
	if (o->exit_each_s && (o->interval_s || automatic))
		return report_fail(-EINVAL, "choose one of --interval and --exit-each");
	if (o->time_s >= 0 && o->before_end_s < 0)
		return report_fail(-EINVAL, "--time is for --before-end: how long before should it save?");
	if (o->full_every && !o->incremental)
		return report_fail(-EINVAL, "--full-every is for --incremental");
	if (!o->full_every)
		o->full_every = FULL_EVERY;
	if (o->json && !o->status)
		return report_fail(-EINVAL, "--json is for --status");
	if (o->clean && !(o->scheduler && o->scheduler->is_deleted))
		return report_fail(-EINVAL, "--clean is for Grid Engine's clean_command, in a job");
	return 0;
}

static void set_defaults(struct options *o)
{
	static const int leave[] = { SIGUSR1, SIGUSR2, SIGXCPU, SIGTERM };
	static char folder[PATH_MAX];

	*o = (struct options){ .before_end_s = -1, .time_s = -1, .keep = 2,
			       .max_restarts = 5, .hold_s = HOLD_S, .exit_code = EXIT_SAVED,
			       .scheduler = scheduler_detect() };
	scheduler_folder(o->scheduler, folder, sizeof(folder));
	o->dir = folder;
	sigemptyset(&o->save_on);
	if (o->scheduler && o->scheduler->save_signal)
		sigaddset(&o->save_on, o->scheduler->save_signal);
	sigemptyset(&o->leave_on);
	for (size_t i = 0; i < sizeof(leave) / sizeof(*leave); i++)
		sigaddset(&o->leave_on, leave[i]);
}

int options_parse(int argc, char **argv, struct options *o)
{
	bool automatic = false;
	int option;

	set_defaults(o);
	while ((option = getopt_long(argc, argv, "+?hd:qv", long_options, NULL)) != -1) {
		if (usage_is_wanted(option, argv)) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (option == OPT_VERSION) {
			puts("cr_batch (KCR) " KCR_VERSION);
			return 0;
		}
		if (option == '?' || parse_one(option, optarg, o))
			return bad_usage();
		if (option == OPT_INTERVAL)
			automatic = !strcmp(optarg, "auto");
	}
	if (!*o->name)			/* the scheduler may have to be asked */
		scheduler_job_name(o->scheduler, o->name, sizeof(o->name));
	if (check(o, automatic))
		return bad_usage();
	o->command = argv + optind;
	if (!(o->status || o->clean) == (optind < argc))
		return -1;
	report_fail(-EINVAL, o->status ? "--status takes no command" :
		    o->clean ? "--clean takes no command" : "name the command to run");
	return bad_usage();
}
