// SPDX-License-Identifier: GPL-2.0
/* Where a snapshot is put: beside leftovers that cannot be removed yet, synced, and in a folder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/destination.h"
#include "job/local.h"

static size_t entries(const char *folder)
{
	DIR *list = opendir(folder);
	size_t count = 0;

	for (struct dirent *entry; (entry = readdir(list));)
		count += *entry->d_name != '.';
	closedir(list);
	return count;
}

/* On NFS a file that is still open stays in its folder; here it is one that unlink(2) does not take. */
static void removed_later(void **state)
{
	char parent[] = "/tmp/destination.XXXXXX", path[64], partial[80], stays[100];
	struct job_destination *d;
	char **gone = NULL;
	DIR *list;
	bool local;

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/saved.kcr", parent);
	snprintf(partial, sizeof(partial), "%s.partial", path);
	snprintf(stays, sizeof(stays), "%s/.nfs1", partial);
	assert_int_equal(mkdir(partial, 0700), 0);
	assert_int_equal(mkdir(stays, 0700), 0);
	assert_int_equal(job_destination_open(&d, path, NULL, 1, &gone), 0);
	assert_string_equal(job_destination_folder(d, &local), partial);
	assert_int_not_equal(access(stays, F_OK), 0);
	assert_int_equal(entries(parent), 2);
	list = opendir(parent);			/* whoever had it open has ended */
	for (struct dirent *entry; (entry = readdir(list));) {
		snprintf(stays, sizeof(stays), "%s/%.60s/.nfs1", parent, entry->d_name);
		rmdir(stays);
	}
	closedir(list);
	job_destination_close(d, &gone);
	assert_null(gone);
	assert_int_equal(entries(parent), 0);
	assert_int_equal(rmdir(parent), 0);
}

/* It has its name, but that may not be on the disk: root's calls would all work. */
static void not_synced(void **state)
{
	char parent[] = "/tmp/destination.XXXXXX", path[64], *none[] = { NULL };
	struct snapshot s = {
		.openmpi = "4.1", .kcr = "1", .cwd = "/", .options = none, .program = none,
		.environment = none,
	};
	struct job_destination *d;
	char **gone = NULL;
	uid_t user = geteuid();

	(void)state;
	assert_non_null(mkdtemp(parent));
	if (!user) {
		assert_int_equal(chown(parent, 65534, 65534), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	snprintf(path, sizeof(path), "%s/saved.kcr", parent);
	assert_int_equal(job_destination_open(&d, path, NULL, 1, &gone), 0);
	assert_int_equal(chmod(parent, 0300), 0);
	assert_int_equal(job_destination_commit(d, &s, &gone), -EACCES);
	assert_true(job_destination_committed(d));
	job_destination_close(d, &gone);
	assert_int_equal(chmod(parent, 0700), 0);
	assert_int_equal(entries(parent), 1);
	job_destination_remove(path, &gone);
	assert_null(gone);
	assert_int_equal(seteuid(user), 0);
	prctl(PR_SET_DUMPABLE, 1);	/* for LeakSanitizer */
	assert_int_equal(rmdir(parent), 0);
}

/* Whose folder it is chooses what is restarted. */
static void local_of_others(void **state)
{
	char parent[] = "/tmp/destination.XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/saved.kcr.0123456789abcdef", parent);
	assert_int_equal(local_make(path), 0);
	assert_int_equal(local_make(path), 0);		/* the nodes share it */
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(local_make(path), -EEXIST);
	}
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(local_make(path), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(parent), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_later),
		cmocka_unit_test(not_synced),
		cmocka_unit_test(local_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
