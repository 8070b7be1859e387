// SPDX-License-Identifier: GPL-2.0
/*
 * cr_migrate: moves running processes to another machine.  Arguments and outcome only; the
 * work is done in migrate/, of which migrate.h is the first to read.  See cr_migrate(1).
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/context.h"
#include "migrate/join.h"
#include "migrate/key.h"
#include "migrate/migrate.h"
#include "migrate/spool.h"
#include "migrate/tcp.h"
#include "proc/spawn.h"
#include "report/report.h"
#include "util/choices.h"
#include "util/compressed.h"
#include "util/ending.h"
#include "util/follow.h"
#include "util/json.h"
#include "util/mpi_job.h"
#include "util/progress.h"
#include "util/usage.h"

#define EXIT_USAGE	255

struct arguments {
	struct migrate_options migrate;
	struct target_options target;
	bool receive, quiet, verbose, json;
	bool rounds;			/* something was said about them */
	const char *receive_pages;	/* the other end's spool folder; NULL */
	bool connect;			/* in the place of ssh */
	const char *key, *listen;	/* files; an address; NULL */
	char *const *command;		/* of `connect`: the host and what is to run there */
	char *program;			/* our path */
	unsigned int nr_options;	/* but --key, --listen, -q and -v */
};

enum {
	OPT_SPOOL = 256, OPT_DETACH, OPT_ROUNDS, OPT_CHANGES, OPT_COMPRESS, OPT_SKIP_UNSUPPORTED,
	OPT_LAZY, OPT_RECEIVE, OPT_RECEIVE_PAGES, OPT_JSON, OPT_TRANSPORT, OPT_KEY, OPT_LISTEN,
	OPT_CONNECT, OPT_VERSION,
};

static const struct option long_options[] = {
	{ "rsh", required_argument, NULL, 'e' },
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "spool", required_argument, NULL, OPT_SPOOL },
	{ "detach", no_argument, NULL, OPT_DETACH },
	{ "rounds", required_argument, NULL, OPT_ROUNDS },
	{ "changes", required_argument, NULL, OPT_CHANGES },
	{ "compress", required_argument, NULL, OPT_COMPRESS },
	{ "skip-unsupported", no_argument, NULL, OPT_SKIP_UNSUPPORTED },
	{ "time", required_argument, NULL, 't' },
	{ "lazy", no_argument, NULL, OPT_LAZY },
	{ "receive", no_argument, NULL, OPT_RECEIVE },
	{ "receive-pages", required_argument, NULL, OPT_RECEIVE_PAGES },
	{ "connect", no_argument, NULL, OPT_CONNECT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{}
};

static const char usage_text[] =
	"Usage: cr_migrate [options] PID HOST [-- options of cr_restart]\n"
	"       cr_migrate --listen=[ADDRESS:]PORT --key=FILE     (at HOST, for --transport=tcp)\n"
	"Move a running process and its descendants to another machine.\n\n"
	"  -e, --rsh=COMMAND        instead of ssh\n"
	"      --transport=tcp      to a cr_migrate --listen: HOST:PORT, with its --key; ssh (default)\n"
	"      --key=FILE           the key of one migration: --listen makes it\n"
	"      --spool=DIR          folder at HOST for the images (TMPDIR, or /tmp)\n"
	"      --detach             end when they run there, do not stand for them\n"
	"      --rounds=N           copy their memory up to N times while they run (16)\n"
	"      --lazy               no rounds: fetch large memory while they run there\n"
	"      --changes=HOW        find what has changed by dirty, hash or auto (default)\n"
	"      --compress=HOW       auto (what is fastest), lz4[:LEVEL], zstd[:LEVEL], none (default)\n"
	"      --skip-unsupported   restore what cannot be saved as closed, do not refuse\n"
	"  -t, --time SEC           run on here if it takes longer\n"
	"      --json               what was done as a JSON line on standard error\n"
	"      --receive, --receive-pages=DIR, --connect\n"
	"                           the other end and the way there, which cr_migrate itself starts\n"
	"  -q, --quiet              no messages\n"
	"  -v, --verbose            more messages\n"
	"  -?, -h, --help           this text\n"
	"      --version            version\n\n"
	"It ends as the program ends at HOST.\n";

static int bad_usage(void)
{
	if (report_message())
		report_print(-EINVAL);
	fputs("Try 'cr_migrate --help'.\n", stderr);
	return EXIT_USAGE;
}

