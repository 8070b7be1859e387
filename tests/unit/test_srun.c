// SPDX-License-Identifier: GPL-2.0
/* Options of srun, and the commands that cr_mpirun makes of them (launch/srun.h). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/snapshot.h"
#include "job/srun.h"
#include "launch/launcher.h"
#include "launch/reach.h"
#include "launch/settings.h"
#include "launch/srun.h"
#include "report/report.h"

static char *proxy[] = { "/bin/cr_rank", NULL };

static void expect_words(char **words, const char *text)
{
	char joined[1024] = "";

	for (; words && *words; words++) {
		strcat(joined, *words);
		strcat(joined, words[1] ? " " : "");
	}
	assert_string_equal(joined, text);
}

static int take_all(char *const *words, char ***out)
{
	int got = 1;

	while (*words && got > 0)
		got = srun_take_option(&words, out);
	return got;
}

static void test_forms(void **state)
{
	char *words[] = { "-n4", "-N", "2", "-lO", "--ntasks-per-no", "3", "--cpu-bind=none", "-K",
			  "-K0", "--wait=", "-vc2", "--kill-on-bad", NULL },
	     *others[] = { "--tasks=4", "--tasks-per-node", "2", "--cpu_bind=none", "--whole", "--inter",
			   "--pack-group=0", NULL };
	char **out = NULL;

	(void)state;
	assert_int_equal(take_all(words, &out), 1);
	expect_words(out, "--ntasks=4 --nodes=2 --label --overcommit --ntasks-per-node=3 "
		     "--cpu-bind=none --kill-on-bad-exit --kill-on-bad-exit=0 --wait= --verbose "
		     "--cpus-per-task=2 --kill-on-bad-exit");
	assert_int_equal(srun_topic(out[0]), TOPIC_COUNT);
	assert_int_equal(srun_topic(out[4]), TOPIC_MAP);
	assert_int_equal(srun_topic(out[6]), TOPIC_NONE);
	assert_string_equal(srun_value(out[1], "nodes"), "2");
	assert_null(srun_value(out[1], "node"));
	assert_string_equal(srun_value(out[2], "label"), "");
	strings_free(out);
	out = NULL;
	assert_int_equal(take_all(others, &out), 1);
	expect_words(out, "--ntasks=4 --ntasks-per-node=2 --cpu-bind=none --whole --interactive "
		     "--het-group=0");
	strings_free(out);
}

static void test_no_options(void **state)
{
	char *words[][3] = { { "program" }, { "-" }, { "--" }, { "--nt", "2" }, { "--recover" }, { "-j" } };
	char *wrong[][2] = { { "-lj" }, { "-n" }, { "--nodes" }, { "--label=1" } };

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		char **out = NULL;

		assert_int_equal(take_all(words[i], &out), 0);
		assert_null(out);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char **out = NULL;

		report_clear();
		assert_int_equal(take_all(wrong[i], &out), -EINVAL);
		assert_int_equal(report_error(), -EINVAL);
		strings_free(out);
	}
}

static void split(struct command *c, char *const *words)
{
	setenv("SLURM_JOB_ID", "7", 1);
	assert_int_equal(srun_split(c, words, proxy), 0);
}

static void test_commands(void **state)
{
	char *words[] = { "--launcher", "srun", "--interval=5m", "-n", "4", "--", "solver", "-n", NULL };
	char **command = NULL;
	struct command c;

	(void)state;
	split(&c, words);
	expect_words(c.options, "--launcher=srun --interval=5m --ntasks=4");
	expect_words(c.program, "solver -n");
	assert_string_equal(command_own(&c, "interval"), "5m");
	assert_int_equal(srun_for_ranks(&c, NULL, false, &command), 0);
	expect_words(command, "srun --quit-on-interrupt --mpi=pmix --kill-on-bad-exit=1 --ntasks=4 "
		     "/bin/cr_rank solver -n");
	strings_free(command);
	command_free(&c);
}

static void test_refused(void **state)
{
	char *words[][4] = {
		{ "--pty", "sh" }, { "--mem-bind=local", "p" }, { "--multi-prog", "list" },
		{ "-M", "other", "p" }, { "--uid", "5", "p" }, { "--mpi=none", "p" },
		{ "--export=NONE", "p" }, { "--export=ALLOWED", "p" }, { "p", ":", "q" }, { "--spares=1" },
		{ "--pack-group=0", "p" },
	};
	struct command c;

	(void)state;
	setenv("SLURM_JOB_ID", "7", 1);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		report_clear();
		assert_true(srun_split(&c, words[i], proxy) < 0);
		assert_non_null(report_message());
	}
}

static void test_refused_variables(void **state)
{
	static const struct {
		const char *name, *value;
		bool fits;
	} variables[] = {
		{ "SLURM_BCAST", "/tmp/p", false }, { "SLURM_CLUSTERS", "other", false },
		{ "SLURM_MEM_BIND", "local", false }, { "SRUN_CONTAINER", "/c", false },
		{ "SLURM_CONTAINER", "/c", false }, { "SLURM_STDINMODE", "file", false },
		{ "SLURM_STDINMODE", "none", true }, { "SLURM_HET_SIZE", "2", false },
		{ "SLURM_HET_SIZE", "1", true }, { "SLURM_BCAST_EXCLUDE", "/lib", true },
	};
	char *words[] = { "p", NULL };
	struct command c;

	(void)state;
	setenv("SLURM_JOB_ID", "7", 1);
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		report_clear();
		setenv(variables[i].name, variables[i].value, 1);
		assert_int_equal(srun_split(&c, words, proxy), variables[i].fits ? 0 : -EOPNOTSUPP);
		unsetenv(variables[i].name);
		command_free(&c);
	}
}

static void test_input(void **state)
{
	char *fits[][3] = { { "--input=all", "p" }, { "-inone", "p" }, { "--input=3", "p" },
			    { "--input=in.%t", "p" } };
	char *words[] = { "--input=3.in", "p", NULL };
	struct command c;

	(void)state;
	for (size_t i = 0; i < sizeof(fits) / sizeof(*fits); i++) {
		split(&c, fits[i]);
		command_free(&c);
	}
	report_clear();
	assert_int_equal(srun_split(&c, words, proxy), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), "say < 3.in"));
}

static void test_help(void **state)
{
	char *words[] = { "--help", NULL };
	struct command c;

	(void)state;
	unsetenv("SLURM_JOB_ID");
	assert_int_equal(srun_split(&c, words, proxy), 0);
	assert_null(c.program);
	expect_words(c.proxied, "--help");
	command_free(&c);
}

static void test_lost_nodes(void **state)
{
	char *words[] = { "--mpi=pmix_v4", "-K0", "solver", NULL };
	char *fixed[] = { "-N2", "solver", NULL };
	char **command = NULL;
	struct command c;

	(void)state;
	setenv("SLURM_JOB_NUM_NODES", "4", 1);
	split(&c, words);
	assert_int_equal(srun_for_ranks(&c, "b,c", true, &command), 0);
	expect_words(command, "srun --quit-on-interrupt --overlap --open-mode=append --nodes=1-2 --exclude=b,c "
		     "--mpi=pmix_v4 --kill-on-bad-exit=0 /bin/cr_rank solver");
	strings_free(command);
	command_free(&c);
	command = NULL;
	split(&c, fixed);
	assert_int_equal(srun_for_ranks(&c, "b", true, &command), 0);
	expect_words(command, "srun --quit-on-interrupt --overlap --open-mode=append --mpi=pmix "
		     "--kill-on-bad-exit=1 --exclude=b --nodes=2 /bin/cr_rank solver");
	strings_free(command);
	command_free(&c);
	command = NULL;
	assert_int_equal(srun_for_daemons("/bin/cr_node", "b", &command), 0);
	assert_string_equal(command[1], "--exclude=b");
	assert_string_equal(command[4], "--nodes=3");
	assert_string_equal(command[5], "--ntasks=3");
	strings_free(command);
}

static void test_exclusive(void **state)
{
	char *words[] = { "--exclusive", "--open-mode=truncate", "p", NULL };
	char **command = NULL;
	struct command c;

	(void)state;
	split(&c, words);
	assert_int_equal(srun_for_ranks(&c, NULL, true, &command), 0);
	assert_string_equal(command[2], "--mpi=pmix");
	strings_free(command);
	command_free(&c);
	command = NULL;
	split(&c, words + 2);
	setenv("SLURM_OPEN_MODE", "t", 1);
	setenv("SLURM_EXCLUSIVE", "yes", 1);
	assert_int_equal(srun_for_ranks(&c, NULL, true, &command), 0);
	unsetenv("SLURM_EXCLUSIVE");
	unsetenv("SLURM_OPEN_MODE");
	assert_string_equal(command[2], "--mpi=pmix");
	strings_free(command);
	command_free(&c);
}

/* `srun`, `slurm`: SRUN_EXPORT_ENV and SLURM_EXPORT_ENV, or NULL. */
static void expect_export(const char *srun, const char *slurm, const char *expected)
{
	char *words[] = { "p", NULL }, **command = NULL;
	struct command c;

	unsetenv("SLURM_EXPORT_ENV");
	if (srun)
		setenv("SRUN_EXPORT_ENV", srun, 1);
	if (slurm)
		setenv("SLURM_EXPORT_ENV", slurm, 1);
	split(&c, words);
	assert_int_equal(srun_for_ranks(&c, NULL, false, &command), 0);
	assert_null(getenv("SRUN_EXPORT_ENV"));
	assert_string_equal(getenv("SLURM_EXPORT_ENV"), expected);
	strings_free(command);
	command_free(&c);
}

