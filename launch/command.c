// SPDX-License-Identifier: GPL-2.0
/*
 * The command line of mpirun, see command.h.  The options of 4.1 are those that mpirun 4.1.4
 * lists with --help=full, those of 5 the table for getopt_long(3) in PRRTE 3.0.8's library, for
 * Open MPI's command line.
 */
#include "launch/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/snapshot.h"
#include "report/report.h"

#define UNKNOWN	(-1)
#define VALUES_OF_MCA 2
#define NO	UNKNOWN

/* How many values each option has in Open MPI 4.1 and 5. */
static const struct option {
	const char *name;
	int values[2];
} options[] = {
	{ "H", { 1, 1 } },			{ "N", { 1, 1 } },
	{ "V", { 0, 0 } },			{ "allow-run-as-root", { 0, 0 } },
	{ "am", { 1, 1 } },			{ "amca", { NO, 1 } },
	{ "arch", { NO, 1 } },			{ "bind-to", { 1, 1 } },
	{ "bind-to-core", { 0, 0 } },		{ "bind-to-socket", { 0, NO } },
	{ "bycore", { 0, 0 } },			{ "bynode", { 0, 0 } },
	{ "byslot", { 0, 0 } },			{ "c", { 1, 1 } },
	{ "cartofile", { 1, NO } },		{ "cf", { 1, NO } },
	{ "continuous", { 0, 0 } },		{ "cpu-list", { 1, 1 } },
	{ "cpu-set", { 1, 1 } },		{ "cpus-per-proc", { 1, 1 } },
	{ "cpus-per-rank", { 1, 1 } },		{ "d", { 0, NO } },
	{ "debug", { 0, 0 } },			{ "debug-daemons", { 0, 0 } },
	{ "debug-daemons-file", { 0, 0 } },	{ "debug-devel", { 0, NO } },
	{ "debugger", { 1, NO } },		{ "default-hostfile", { 1, 1 } },
	{ "disable-recovery", { 0, 0 } },	{ "display", { NO, 1 } },
	{ "display-allocation", { 0, 0 } },	{ "display-comm", { NO, 0 } },
	{ "display-comm-finalize", { NO, 0 } },	{ "display-devel-allocation", { 0, NO } },
	{ "display-devel-map", { 0, 0 } },	{ "display-diffable-map", { 0, NO } },
	{ "display-map", { 0, 0 } },		{ "display-topo", { 0, 1 } },
	{ "do-not-launch", { 0, 0 } },		{ "do-not-resolve", { 0, NO } },
	{ "dvm", { 0, 1 } },			{ "enable-instant-on-support", { 0, NO } },
	{ "enable-recovery", { 0, 0 } },	{ "file", { NO, 1 } },
	{ "forward-signals", { NO, 1 } },	{ "fwd-environment", { NO, 0 } },
	{ "fwd-mpirun-port", { 0, NO } },	{ "get-stack-traces", { 0, 0 } },
	{ "gmca", { 2, 2 } },			{ "gomca", { NO, 2 } },
	{ "h", { 0, 0 } },			{ "help", { 0, 0 } },
	{ "hnp", { 1, NO } },			{ "host", { 1, 1 } },
	{ "hostfile", { 1, 1 } },		{ "index-argv-by-rank", { 0, NO } },
	{ "initial-errhandler", { NO, 1 } },	{ "launch-agent", { 1, 1 } },
	{ "leave-session-attached", { 0, 0 } },	{ "machinefile", { 1, 1 } },
	{ "map-by", { 1, 1 } },			{ "max-restarts", { 1, 1 } },
	{ "max-vm-size", { 1, 1 } },		{ "mca", { 2, 2 } },
	{ "memory-alloc-kinds", { NO, 1 } },	{ "merge-stderr-to-stdout", { 0, 0 } },
	{ "n", { 1, 1 } },			{ "no-aggregate-help", { NO, 0 } },
	{ "nolocal", { 0, 0 } },		{ "nooversubscribe", { 0, 0 } },
	{ "noprefix", { 0, 0 } },		{ "novm", { 0, NO } },
	{ "np", { 1, 1 } },			{ "npernode", { 1, 1 } },
	{ "npersocket", { 1, 1 } },		{ "omca", { NO, 2 } },
	{ "ompi-server", { 1, NO } },		{ "output", { NO, 1 } },
	{ "output-directory", { NO, 1 } },	{ "output-filename", { 1, 1 } },
	{ "output-proctable", { 0, 0 } },	{ "oversubscribe", { 0, 0 } },
	{ "p", { NO, 0 } },			{ "parsable", { NO, 0 } },
	{ "parseable", { NO, 0 } },		{ "path", { 1, 1 } },
	{ "pernode", { 0, 0 } },		{ "personality", { 1, 1 } },
	{ "pmixmca", { NO, 2 } },		{ "ppr", { 1, 1 } },
	{ "prefix", { 1, 1 } },			{ "preload-binary", { 0, 0 } },
	{ "preload-files", { 1, 1 } },		{ "prtemca", { NO, 2 } },
	{ "pset", { NO, 1 } },			{ "q", { 0, NO } },
	{ "quiet", { 0, NO } },			{ "rank-by", { 1, 1 } },
	{ "rankfile", { 1, 1 } },		{ "report-bindings", { 0, 0 } },
	{ "report-child-jobs-separately", { 0, 0 } }, { "report-events", { 1, NO } },
	{ "report-pid", { 1, 1 } },		{ "report-state-on-timeout", { 0, 0 } },
	{ "report-uri", { 1, 1 } },		{ "rf", { 1, NO } },
	{ "runtime-options", { NO, 1 } },	{ "s", { 0, 0 } },
	{ "set-cwd-to-session-dir", { 0, NO } }, { "show-progress", { 0, 0 } },
	{ "soft", { NO, 0 } },			{ "spawn-timeout", { NO, 1 } },
	{ "stdin", { 1, 1 } },			{ "stop-in-app", { NO, 0 } },
	{ "stop-in-init", { NO, 0 } },		{ "stop-on-exec", { NO, 0 } },
	{ "stream-buffering", { NO, 1 } },	{ "tag-output", { 0, 0 } },
	{ "timeout", { 1, 1 } },		{ "timestamp-output", { 0, 0 } },
	{ "tmpdir", { NO, 1 } },		{ "tune", { 1, 1 } },
	{ "tv", { 0, NO } },			{ "use-hwthread-cpus", { 0, 0 } },
	{ "use-regexp", { 0, NO } },		{ "v", { 0, 0 } },
	{ "verbose", { 0, 0 } },		{ "version", { 0, 0 } },
	{ "wd", { 1, 1 } },			{ "wdir", { 1, 1 } },
	{ "with-ft", { NO, 1 } },		{ "x", { 1, 1 } },
	{ "xml", { 0, 0 } },			{ "xml-file", { 1, NO } },
	{ "xterm", { 1, 1 } },
};

