// SPDX-License-Identifier: GPL-2.0
/* tree_search(): what it finds, and where it does not look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "resource/tree_search.h"

static char top[] = "/tmp/kcr-tree.XXXXXX";

static void path_in(char path[128], const char *name)
{
	snprintf(path, 128, "%s%s%s", top, *name ? "/" : "", name);
}

static int make_tree(void **state)
{
	static const char *const folders[] = { "a", "a/b", "a/b/c", "empty", "elsewhere" };
	char path[128];

	(void)state;
	if (!mkdtemp(top))
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		path_in(path, folders[i]);
		if (mkdir(path, 0755))
			return -1;
	}
	path_in(path, "a/b/c/file");
	close(open(path, O_CREAT | O_WRONLY, 0600));
	path_in(path, "elsewhere/target");
	close(open(path, O_CREAT | O_WRONLY, 0600));
	path_in(path, "a/link");
	return symlink("../elsewhere", path);
}

static int remove_tree(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", top);
	return system(command);
}

/* What is_it() is asked for has the right number; arg: how many of them are not it. */
static bool after_some(const char *path, const void *arg)
{
	int *others = *(int *const *)arg;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (*others)-- <= 0;
}

static char *search_for(const char *name, const char *below, unsigned int ms, int others)
{
	char path[128], start[128];
	struct stat st;
	int *counter = &others;

	path_in(path, name);
	path_in(start, below);
	assert_int_equal(stat(path, &st), 0);
	return tree_search(start, st.st_ino, ms, after_some, &counter);
}

static void finds(const char *name, const char *below)
{
	char path[128], *found = search_for(name, below, 10000, 0);

	path_in(path, name);
	assert_non_null(found);
	assert_string_equal(found, path);
	free(found);
}

static void test_found(void **state)
{
	(void)state;
	finds("a/b/c/file", "");
	finds("a/b/c", "");
	finds("a/b/c", "a/b/c");
	finds("", "");
	finds("elsewhere/target", "");	/* by its own name, not that of the link */
}

static void test_not_found(void **state)
{
	(void)state;
	assert_null(search_for("elsewhere/target", "a", 10000, 0));	/* a link leads there */
	assert_null(search_for("a/b/c/file", "", 10000, 1));		/* is_it() says no */
	assert_null(search_for("a/b/c/file", "", 0, 0));			/* no time */
	assert_null(tree_search("/nowhere", 1, 10000, after_some, NULL));
	assert_null(tree_search("/dev/null", 1, 10000, after_some, NULL));
}

/* /proc is mounted below /, and its top has inode 1, as other file systems have. */
static void test_other_mount(void **state)
{
	struct stat root, proc;
	int others = 0, *counter = &others;
	char *found;

	(void)state;
	if (stat("/", &root) || stat("/proc", &proc) || root.st_dev == proc.st_dev)
		skip();
	found = tree_search("/", proc.st_ino, 500, after_some, &counter);
	assert_true(!found || strcmp(found, "/proc"));
	free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_other_mount),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