static void test_export(void **state)
{
	(void)state;
	expect_export(NULL, NULL, "ALL");
	expect_export(NULL, "NONE", "ALL");
	expect_export("NONE", "ALL,FOO=1", "ALL");
	expect_export(NULL, "ALL,FOO=1", "ALL,FOO=1");
	expect_export("ALL,BAR=2", "NONE", "ALL,BAR=2");
	expect_export(NULL, "ALLOWED,FOO=1", "ALL");
}

static void test_name_of_node(void **state)
{
	char name[65], host[65] = "";

	(void)state;
	gethostname(host, sizeof(host) - 1);
	setenv("SLURMD_NODENAME", "its-name-in-slurm", 1);
	reach_name_node(true, name, sizeof(name));
	assert_string_equal(name, "its-name-in-slurm");
	reach_name_node(false, name, sizeof(name));	/* by mpirun, in a job of Slurm */
	assert_string_equal(name, host);
	unsetenv("SLURMD_NODENAME");
	reach_name_node(true, name, sizeof(name));
	assert_string_equal(name, host);
}

static void test_output_of_srun(void **state)
{
	static const char *const variables[] = { "SLURM_LABELIO", "SLURM_STDERRMODE", "SLURM_STDOUTMODE" };
	char *words[] = { "p", NULL };
	struct command c;

	(void)state;
	split(&c, words);
	settings_of_launcher(&c, 4);
	assert_null(getenv(SETTINGS_OUTPUT_VARIABLE));
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		setenv(variables[i], "1", 1);
		settings_of_launcher(&c, 4);
		unsetenv(variables[i]);
		assert_non_null(getenv(SETTINGS_OUTPUT_VARIABLE));
		settings_of_launcher(&c, 4);
		assert_null(getenv(SETTINGS_OUTPUT_VARIABLE));
	}
	command_free(&c);
}