/* Options of cr_mpirun itself; false: without a value, or with one behind a =. */
static const struct {
	const char *name;
	bool has_value;
} own[] = {
	{ "answer-timeout", true }, { "bandwidth", true },
	{ "full-every", true },	{ "incremental", false },
	{ "interval", true },	{ "keep", true },	{ "local", true },
	{ "launcher", true },	{ "mttf", true },	{ "node-timeout", true },
	{ "recover", false },	{ "recover-exit", false }, { "recover-from-start", false },
	{ "save", true },
	{ "spares", true },	{ "start-timeout", true },
};

/*
 * How many of the words after this option are its values.  Open MPI 5 takes the (first) one in the
 * same word, too, as in --map-by=node or -n4: *end is then where the option's name ends, else 0.
 */
static int values_of(const char *word, int major, size_t *end)
{
	const char *name = word + 1 + (word[1] == '-');
	size_t length = strcspn(name, "=");
	bool attached = name[length] == '=';

	*end = 0;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (strlen(options[i].name) == length && !strncmp(options[i].name, name, length)) {
			int values = options[i].values[major > 4];

			if (values > 0 && attached && major > 4)
				*end = name + length - word;
			return values > 0 ? values - attached : values;
		}
	if (major <= 4 || word[1] == '-' || !strchr("ncNHx", word[1]))
		return UNKNOWN;
	*end = 2;
	return 0;
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

/* "--mca NAME VALUE" at `word`. */
static int add_setting(struct command *c, char *const *word)
{
	const char *name = word[0] + 1 + (word[0][1] == '-');
	char *text;
	int err;

	if (name[0] == 'p')
		return 0;		/* PRRTE's and PMIx's */
	if (asprintf(&text, "%s=%s", word[1], word[2]) < 0)
		return -ENOMEM;
	err = strings_add(&c->settings, text);
	free(text);
	return err;
}

int command_take_own(struct command *c, char *const **at)
{
	char *const *word = *at;
	int err = 0;

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		bool attached = strchr(*word, '=');
		int more = own[i].has_value && !attached;
		char *text;

		if (strncmp(*word, "--", 2) || !command_is_option(*word, own[i].name))
			continue;
		if (more && !word[1])
			return report_fail(-EINVAL, "%s needs a value", *word);
		if (asprintf(&text, "%s%s%s", *word + 2, attached ? "" : "=", more ? word[1] : "") < 0)
			return -ENOMEM;
		err = strings_add(&c->own, text);
		free(text);
		for (int n = 0; n <= more && !err; n++)
			err = strings_add(&c->options, word[n]);
		*at += 1 + more;
		return err ?: 1;
	}
	return 0;
}

