// SPDX-License-Identifier: GPL-2.0
/* Which hosts cr_mpirun lets the launcher use when some were lost, or wait to replace these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/allocation.h"
#include "launch/command.h"
#include "launch/hosts.h"
#include "report/report.h"

static char *const proxy[] = { "cr_rank", NULL };

/* The words that the launcher gets, with spaces between them. */
static void check(const char *arguments, const char *lost, unsigned int spares, const char *expected)
{
	char copy[200], got[400] = "", *word[20], *rest = copy;
	struct command c;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", arguments);
	while ((word[n] = strsep(&rest, " ")))
		n++;
	report_clear();
	assert_int_equal(command_split(&c, word, 4, proxy), 0);
	if (hosts_limit(&c, lost, spares)) {
		snprintf(got, sizeof(got), "%s", report_message());
	} else {
		for (char **each = c.proxied; *each; each++)
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", *got ? " " : "",
				 *each);
	}
	assert_string_equal(got, expected);
	command_free(&c);
}

static void lost_hosts(void **state)
{
	(void)state;
	check("--host a:2,b:2,c:2 -np 4 p", NULL, 0, "--host a:2,b:2,c:2 -np 4 cr_rank p");
	check("--host a:2,b:2,c:2 -np 4 p", "", 0, "--host a:2,b:2,c:2 -np 4 cr_rank p");
	check("--host a:2,b:2,c:2 -np 4 p", "b", 0, "--host a:2,c:2 -np 4 cr_rank p");
	check("-H a,a,b,b,ab p", "a", 0, "-H b,b,ab cr_rank p");
	check("--host=a,b p", "a", 0, "--host=b cr_rank p");
	check("-host a,b p --host a", "a", 0, "-host b cr_rank p --host a");
	check("--host a,b p : --host b,c q", "b", 0, "--host a cr_rank p : --host c cr_rank q");
	check("--host node1.site,node2 p", "node1", 0, "--host node2 cr_rank p");
	check("--host node1,node2 p", "node1.site,other", 0, "--host node2 cr_rank p");
	check("--host node1.here,node2 p", "node1.there", 0, "--host node1.here,node2 cr_rank p");
	check("--host me@Node1:4,node2 p", "node1", 0, "--host node2 cr_rank p");
	check("--host +n1,a,b p", "a", 0, "--host +n1,b cr_rank p");
	check("--host 127.0.0.1,b p", "localhost", 0, "--host b cr_rank p");
	check("-np 2 p", "a", 0, "-np 2 cr_rank p");
	check("--host a:4 p", "a", 0, "no host of a:4 is left");
	check("--host a,b p : --host b q", "b", 0, "no host of b is left");
}

static void spare_hosts(void **state)
{
	(void)state;
	check("--host a:2,b:2,c:2 p", NULL, 1, "--host a:2,b:2 cr_rank p");
	check("--host a,b,c,a,c p", NULL, 2, "--host a,a cr_rank p");
	check("--host a:2,b:2,c:2 p", "a", 1, "--host b:2,c:2 cr_rank p");
	check("--host a:2,b:2,c:2 p", "c", 1, "--host a:2,b:2 cr_rank p");
	check("--host a,b,c,d p", "a", 2, "--host b,c cr_rank p");
	check("--host a,b,c,d p", "a,b,c", 2, "--host d cr_rank p");
	check("--host a,b p", NULL, 2, "--spares leaves no host of a,b to begin with");
}

/* What the launcher reads in the place of this file. */
static void check_hostfile(char *name, const char *lost, unsigned int spares, const char *expected)
{
	char got[400] = "", *word[] = { "--hostfile", name, "p", NULL };
	struct command c;
	FILE *file;

	report_clear();
	assert_int_equal(command_split(&c, word, 4, proxy), 0);
	if (hosts_limit(&c, lost, spares)) {
		snprintf(got, sizeof(got), "%s", report_message());
	} else {
		/* The next cr_mpirun in this one's place does not inherit it. */
		assert_true(fcntl(atoi(strrchr(c.proxied[1], '/') + 1), F_GETFD) & FD_CLOEXEC);
		file = fopen(c.proxied[1], "re");
		assert_non_null(file);
		got[fread(got, 1, sizeof(got) - 1, file)] = '\0';
		fclose(file);
	}
	assert_string_equal(got, expected);
	command_free(&c);
}