/* What srun gets of the user's options when node b is lost. */
static void expect_without_b(char *option, const char *expected)
{
	char *words[] = { option, "--distribution=arbitrary", "--relative=1", "p", "--exclude=b", NULL };
	char **command = NULL, text[200];
	struct command c;

	split(&c, words);
	assert_int_equal(srun_for_ranks(&c, "b", false, &command), 0);
	snprintf(text, sizeof(text), "%s /bin/cr_rank p --exclude=b", expected);
	expect_words(command + 5, text);
	strings_free(command);
	command_free(&c);
}

static void test_users_nodes(void **state)
{
	char path[] = "/tmp/kcr-hosts.XXXXXX", file[64], list[64];
	FILE *hosts = fdopen(mkstemp(path), "w");

	(void)state;
	assert_non_null(hosts);
	fputs("a\nb\t# lost\na\nc\n", hosts);
	fclose(hosts);
	snprintf(file, sizeof(file), "--nodefile=%s", path);
	snprintf(list, sizeof(list), "--exclude=%s", path);
	setenv("SLURM_JOB_NUM_NODES", "4", 1);
	expect_without_b("--exclude=d", "--exclude=d,b --distribution=arbitrary");
	expect_without_b(list, "--exclude=a,b,a,c,b --distribution=arbitrary");
	expect_without_b("--nodelist=a,b,a", "--exclude=b --nodelist=a");
	expect_without_b("--nodelist=a,a,c", "--exclude=b --nodelist=a,a,c --distribution=arbitrary");
	expect_without_b("--nodelist=a[1-3]", "--exclude=b");
	expect_without_b("--nodelist=b", "--exclude=b");
	expect_without_b(file, "--exclude=b --nodelist=a,c");
	setenv("SLURM_HOSTFILE", path, 1);
	setenv("SLURM_DISTRIBUTION", "arbitrary", 1);
	expect_without_b("--label", "--exclude=b --label");
	assert_null(getenv("SLURM_HOSTFILE"));
	assert_null(getenv("SLURM_DISTRIBUTION"));
	remove(path);
}