/* Can this be an option with so many values?  0 or -errno with a message. */
static int check_option(char *const *word, int values, int major)
{
	if (!strcmp(*word, "--app") || !strncmp(*word, "--app=", 6))
		return report_fail(-EOPNOTSUPP, "the programs of a file (--app) cannot be saved: give "
				   "them on the command line, with : between them");
	if (command_is_option(*word, "preload-binary") || command_is_option(*word, "s"))
		return report_fail(-EOPNOTSUPP, "%s would have mpirun copy cr_rank, which starts the "
				   "program: copy the program to the nodes before", *word);
	if (values == UNKNOWN)
		return report_fail(-EINVAL, "%s is no option of Open MPI %d's mpirun, or of a release "
				   "that cr_mpirun does not know", *word, major);
	for (int i = 1; i <= values; i++)
		if (!word[i])
			return report_fail(-EINVAL, "%s needs %s", *word,
					   values > 1 ? "a name and a value" : "a value");
	return 0;
}

/* Notes where in c->proxied the value of an option is, about to be added, that names hosts. */
static int note_hosts(struct command *c, const char *word, int values)
{
	static const char *const names[] = {
		"H", "default-hostfile", "host", "hostfile", "machinefile",
	};
	size_t at = 0, n = sizeof(names) / sizeof(*names);
	size_t *grown;

	while (n && !command_is_option(word, names[n - 1]))
		n--;
	if (!n)
		return 0;
	grown = realloc(c->hosts, (c->nr_hosts + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->hosts = grown;
	while (c->proxied && c->proxied[at])
		at++;
	c->hosts[c->nr_hosts++] = at + values;
	return 0;
}

/* Likewise of the value that names the folder for output: the last of the first program that has it. */
static void note_output(struct command *c, const char *word, int values, bool first)
{
	size_t at = 0;

	if (!values || !command_is_option(word, "output-filename") || (c->output && !first))
		return;
	while (c->proxied && c->proxied[at])
		at++;
	c->output = at + 1;
}

/* An option with so many values. */
static int add_option(struct command *c, char *const *word, int values, bool first)
{
	bool set = values == VALUES_OF_MCA, apart = set && c->major <= 4 && !strcmp(word[1], COMMAND_VARIABLES);
	int err = set ? add_setting(c, word) : 0;

	if (!err)
		err = note_hosts(c, *word, values);
	note_output(c, *word, values, first);
	for (int i = 0; i <= values && !err; i++) {
		err = apart ? 0 : strings_add(&c->proxied, word[i]);
		if (!err && first)
			err = strings_add(&c->options, word[i]);
	}
	return err;
}

/* An option of mpirun at *at; each value is a word of its own from here on. */
static int take_mpirun(struct command *c, char *const **at, int major, bool first)
{
	char *const *word = *at;
	char *apart[2 + VALUES_OF_MCA] = {};
	size_t end, n = 0;
	int values = values_of(*word, major, &end), err = check_option(word, values, major);

	if (err)
		return err;
	if (end) {
		apart[n++] = strndup(*word, end);
		apart[n++] = *word + end + ((*word)[end] == '=');
	}
	for (int i = !!end; i <= values && end; i++)
		apart[n++] = word[i];
	if (end && !apart[0])
		return -ENOMEM;
	err = end ? add_option(c, apart, n - 1, first) : add_option(c, word, values, first);
	if (end)
		free(apart[0]);
	*at += 1 + values;
	return err;
}

/* The options from *at on, up to the program; `first`: they are those of the first one. */
static int take_options(struct command *c, char *const **at, int major, bool first)
{
	int err = 0;

	while (!err && **at && is_option(**at)) {
		if (!strcmp(**at, "--")) {	/* behind it is the program */
			++*at;
			break;
		}
		err = first ? command_take_own(c, at) : 0;
		if (!err)
			err = take_mpirun(c, at, major, first);
		else if (err > 0)
			err = 0;
	}
	return err;
}

/* A program and its arguments from *at on, up to the next ":". */
static int take_program(struct command *c, char *const **at, char *const *inserted)
{
	int err = 0;

	if (!**at)
		return report_fail(-EINVAL, "there is no program to start");
	for (; *inserted && !err; inserted++)
		err = strings_add(&c->proxied, *inserted);
	for (; **at && strcmp(**at, ":") && !err; ++*at)
		err = strings_add(&c->proxied, **at);
	return err;
}

static int split(struct command *c, char *const *arguments, int major, char *const *inserted)
{
	char *const *at = arguments;
	int err = take_options(c, &at, major, true);

	if (!*at)
		return err;
	for (char *const *each = at; *each && !err; each++)
		err = strings_add(&c->program, *each);
	if (!err)
		err = take_program(c, &at, inserted);
	while (*at && !err) {
		err = strings_add(&c->proxied, *at++);
		if (!err)
			err = take_options(c, &at, major, false);
		if (!err)
			err = take_program(c, &at, inserted);
	}
	return err;
}

int command_split(struct command *c, char *const *arguments, int major, char *const *inserted)
{
	int err;

	*c = (struct command){ .major = major };
	err = split(c, arguments, major, inserted);
	if (err)
		command_free(c);
	return err && report_error() != err ? report_errno(err, "no memory") : err;
}

void command_free(struct command *c)
{
	strings_free(c->options);
	strings_free(c->program);
	strings_free(c->proxied);
	strings_free(c->settings);
	strings_free(c->own);
	free(c->hosts);
	memset(c, 0, sizeof(*c));
}

/* The last of `settings` with this name; NULL. */
static const char *last_of(char **settings, const char *name)
{
	size_t length = strlen(name);
	const char *found = NULL;

	for (char **each = settings; each && *each; each++)
		if (!strncmp(*each, name, length) && (*each)[length] == '=')
			found = *each + length + 1;
	return found;
}

const char *command_own(const struct command *c, const char *name)
{
	return last_of(c->own, name);
}

bool command_is_option(const char *word, const char *name)
{
	size_t length = strlen(name);

	if (word[0] != '-')
		return false;
	word += 1 + (word[1] == '-');
	return !strncmp(word, name, length) && (!word[length] || word[length] == '=');
}

const char *command_parameter(const struct command *c, const char *name)
{
	const char *found = last_of(c->settings, name);
	char variable[80];

	snprintf(variable, sizeof(variable), "OMPI_MCA_%s", name);
	return found ?: getenv(variable);
}
