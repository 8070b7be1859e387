// SPDX-License-Identifier: GPL-2.0
/* cr_info: shows a context file.  See cr_info(1) and image/view.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/destination.h"
#include "image/context.h"
#include "image/merge.h"
#include "image/place.h"
#include "image/view.h"
#include "job/snapshot.h"
#include "proc/mount.h"
#include "proc/proc.h"
#include "report/report.h"
#include "util/mpi_job.h"
#include "util/usage.h"

#define EXIT_USAGE	255

enum {
	OPTION_VERSION = 256, OPTION_JSON, OPTION_CORE, OPTION_VERIFY, OPTION_MERGE,
	OPTION_CHAIN_PATH,
};

struct options {
	const char *file;
	const char *output;
	const char *chain_path;
	bool all, json, verify, core, merge;
	int32_t pid;
};

static const char usage[] =
	"Usage: cr_info [OPTION...] FILE\n"
	"Shows what a context file holds; - is standard input.  FILE may be the\n"
	"folder of a snapshot of an MPI job.\n\n"
	"  -a, --all          also all threads with their registers, memory areas and\n"
	"                     descriptors\n"
	"      --json         everything but the memory itself, for programs\n"
	"      --verify       read the whole file and check it, and the older files that\n"
	"                     an increment needs\n"
	"      --core=PID     write that process as an ELF core for a debugger\n"
	"      --merge        write one full image of an increment and its older files\n"
	"      --chain-path=DIR   the older files may also be there\n"
	"  -o, --output=FILE  name of the core (core.PID), or of the full image\n"
	"  -?, -h, --help     show this\n"
	"      --version      show the version\n\n"
	"Exit status: 0; 255 wrong usage; 1 internal error; else the low byte of\n"
	"the errno of the failure, 22 for a damaged file.\n";

static int usage_error(void)
{
	fputs("Try cr_info --help\n", stderr);
	return EXIT_USAGE;
}

static bool parse_pid(const char *text, int32_t *pid)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	*pid = number;
	return !errno && *text && !*end && number > 0 && number <= INT32_MAX;
}

/* -1: go on; else the exit status. */
static int take_option(int c, char **argv, struct options *o)
{
	switch (c) {
	case 'a':
		o->all = true;
		return -1;
	case OPTION_JSON:
		o->json = true;
		return -1;
	case OPTION_VERIFY:
		o->verify = true;
		return -1;
	case OPTION_CORE:
		o->core = true;
		if (parse_pid(optarg, &o->pid))
			return -1;
		fprintf(stderr, "cr_info: %s is not a process ID\n", optarg);
		return usage_error();
	case OPTION_MERGE:
		o->merge = true;
		return -1;
	case OPTION_CHAIN_PATH:
		o->chain_path = optarg;
		return -1;
	case 'o':
		o->output = optarg;
		return -1;
	case OPTION_VERSION:
		puts("cr_info (KCR) " KCR_VERSION);
		return 0;
	default:
		if (!usage_is_wanted(c, argv))
			return usage_error();
		fputs(usage, stdout);
		return 0;
	}
}

/* Likewise. */
static int check(int nr_files, const char *file, const struct options *o)
{
	if (nr_files != 1 || (o->output && !o->core && !o->merge) ||
	    o->core + o->merge + (o->json || o->all) > 1) {
		fputs("cr_info: one FILE, and a listing, a core or a merge\n", stderr);
		return usage_error();
	}
	if (o->merge && (!o->output || !strcmp(file, "-"))) {
		fputs("cr_info: --merge needs a FILE and the name of the full image (-o)\n", stderr);
		return usage_error();
	}
	return -1;
}

