// SPDX-License-Identifier: GPL-2.0
/* A rank's program is found in the PATH that it has itself, as execvp(3) finds programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/start.h"

#define FAILED 100		/* and the errno */

static char folder[] = "/tmp/kcr-start-XXXXXX";

/* A script that a shell has to execute, as it has no first line for that. */
static void make(const char *name, const char *text, mode_t mode)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(name, mode), 0);
}

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mkdir((const char *[]){ "one", "two", "three" }[i], 0700), 0);
	make("here", "exit 7\n", 0700);
	make("one/plain", "exit 1\n", 0600);
	make("two/plain", "test \"$MARK\" = \"$1\" && exit 8\n", 0700);
	make("three/plain", "exit 3\n", 0700);
	make("one/closed", "exit 1\n", 0600);
	return 0;
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* The exit status of argv[0] with this PATH ("PATH=…", or NULL), or FAILED and the errno. */
static int status_of(const char *name, char *path)
{
	char *const argv[] = { (char *)name, "mark", NULL };
	char *const with[] = { "MARK=mark", path, NULL };
	struct launch_start s;
	int fd = start_describe(argv), status;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(start_read(fd, &s), 0);
	close(fd);
	pid = fork();
	if (!pid)
		_exit(FAILED - start_execute(&s, with));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	start_free(&s);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void found(void **state)
{
	(void)state;
	assert_int_equal(status_of("plain", "PATH=none:one:two:three"), 8);	/* one's is no program */
	assert_int_equal(status_of("plain", "PATH=here:two"), 8);	/* no folder */
	assert_int_equal(status_of("here", "PATH=one::two"), 7);	/* empty: the working folder */
	assert_int_equal(status_of("here", "PATH=one:"), 7);
	assert_int_equal(status_of("./here", "PATH=none"), 7);
	assert_int_equal(status_of("true", NULL), 0);
}

static void not_found(void **state)
{
	(void)state;
	assert_int_equal(status_of("missing", "PATH=none:one"), FAILED + ENOENT);
	assert_int_equal(status_of("closed", "PATH=one:two"), FAILED + EACCES);
	assert_int_equal(status_of("here", "PATH=one:two"), FAILED + ENOENT);
	assert_int_equal(status_of("./missing", "PATH=one"), FAILED + ENOENT);
	assert_int_equal(status_of("one/closed", "PATH=one"), FAILED + EACCES);
	assert_int_equal(status_of("", "PATH=one"), FAILED + ENOENT);
}

static void path_too_long(void **state)
{
	static char path[8192] = "PATH=";

	(void)state;
	memset(path + 5, 'x', 5000);
	strcat(path, ":two");
	assert_int_equal(status_of("plain", path), 8);
	path[5005] = '\0';
	assert_int_equal(status_of("plain", path), FAILED + ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found),
		cmocka_unit_test(not_found),
		cmocka_unit_test(path_too_long),
	};

	return cmocka_run_group_tests(tests, set_up, clean);
}