/* One option: 0, or -errno with a message. */
static int parse_one(int option, const char *value, struct arguments *a)
{
	struct checkpoint_options *o = &a->migrate.checkpoint;

	switch (option) {
	case 'e':
		a->migrate.rsh = value;
		return *value ? 0 : report_fail(-EINVAL, "--rsh needs a command");
	case OPT_SPOOL:
		a->target.spool = value;
		return *value ? 0 : report_fail(-EINVAL, "--spool needs a folder");
	case OPT_DETACH:
		a->target.detach = true;
		return 0;
	case OPT_ROUNDS:
		a->rounds = true;
		return choice_rounds("--rounds", value, o);
	case OPT_CHANGES:
		a->rounds = true;
		return choice_changes(value, o);
	case OPT_COMPRESS:
		return choice_compression(value, &o->compression);
	case OPT_SKIP_UNSUPPORTED:
		o->skip_unsupported = true;
		return 0;
	case 't':
		if (choice_number(value, 0) < 0)
			return report_fail(-EINVAL, "-t needs a number of seconds, not \"%s\"", value);
		o->timeout_s = choice_number(value, 0);
		return 0;
	case OPT_LAZY:
		a->migrate.lazy = a->target.lazy = true;
		return 0;
	case OPT_RECEIVE:
		a->receive = true;
		return 0;
	case OPT_RECEIVE_PAGES:
		a->receive_pages = value;
		return 0;
	case OPT_JSON:
		a->json = true;
		return 0;
	case OPT_TRANSPORT:
		a->migrate.tcp = !strcmp(value, "tcp");
		return a->migrate.tcp || !strcmp(value, "ssh") ? 0 :
		       report_fail(-EINVAL, "--transport is ssh or tcp, not \"%s\"", value);
	case OPT_KEY:
		a->key = value;
		return 0;
	case OPT_LISTEN:
		a->listen = value;
		return 0;
	case OPT_CONNECT:
		a->connect = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	default:			/* -v */
		a->verbose = true;
		return 0;
	}
}

/* How it is reached.  0 or -errno with a message. */
static int choose_transport(struct arguments *a)
{
	char *line = NULL;
	int err;

	if (!a->migrate.tcp) {
		if (a->key)
			return report_fail(-EINVAL, "--key goes with --transport=tcp or --listen");
		a->migrate.rsh = a->migrate.rsh ?: "ssh";
		return 0;
	}
	if (a->migrate.rsh)
		return report_fail(-EINVAL, "--rsh does not go with --transport=tcp");
	if (!a->key)
		return report_fail(-EINVAL, "--transport=tcp needs --key, the file that cr_migrate --listen "
				   "has made at HOST");
	err = remote_quote(&line, a->program ?: "cr_migrate");
	err = err ?: remote_quote(&line, "--key");
	err = err ?: remote_quote(&line, a->key);
	err = err ?: remote_quote(&line, "--connect");
	a->migrate.rsh = line;
	return err;
}

/* What the target is to run, for a shell there. */
static int make_command(struct arguments *a)
{
	char *line = NULL;
	int err = remote_quote(&line, "cr_migrate");

	if (!err)
		err = remote_quote(&line, "--receive");
	if (!err && a->target.detach)
		err = remote_quote(&line, "--detach");
	if (!err && a->target.lazy)
		err = remote_quote(&line, "--lazy");
	if (!err && a->quiet)
		err = remote_quote(&line, "--quiet");
	if (!err && a->target.spool) {
		err = remote_quote(&line, "--spool");
		err = err ?: remote_quote(&line, a->target.spool);
	}
	if (!err)
		err = remote_quote(&line, "--");
	for (char *const *each = a->target.arguments; *each && !err; each++)
		err = remote_quote(&line, *each);
	a->migrate.command = line;
	return err;
}

/* The arguments that are no options: -1 to go on, or the exit code. */
static int parse_rest(int argc, char **argv, struct arguments *a)
{
	struct checkpoint_options *o = &a->migrate.checkpoint;
	int first = optind;

	if (a->receive_pages)
		return -1;
	if (a->connect) {
		a->command = argv + first;
		return a->key && argc == first + 2 ? -1 : bad_usage();
	}
	if (a->listen) {
		if (a->key && argc == first && !a->nr_options)
			return -1;
		report_fail(-EINVAL, a->key ? "--listen goes with --key, --quiet and --verbose only" :
			    "--listen needs --key, a file that it makes");
		return bad_usage();
	}
	if (a->receive) {
		a->target.arguments = argv + first;
		return -1;
	}
	/* "--" ends the options, so that it may come only behind HOST. */
	if (argc < first + 2 || (argc > first + 2 && strcmp(argv[first + 2], "--"))) {
		report_fail(-EINVAL, "name a process by its ID, and a host");
		return bad_usage();
	}
	if (a->migrate.lazy && a->rounds) {
		report_fail(-EINVAL, "--lazy makes no rounds: leave --rounds and --changes out");
		return bad_usage();
	}
	if (choice_number(argv[first], 1) < 0) {
		report_fail(-EINVAL, "\"%s\" is not the ID of a process", argv[first]);
		return bad_usage();
	}
	o->target = (pid_t)choice_number(argv[first], 1);
	a->migrate.host = argv[first + 1];
	if (!*a->migrate.host || *a->migrate.host == '-') {
		report_fail(-EINVAL, "\"%s\" is not the name of a host", a->migrate.host);
		return bad_usage();
	}
	if (choose_transport(a))
		return bad_usage();
	a->target.arguments = argv + first + 2 + (argc > first + 2);
	if (!make_command(a))
		return -1;
	report_print(-ENOMEM);
	return ENOMEM;
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct arguments *a)
{
	int option;

	/* "+": what is behind HOST is not for us. */
	while ((option = getopt_long(argc, argv, "+?he:t:qv", long_options, NULL)) != -1) {
		if (usage_is_wanted(option, argv)) {
			fputs(usage_text, stdout);
			return 0;
		}
		if (option == OPT_VERSION) {
			puts("cr_migrate (KCR) " KCR_VERSION);
			return 0;
		}
		if (option == '?' || parse_one(option, optarg, a))
			return bad_usage();
		a->nr_options += option != OPT_KEY && option != OPT_LISTEN && option != 'q' && option != 'v';
	}
	return parse_rest(argc, argv, a);
}

