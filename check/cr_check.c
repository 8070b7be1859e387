// SPDX-License-Identifier: GPL-2.0
/*
 * cr_check: does KCR work here, and if not, why?  Or would it save this program (program.h)?
 * See cr_check(1); check.h is next.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "check/program.h"
#include "report/report.h"
#include "util/usage.h"

#define EXIT_USAGE	255

static const struct check {
	const char *name;
	void (*ask)(struct check_answer *answer);
} checks[] = {
	{ "module", check_module },	{ "features", check_features },
	{ "processor", check_processor }, { "tracing", check_tracing },
	{ "open-mpi", check_open_mpi },	{ "slurm", check_slurm },
	{ "self-test", check_self },
};

static const char *const results[] = {
	[CHECK_OK] = "ok", [CHECK_NOTE] = "note", [CHECK_FAILED] = "failed",
};

void check_answer(struct check_answer *answer, enum check_result result, const char *advice,
		  const char *format, ...)
{
	va_list args;

	answer->result = result;
	snprintf(answer->advice, sizeof(answer->advice), "%s", advice);
	va_start(args, format);
	vsnprintf(answer->text, sizeof(answer->text), format, args);
	va_end(args);
}

/* The messages of other rooms are "what: what to do"; they are not taken apart. */
void check_failed(struct check_answer *answer, int err)
{
	check_answer(answer, CHECK_FAILED, "", "%s", report_message() ? report_message() : strerror(-err));
	report_clear();
}

static void print_text(const struct check *check, const struct check_answer *answer)
{
	printf("%-6s %-10s %s\n", results[answer->result], check->name, answer->text);
	if (*answer->advice)
		printf("%-17s to do: %s\n", "", answer->advice);
	fflush(stdout);
}

static void add_json(cJSON *array, const struct check *check, const struct check_answer *answer)
{
	cJSON *one = cJSON_CreateObject();

	cJSON_AddStringToObject(one, "check", check->name);
	cJSON_AddStringToObject(one, "result", results[answer->result]);
	cJSON_AddStringToObject(one, "text", answer->text);
	if (*answer->advice)
		cJSON_AddStringToObject(one, "advice", answer->advice);
	cJSON_AddItemToArray(array, one);
}

/* All of them; did none fail? */
static bool run(bool json)
{
	cJSON *array = json ? cJSON_CreateArray() : NULL;
	bool good = true;
	char *text;

	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		struct check_answer answer = {};

		checks[i].ask(&answer);
		good &= answer.result != CHECK_FAILED;
		if (array)
			add_json(array, &checks[i], &answer);
		else
			print_text(&checks[i], &answer);
	}
	text = array ? cJSON_Print(array) : NULL;
	if (text)
		puts(text);
	free(text);
	cJSON_Delete(array);
	return good;
}

static int usage(FILE *out)
{
	fputs("Usage: cr_check [--json]\n"
	      "       cr_check [--json] [--stop] [--dir=FOLDER] PID\n"
	      "Find out whether programs can be saved and restarted here, and if not, why; or, whether\n"
	      "process PID and its descendants can be saved, how large that is and how long it takes.\n\n"
	      "      --stop        stop them for a moment, to see what shows only then\n"
	      "  -d, --dir=FOLDER  where the context file is to go (the current folder)\n"
	      "      --json        the answers as a JSON array or, with PID, object\n"
	      "  -?, -h, --help    this text\n"
	      "      --version     version\n\n"
	      "Exit status: 0 if nothing fails, 1 if something does.\n", out);
	return out == stderr ? EXIT_USAGE : 0;
}

/* The PID, if there is one.  0, or -EINVAL with a message. */
static int parse_operands(char *const *operand, struct program_options *o)
{
	char *end;
	long pid;

	if (!operand[0])
		return o->stop || strcmp(o->folder, ".") ?
			report_fail(-EINVAL, "--stop and --dir are for a PID: which?") : 0;
	errno = 0;
	pid = strtol(operand[0], &end, 10);
	if (operand[1] || errno || *end || pid <= 0 || pid > INT_MAX)
		return report_fail(-EINVAL, "\"%s\" is not a PID, or not the only one",
				   operand[operand[1] ? 1 : 0]);
	o->pid = (pid_t)pid;
	return 0;
}

/* -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct program_options *o)
{
	static const struct option long_options[] = {
		{ "dir", required_argument, NULL, 'd' },
		{ "json", no_argument, NULL, 'j' },
		{ "stop", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{}
	};
	int option;

	while ((option = getopt_long(argc, argv, "?hd:", long_options, NULL)) != -1) {
		if (option == 'V') {
			puts("cr_check (KCR) " KCR_VERSION);
			return 0;
		}
		if (usage_is_wanted(option, argv))
			return usage(stdout);
		if (option == '?')
			return usage(stderr);
		o->json |= option == 'j';
		o->stop |= option == 's';
		if (option == 'd')
			o->folder = optarg;
	}
	if (!parse_operands(argv + optind, o))
		return -1;
	report_print(-EINVAL);
	fputs("Try 'cr_check --help'.\n", stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct program_options o = { .folder = "." };
	int code;

	report_set_program("cr_check");
	code = parse(argc, argv, &o);
	if (code >= 0)
		return code;
	if (!(o.pid ? program_examine(&o) : run(o.json)))
		return 1;
	if (fflush(stdout) || ferror(stdout)) {
		report_print(report_errno(-errno, "cannot write"));
		return 1;
	}
	return 0;
}