/* Likewise. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, OPTION_JSON },
		{ "verify", no_argument, NULL, OPTION_VERIFY },
		{ "core", required_argument, NULL, OPTION_CORE },
		{ "merge", no_argument, NULL, OPTION_MERGE },
		{ "chain-path", required_argument, NULL, OPTION_CHAIN_PATH },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ 0 },
	};
	int c, code;

	while ((c = getopt_long(argc, argv, "ao:h?", options, NULL)) != -1) {
		code = take_option(c, argv, o);
		if (code >= 0)
			return code;
	}
	o->file = argv[optind];
	return check(argc - optind, o->file, o);
}

/* Of a regular file, in bytes; 0: not known. */
static uint64_t size_of(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static int show(struct context_reader *r, const struct context *c, const struct options *o)
{
	struct summary summary = { 0 };
	bool whole = o->json || o->verify;
	int err = whole ? summary_read(r, c, &summary) : 0;

	if (err)
		return err;
	if (o->json)
		json_write(stdout, c, &summary);
	else
		text_write(stdout, c, whole ? &summary : NULL,
			   size_of(context_reader_fd(r)), o->all);
	summary_free(&summary);
	if (fflush(stdout) || ferror(stdout))
		return report_errno(-errno, "cannot write");
	return 0;
}

/* Refuses another user's named pipe: opening it could wait for ever. */
static int open_file(const char *path, const struct options *o)
{
	bool believes = o->merge || o->core;	/* what it makes may be believed as root's */
	int node = believes ? place_node(path) : open(path, O_PATH | O_CLOEXEC), fd;
	struct stat st;

	if (node < 0)
		return believes ? node : report_errno(-errno, "cannot open %s", path);
	if (fstat(node, &st)) {
		fd = report_errno(-errno, "cannot open %s", path);
	} else if (S_ISFIFO(st.st_mode) && st.st_uid != geteuid()) {
		fd = report_fail(-EINVAL, "%s is a named pipe of user %u: use cr_info - < %s", path,
				 st.st_uid, path);
	} else {
		fd = proc_fd_reopen(node, O_RDONLY | O_NOCTTY);
		if (fd < 0)
			report_errno(fd, "cannot open %s", path);
	}
	close(node);
	return fd;
}

/* A merge of another user's files would make them ours, and be believed as such. */
static int check_owner(const char *path, int fd)
{
	char what[256];
	struct stat st;

	if (fstat(fd, &st))
		return report_errno(-errno, "%s", path);
	if (!geteuid() && mount_makes_up_owners(fd, what, sizeof(what)))
		return report_fail(-EPERM, "nothing says whose file %s is: %s: root does not merge it",
				   path, what);
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return 0;
	return report_fail(-EPERM, "%s belongs to user %u with mode %04o: only files that nobody but "
			   "their owner may write are merged, by that user", path, st.st_uid,
			   st.st_mode & 07777);
}

static int check_owners(const char *path, int fd, const struct chain *chain)
{
	int err = check_owner(path, fd);

	for (size_t i = 0; !err && chain && i < chain->count; i++)
		err = check_owner(chain->member[i].path, chain->member[i].fd);
	return err;
}

/* The full image has its name when it is complete. */
static int merge(struct context_reader *r, const struct context *c, const struct chain *chain,
		 const struct options *o)
{
	const struct checkpoint_options how = { .path = o->output, .fd = -1, .sync = true };
	struct destination *d;
	int err = check_owners(o->file, context_reader_fd(r), chain);

	if (!err)
		err = destination_open(&d, &how);
	if (err)
		return err;
	err = merge_write(r, c, chain, CONTEXT_RAW, d->fd);
	if (!err)
		err = destination_sync(d);
	if (!err)
		err = destination_commit(d);
	err = destination_explain(d, err);
	destination_close(d);
	return err;
}

static int work(struct context_reader *r, const struct context *c, const struct options *o)
{
	struct chain *chain = NULL;
	char name[32];
	int err = 0;

	if (c->preamble->n_ancestor && (o->merge || o->verify || o->json))
		err = chain_open(&chain, c->preamble, o->file, context_reader_fd(r), o->chain_path);
	if (!err && chain && (o->verify || o->json))
		err = chain_verify(chain);
	snprintf(name, sizeof(name), "core.%d", o->pid);
	if (!err && o->merge)
		err = merge(r, c, chain, o);
	else if (!err && o->core)
		err = core_write(r, c, o->pid, o->output ? o->output : name);
	else if (!err)
		err = show(r, c, o);
	chain_free(chain);
	return err;
}

static int refuse_merge(const char *folder)
{
	return report_fail(-EINVAL, "%s is the snapshot of an MPI job: merge the file of one rank in it, "
			   "or save the job without --incremental", folder);
}

static int run(const struct options *o)
{
	struct context_reader *r = NULL;
	struct context *c = NULL;
	int fd = 0, err;

	if (!o->core && snapshot_is(o->file))
		return o->merge ? refuse_merge(o->file) : mpi_job_show(o->file, o->json, o->verify);
	if (strcmp(o->file, "-")) {
		fd = open_file(o->file, o);
		if (fd < 0)
			return fd;
	}
	err = context_reader_new(&r, fd, o->file);
	if (!err)
		err = context_load(r, &c);
	if (!err)
		err = work(r, c, o);
	context_reader_free(r);
	context_free(c);
	close(fd);
	return err;
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	int status, err;

	report_set_program("cr_info");
	status = parse(argc, argv, &options);
	if (status >= 0)
		return status;
	err = run(&options);
	if (!err)
		return 0;
	report_print(err);
	return report_exit_code(err);
}