/* Likewise of one with these lines. */
static void check_file(const char *lines, const char *lost, unsigned int spares, const char *expected)
{
	char name[] = "/tmp/hosts.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0 && write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines));
	close(fd);
	check_hostfile(name, lost, spares, expected);
	unlink(name);
}

static void files_of_hosts(void **state)
{
	char *missing[] = { "--hostfile", "/nowhere/hosts", "p", NULL };
	struct command c;

	(void)state;
	check_file("a slots=2\n# b\n\nb slots=2\nc\tslots=2 max-slots=4\n", "b", 0,
		   "a slots=2\n# b\n\nc\tslots=2 max-slots=4\n");
	check_file("a\nb\na\nb\n", "a", 0, "b\nb\n");
	check_file("  me@a slots=2\r\nb\r\n^c", "a", 0, "b\r\n^c\n");
	check_file("a\nb\nc\nx\n", "b", 2, "a\nc\n");
	report_clear();
	assert_int_equal(command_split(&c, missing, 4, proxy), 0);
	assert_int_not_equal(hosts_limit(&c, "a", 0), 0);
	assert_string_equal(report_message(), "/nowhere/hosts: No such file or directory");
	command_free(&c);
}

/* What cr_restart --hostfile and the like do to ranks whose files are on their nodes' disks. */
static void files_of_snapshots(void **state)
{
	char folder[] = "/tmp/hosts.XXXXXX", file[sizeof(folder) + 6];
	FILE *out;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/hosts", folder);
	out = fopen(file, "we");
	assert_non_null(out);
	fputs("a\na\nb\n", out);
	fclose(out);
	assert_int_equal(setenv("KCR_MPI_RESTART", folder, 1), 0);
	check_hostfile(file, NULL, 1, "a\na\nb\n");
	check_hostfile(file, "b", 2, "a\na\n");
	assert_int_equal(setenv("KCR_MPI_RESTART", "/another", 1), 0);
	check_hostfile(file, NULL, 1, "a\na\n");
	unsetenv("KCR_MPI_RESTART");
	unlink(file);
	rmdir(folder);
}

static void allocations(void **state)
{
	char name[] = "/tmp/hosts.XXXXXX", *list;
	int fd = mkstemp(name);

	(void)state;
	check("-np 2 p", NULL, 1, "--spares needs the hosts: by --host, by --hostfile or of a scheduler");
	assert_int_equal(write(fd, "a\na\nb.site\nb.site\n", 18), 18);
	setenv("PBS_NODEFILE", name, 1);
	list = allocation_hosts();
	assert_string_equal(list, "a,a,b.site,b.site");
	free(list);
	check("-np 2 p", "b", 0, "--host a,a -np 2 cr_rank p");
	check("-np 2 p : -np 1 q", "a", 0,
	      "--host b.site,b.site -np 2 cr_rank p : --host b.site,b.site -np 1 cr_rank q");
	check("-np 2 p", NULL, 1, "--host a,a -np 2 cr_rank p");
	check("--host x,y p", "a", 0, "--host x,y cr_rank p");
	check("-np 2 p", "a,b", 0, "no host of the allocation is left");
	unsetenv("PBS_NODEFILE");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "a 4 all.q UNDEFINED\nb 2 all.q x\n", 32, 0), 32);
	setenv("PE_HOSTFILE", name, 1);
	check("-np 2 p", "a", 0, "--host b:2 -np 2 cr_rank p");
	unsetenv("PE_HOSTFILE");
	close(fd);
	unlink(name);
	assert_int_equal(allocation_tasks("4,2(x3),1", 0), 4);
	assert_int_equal(allocation_tasks("4,2(x3),1", 3), 2);
	assert_int_equal(allocation_tasks("4,2(x3),1", 4), 1);
	assert_int_equal(allocation_tasks("4,2(x3),1", 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_hosts),
		cmocka_unit_test(spare_hosts),
		cmocka_unit_test(files_of_hosts), cmocka_unit_test(files_of_snapshots),
		cmocka_unit_test(allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
