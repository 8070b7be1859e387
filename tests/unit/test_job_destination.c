// SPDX-License-Identifier: GPL-2.0
/* Where a snapshot is put: beside leftovers that cannot be removed yet, synced, and in a folder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/destination.h"
#include "job/local.h"
#include "report/report.h"

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

static void save(const char *path, unsigned int keep, uint32_t *interval)
{
	char *none[] = { NULL }, **gone = NULL, file[200];
	struct snapshot_rank rank = { .node = "a", .file = { 1, 1 } };
	struct snapshot s = {
		.openmpi = "4.1", .kcr = "1", .cwd = "/", .options = none, .program = none,
		.environment = none, .interval = *interval, .nr_ranks = 1, .rank = &rank,
	};
	struct job_destination *d;
	bool local;
	FILE *out;

	assert_int_equal(job_destination_open(&d, path, NULL, keep, &gone), 0);
	snprintf(file, sizeof(file), "%s/rank.0.ctx", job_destination_folder(d, &local));
	out = fopen(file, "w");
	assert_non_null(out);
	assert_int_equal(fputc('x', out), 'x');
	assert_int_equal(fclose(out), 0);
	assert_int_equal(job_destination_commit(d, &s, &gone), 0);
	job_destination_close(d, &gone);
	assert_null(gone);
	*interval = s.interval;
}

static bool is_kept(const char *path, const char *number)
{
	char kept[80];

	snprintf(kept, sizeof(kept), "%s.~%s~", path, number);
	return !access(kept, F_OK);
}

/* The oldest go, whatever job had the name before, and whatever else there is of such a name. */
static void kept_in_order(void **state)
{
	static const char *const odd[] = { "01", "+1", " 1", "99999999999999999999999", "1x", "" };
	char parent[] = "/tmp/destination.XXXXXX", path[64], name[100];
	uint32_t interval = 7;

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/saved.kcr", parent);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		snprintf(name, sizeof(name), "%s.~%s~", path, odd[i]);
		assert_int_equal(mkdir(name, 0700), 0);
	}
	snprintf(name, sizeof(name), "%s.~1~", path);	/* somebody else's */
	assert_int_equal(symlink("/", name), 0);
	save(path, 3, &interval);
	assert_int_equal(interval, 7);
	for (uint32_t i = 1; i <= 3; i++) {		/* of a job that counts from 1 */
		interval = i;
		save(path, 3, &interval);
		assert_int_equal(interval, 7 + i);
	}
	assert_false(is_kept(path, "7"));
	assert_true(is_kept(path, "8"));
	assert_true(is_kept(path, "9"));
	interval = 20;
	save(path, 1, &interval);
	assert_int_equal(interval, 20);
	assert_int_equal(entries(parent), 2 + sizeof(odd) / sizeof(*odd));
	job_destination_remove(path, &(char **){ NULL });
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		snprintf(name, sizeof(name), "%s.~%s~", path, odd[i]);
		assert_int_equal(rmdir(name), 0);
	}
	snprintf(name, sizeof(name), "%s.~1~", path);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(rmdir(parent), 0);
}

static void damage(const char *path, bool removes)
{
	char manifest[100];

	snprintf(manifest, sizeof(manifest), "%s/manifest.json", path);
	if (removes)
		assert_int_equal(unlink(manifest), 0);
	else
		assert_int_equal(truncate(manifest, 0), 0);
}

/* A job that has gone back to an older one is saved on, beside what cannot be read. */
static void damaged_aside(void **state)
{
	char parent[] = "/tmp/destination.XXXXXX", path[64], kept[80], *none[] = { NULL }, **gone = NULL;
	struct snapshot s = { .openmpi = "4.1", .kcr = "1", .cwd = "/", .options = none, .program = none,
			      .environment = none };
	struct job_destination *d;
	uint32_t interval = 1;

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/saved.kcr", parent);
	for (uint32_t i = 1; i <= 4; i++) {
		save(path, 3, &interval);
		assert_int_equal(interval, i);
		damage(path, i % 2);
	}
	assert_false(is_kept(path, "1"));
	assert_true(is_kept(path, "2"));
	assert_true(is_kept(path, "3"));
	job_destination_remove(path, &gone);
	for (int i = 2; i <= 3; i++) {
		snprintf(kept, sizeof(kept), "%s.~%d~", path, i);
		job_destination_remove(kept, &gone);
	}
	/* Anything else of that name is somebody's. */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(job_destination_open(&d, path, NULL, 3, &gone), 0);
	assert_int_equal(job_destination_commit(d, &s, &gone), -EEXIST);
	job_destination_close(d, &gone);
	assert_null(gone);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(parent), 0);
}

/* What one job is writing is not another's to remove; what is left of a dead one is. */
static void one_at_a_time(void **state)
{
	char parent[] = "/tmp/destination.XXXXXX", path[64], lock[64], file[200];
	struct job_destination *first, *second;
	char **gone = NULL;
	bool local;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/saved.kcr", parent);
	snprintf(lock, sizeof(lock), "%s/.saved.kcr.lock", parent);
	assert_int_equal(job_destination_open(&first, path, NULL, 1, &gone), 0);
	snprintf(file, sizeof(file), "%s/rank.0.ctx", job_destination_folder(first, &local));
	fd = open(file, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	report_clear();
	assert_int_equal(job_destination_open(&second, path, NULL, 1, &gone), -EALREADY);
	assert_non_null(strstr(report_message(), "another job is saving to "));
	report_clear();
	assert_int_equal(access(file, F_OK), 0);
	job_destination_close(first, &gone);
	assert_int_not_equal(access(lock, F_OK), 0);

	fd = open(lock, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	snprintf(file, sizeof(file), "%s.partial", path);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_int_equal(job_destination_open(&second, path, NULL, 1, &gone), 0);
	job_destination_close(second, &gone);
	assert_null(gone);
	assert_int_equal(rmdir(parent), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_later),
		cmocka_unit_test(not_synced),
		cmocka_unit_test(local_of_others),
		cmocka_unit_test(kept_in_order),
		cmocka_unit_test(damaged_aside),
		cmocka_unit_test(one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