static void print_result(const struct arguments *a, const struct migrate_result *r)
{
	const struct checkpoint_result *last = &r->checkpoint;

	if (a->json) {
		json_event(stderr, "done");
		json_number(stderr, "target", a->migrate.checkpoint.target);
		compressed_json(stderr, last->compression, last->target_rate);
		json_number(stderr, "processes", last->nr_processes);
		json_number(stderr, "threads", last->nr_threads);
		json_number(stderr, "rounds", last->nr_rounds);
		json_number(stderr, "rounds_bytes", last->rounds_bytes);
		json_number(stderr, "bytes", last->bytes);
		json_number(stderr, "later_bytes", r->nr_postponed * CONTEXT_PAGE);
		json_time(stderr, "stopped", last->stopped_ns);
		json_time(stderr, "downtime", r->downtime_ns);
		json_end(stderr);
	}
	compressed_tell(&a->migrate.checkpoint.compression, last);
	report_verbose("%zu processes with %zu threads run at %s: %.1f MB were sent, of which %.1f MB while "
		       "they were stopped; they did not run for %.1f ms", last->nr_processes,
		       last->nr_threads, a->migrate.host,
		       (double)(last->rounds_bytes + last->bytes) / 1e6, (double)last->bytes / 1e6,
		       (double)r->downtime_ns / 1e6);
}

/* At the source: the exit code. */
static int migrate(struct arguments *a)
{
	struct remote remote = { .link = { .in = -1, .out = -1 } };
	struct migrate_result result = {};
	int err, status, code;

	err = mpi_job_refuse(a->migrate.checkpoint.target);
	if (!err)
		err = migrate_from(&a->migrate, &remote, &result);
	if (err) {
		remote_end(&remote);
		report_print(err);
		return report_exit_code(err);
	}
	print_result(a, &result);
	remote_relay(&remote);
	status = remote_end(&remote);
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	err = migrate_rest(&result);
	/* Else cr_restart there has said so. */
	if (err && code != report_exit_code(err))
		report_print(err);
	return err ? report_exit_code(err) : code;
}

/* At the target, likewise; the source has told its user why it fails. */
static int receive(const struct arguments *a)
{
	int status, err = migrate_to(&a->target, &status);

	if (err)
		return report_exit_code(err);
	follow_mimic(status);
}

/* At the target as well: the pages of a lazy migration. */
static int receive_pages(const struct arguments *a)
{
	int err = join_pass_on(a->receive_pages);

	if (!err)
		return 0;
	report_print(err);
	return report_exit_code(err);
}

/* In the place of ssh. */
static int connect_to(const struct arguments *a)
{
	int status, err = tcp_connect(a->command[0], a->key, a->command[1], &status);

	if (!err)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	report_print(err);
	return report_exit_code(err);
}

/* At the target, for who comes by TCP. */
static int listen_for(const struct arguments *a)
{
	int status, err = tcp_listen(a->listen, a->key, a->program ?: "cr_migrate", &status);

	if (err) {
		report_print(err);
		return report_exit_code(err);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What is left to be removed, at whichever end this is. */
static void abandon(void)
{
	spool_remove();
	key_remove();
}

static int act(struct arguments *a)
{
	if (a->connect)
		return connect_to(a);
	if (a->listen)
		return listen_for(a);
	if (a->receive_pages)
		return receive_pages(a);
	return a->receive ? receive(a) : migrate(a);
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.migrate = {
			.checkpoint = {
				.scope = CHECKPOINT_TREE, .fd = -1, .signal = SIGKILL, .ends = true,
				.precopy = MIGRATE_ROUNDS,
			},
			.held = ending_in_time,
		},
		.program = spawn_beside("cr_migrate"),
	};
	char *restart = spawn_beside("cr_restart");
	int code;

	report_set_program("cr_migrate");
	code = parse(argc, argv, &a);
	if (code >= 0)
		return code;
	report_set_level(a.quiet ? -2 : a.verbose);
	ending_prepare(&(struct ending) {
		.abandon = abandon, .late = "cr_migrate: not done in the time given by --time: the "
		"processes run on here\n", .timeout_s = a.migrate.checkpoint.timeout_s,
		.quiet = a.quiet,
	});
	a.target.restart = restart ?: "cr_restart";
	code = act(&a);
	free(restart);
	return code;
}
