// SPDX-License-Identifier: GPL-2.0
/*
 * cr_run: runs a command with libcr_run.so.0 or libcr_omit.so.0 preloaded.  See
 * cr_run(1), libcr/run/ and libcr/omit/.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libdir.h"
#include "proc/spawn.h"
#include "report/report.h"
#include "util/usage.h"

#define EXIT_USAGE	255
#define VARIABLE	"LD_PRELOAD"
#define SEPARATORS	" :"		/* in its value: ld.so(8) */

enum { OPTION_VERSION = 256, OPTION_RUN, OPTION_OMIT };

static const char usage[] =
	"Usage: cr_run [--run | --omit] [--] COMMAND [ARGUMENT...]\n"
	"Runs a command under libcr.\n\n"
	"      --run          make it a client of libcr (this is the default)\n"
	"      --omit         leave it and what it starts out of all checkpoints\n"
	"  -?, -h, --help     show this\n"
	"      --version      show the version\n\n"
	"Exit status: that of the command; 255 wrong usage; 1 internal error; else\n"
	"the low byte of the errno of the failure, 2 if there is no such command.\n";

static int usage_error(void)
{
	fputs("Try cr_run --help\n", stderr);
	return EXIT_USAGE;
}

/* -1: go on; else the exit status.  *library: the one to preload. */
static int parse(int argc, char **argv, const char **library)
{
	static const struct option options[] = {
		{ "run", no_argument, NULL, OPTION_RUN },
		{ "omit", no_argument, NULL, OPTION_OMIT },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPTION_VERSION },
		{ 0 },
	};
	int c;

	/* What follows the command belongs to it. */
	while ((c = getopt_long(argc, argv, "+h?", options, NULL)) != -1) {
		switch (c) {
		case OPTION_RUN:
			*library = "libcr_run.so.0";
			break;
		case OPTION_OMIT:
			*library = "libcr_omit.so.0";
			break;
		case OPTION_VERSION:
			puts("cr_run (KCR) " KCR_VERSION);
			return 0;
		default:
			if (!usage_is_wanted(c, argv))
				return usage_error();
			fputs(usage, stdout);
			return 0;
		}
	}
	if (optind < argc)
		return -1;
	fputs("cr_run: no command\n", stderr);
	return usage_error();
}

/* ---- the library ----------------------------------------------------------- */

static bool is_there(char *path, const char *folder, const char *library)
{
	char name[PATH_MAX];

	return snprintf(name, sizeof(name), "%s/%s", folder, library) <
	       (int)sizeof(name) && realpath(name, path) && !access(path, R_OK);
}

/* The absolute path of a library: in ../lib beside this program, or where it was installed. */
static int find_library(char *path, const char *library)
{
	char *beside = spawn_beside("../lib");
	bool found = beside && is_there(path, beside, library);

	free(beside);
	if (found || is_there(path, KCR_LIBDIR, library))
		return 0;
	return report_fail(-ENOENT, "there is no %s beside this program or in %s", library,
			   KCR_LIBDIR);
}

/* ---- the environment ------------------------------------------------------- */

/* Is it one of our two libraries, in any folder and version? */
static bool is_ours(const char *entry, size_t length)
{
	static const char *const ours[] = { "libcr_run.so", "libcr_omit.so" };
	const char *slash = memrchr(entry, '/', length);
	const char *name = slash ? slash + 1 : entry;
	size_t rest = length - (name - entry);

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		size_t n = strlen(ours[i]);

		if (rest >= n && !memcmp(name, ours[i], n) && (rest == n || name[n] == '.'))
			return true;
	}
	return false;
}

/* Puts the library first, then the old entries that are not ours. */
static int preload(const char *path)
{
	const char *old = getenv(VARIABLE) ?: "";
	char *value;
	int err = 0;

	if (strpbrk(path, SEPARATORS))
		return report_fail(-EINVAL, "%s: " VARIABLE " takes no path with a space or colon",
				   path);
	value = malloc(strlen(path) + 1 + strlen(old) + 1);
	if (!value)
		return -ENOMEM;
	strcpy(value, path);
	while (*(old += strspn(old, SEPARATORS))) {
		size_t length = strcspn(old, SEPARATORS);

		if (!is_ours(old, length)) {
			strcat(value, ":");
			strncat(value, old, length);
		}
		old += length;
	}
	if (setenv(VARIABLE, value, 1))
		err = -errno;
	free(value);
	return err;
}

static int run(const char *library, char **command)
{
	char path[PATH_MAX];
	int err = find_library(path, library);

	if (!err)
		err = preload(path);
	if (err)
		return err;
	execvp(command[0], command);
	return report_errno(-errno, "cannot run %s", command[0]);
}

int main(int argc, char **argv)
{
	const char *library = "libcr_run.so.0";
	int status, err;

	report_set_program("cr_run");
	status = parse(argc, argv, &library);
	if (status >= 0)
		return status;
	err = run(library, argv + optind);
	report_print(err);
	return report_exit_code(err);
}