/* Else all ranks would be confined to the few processors that one was to have. */
static void test_daemons_are_not_confined(void **state)
{
	static const char *const wishes[] = {
		"SLURM_CPUS_PER_GPU", "SLURM_CPUS_PER_TASK", "SLURM_EXACT", "SLURM_EXCLUSIVE",
		"SLURM_HOSTFILE", "SLURM_MEM_BIND", "SLURM_STDOUTMODE", "SRUN_CPUS_PER_TASK",
	};
	char *words[] = { "sh", "-c", "! env | grep -E '^(SLURM|SRUN)_' | grep -v '=7$' && "
			  "[ $SLURM_JOB_ID$SLURM_STEPMGR$OTHER = 777 ]", NULL };
	char **command = NULL;
	struct launcher step;
	bool unbound = false;
	int status;

	(void)state;
	for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++)
		setenv(wishes[i], "1", 1);
	setenv("SLURM_JOB_ID", "7", 1);
	setenv("SLURM_STEPMGR", "7", 1);
	setenv("OTHER", "7", 1);
	assert_int_equal(launcher_start_aside(&step, words), 0);
	assert_int_equal(waitpid(step.pid, &status, 0), step.pid);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
		assert_non_null(getenv(wishes[i]));
		unsetenv(wishes[i]);
	}
	assert_int_equal(srun_for_daemons("/bin/cr_node", NULL, &command), 0);
	for (char **each = command; *each; each++)
		unbound |= !strcmp(*each, "--mem-bind=none");
	assert_true(unbound);
	strings_free(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms), cmocka_unit_test(test_no_options),
		cmocka_unit_test(test_commands), cmocka_unit_test(test_help), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lost_nodes), cmocka_unit_test(test_users_nodes),
		cmocka_unit_test(test_refused_variables), cmocka_unit_test(test_input),
		cmocka_unit_test(test_name_of_node), cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_export), cmocka_unit_test(test_output_of_srun),
		cmocka_unit_test(test_daemons_are_not_confined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
