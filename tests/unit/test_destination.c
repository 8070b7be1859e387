// SPDX-License-Identifier: GPL-2.0
/*
 * Where a context file goes (checkpoint/destination.h): names, what becomes of
 * an existing file, and that nothing is left of what was not committed.
 */
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
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/destination.h"
#include "report/report.h"

static char folder[] = "/tmp/kcr-destination.XXXXXX";

/* The calls of libc that destinations make: counted, or with something done before. */
static int nr_fsyncs;
static void (*before_flock)(void);
static int flocks_before;		/* calls until then */

int fsync(int fd)
{
	nr_fsyncs++;
	return syscall(SYS_fsync, fd);
}

int flock(int fd, int how)
{
	if (before_flock && !flocks_before--) {
		void (*act)(void) = before_flock;

		before_flock = NULL;
		act();
	}
	return syscall(SYS_flock, fd, how);
}

static void (*after_look)(void);
static int looks_before;

static void looked(void)
{
	void (*act)(void) = after_look;

	if (!act || looks_before--)
		return;
	after_look = NULL;
	act();
}

int stat(const char *path, struct stat *st)
{
	int result = syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);

	looked();
	return result;
}

int fstatat(int at, const char *path, struct stat *st, int flags)
{
	int result = syscall(SYS_newfstatat, at, path, st, flags);

	looked();
	return result;
}

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_content(const char *name, const char *text)
{
	char buffer[64] = "";
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, buffer, sizeof(buffer) - 1) >= 0);
	assert_string_equal(buffer, text);
	close(fd);
}

static int nr_entries(void)
{
	DIR *dir = opendir(".");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static struct checkpoint_options options(const char *path, enum checkpoint_replace replace)
{
	return (struct checkpoint_options) {
		.path = path, .fd = -1, .replace = replace, .sync = true,
	};
}

/* Opens, writes `new`, commits; the first error. */
static int save(const struct checkpoint_options *o)
{
	struct destination *d;
	int err = destination_open(&d, o);

	if (err)
		return err;
	assert_int_equal(write(d->fd, "new", 3), 3);
	err = destination_sync(d);
	if (!err)
		err = destination_commit(d);
	destination_close(d);
	return err;
}

static int set_up(void **state)
{
	(void)state;
	report_clear();
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || system(command);
}

static void test_new_file(void **state)
{
	struct checkpoint_options o;
	struct stat st;

	(void)state;
	for (int replace = CHECKPOINT_ATOMIC; replace <= CHECKPOINT_NOCLOBBER; replace++) {
		o = options("image", replace);
		assert_int_equal(save(&o), 0);
		assert_content("image", "new");
		assert_int_equal(stat("image", &st), 0);
		assert_int_equal(st.st_mode & 07777, 0400);
		assert_int_equal(nr_entries(), 1);
		unlink("image");
	}
}

static void test_replace(void **state)
{
	struct checkpoint_options o;

	(void)state;
	put("image", "old");
	o = options("image", CHECKPOINT_ATOMIC);
	assert_int_equal(save(&o), 0);
	assert_content("image", "new");
	put("image2", "old");
	o = options("image2", CHECKPOINT_CLOBBER);
	assert_int_equal(save(&o), 0);
	assert_content("image2", "new");
	put("image3", "old");
	o = options("image3", CHECKPOINT_NOCLOBBER);
	assert_int_equal(save(&o), -EEXIST);
	assert_content("image3", "old");
	assert_int_equal(nr_entries(), 3);
}

/* Another file takes the name while ours is written. */
static void test_noclobber_race(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_NOCLOBBER);
	struct destination *d;

	(void)state;
	assert_int_equal(destination_open(&d, &o), 0);
	put("image", "other");
	assert_int_equal(destination_commit(d), -EEXIST);
	destination_close(d);
	assert_content("image", "other");
	assert_int_equal(nr_entries(), 1);
}

static void test_backup(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_BACKUP);

	(void)state;
	put("image", "1");
	assert_int_equal(save(&o), 0);
	assert_content("image.~1~", "1");
	assert_int_equal(unlink("image"), 0);
	put("image", "2");
	assert_int_equal(save(&o), 0);
	assert_content("image.~2~", "2");
	assert_content("image.~1~", "1");
	o.backup = "mine";
	assert_int_equal(save(&o), 0);
	assert_content("mine", "new");
	assert_int_equal(nr_entries(), 4);
}

static void test_abandoned(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_ATOMIC);
	struct destination *d;

	(void)state;
	put("image", "old");
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(nr_entries(), 2);
	destination_close(d);
	assert_int_equal(nr_entries(), 1);

	assert_int_equal(destination_open(&d, &o), 0);
	checkpoint_abandon();		/* as a signal handler does */
	assert_int_equal(nr_entries(), 1);
	destination_close(d);
	assert_content("image", "old");
}

static void test_leftover(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_ATOMIC);
	int fd;

	(void)state;
	put(".image.tmp", "rubbish of a killed run, longer than what comes");
	assert_int_equal(save(&o), 0);
	assert_content("image", "new");
	put("target", "untouched");
	assert_int_equal(symlink("target", ".image.tmp"), 0);
	assert_int_equal(save(&o), 0);
	assert_content("target", "untouched");
	assert_int_equal(nr_entries(), 2);

	put(".image.tmp", "half");
	fd = open(".image.tmp", O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(save(&o), -EBUSY);
	assert_content(".image.tmp", "half");
	close(fd);
}

static int other_run = -1;

/* Another run removes the file that we have opened and begins with its own. */
static void another_run(void)
{
	unlink(".image.tmp");
	put(".image.tmp", "other");
	other_run = open(".image.tmp", O_RDONLY);
	assert_int_equal(syscall(SYS_flock, other_run, LOCK_EX | LOCK_NB), 0);
}

static void test_exchanged(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_ATOMIC);

	(void)state;
	for (int created = 0; created < 2; created++) {
		report_clear();
		if (!created)
			put(".image.tmp", "left");	/* the first lock is of this */
		before_flock = another_run;
		flocks_before = 0;
		assert_int_equal(save(&o), -EBUSY);
		assert_null(before_flock);
		assert_content(".image.tmp", "other");
		assert_int_equal(nr_entries(), 1);
		close(other_run);
		unlink(".image.tmp");
	}
}

/* Whatever can be written for good is, however it was opened. */
static void test_sync(void **state)
{
	struct checkpoint_options o = options(NULL, CHECKPOINT_ATOMIC);

	(void)state;
	put("file", "head");
	o.fd = open("file", O_WRONLY | O_APPEND);
	nr_fsyncs = 0;
	assert_int_equal(save(&o), 0);
	assert_int_equal(nr_fsyncs, 1);
	o.sync = false;
	assert_int_equal(save(&o), 0);
	assert_int_equal(nr_fsyncs, 1);
	close(o.fd);
}

static void test_two_runs(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_ATOMIC);
	struct destination *d;
	int status;

	(void)state;
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(write(d->fd, "first", 5), 5);
	if (!fork()) {
		struct destination *other;

		_exit(destination_open(&other, &o) == -EBUSY ? 0 : 1);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_int_equal(destination_commit(d), 0);
	destination_close(d);
	assert_content("image", "first");
}

static void test_link(void **state)
{
	struct checkpoint_options o = options("link", CHECKPOINT_ATOMIC);
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	put("sub/image", "old");
	assert_int_equal(symlink("sub/image", "link"), 0);
	assert_int_equal(save(&o), 0);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_content("sub/image", "new");
}

/* Older files beside the new one: of the file that is open, whatever has its name by now. */
static void test_beside(void **state)
{
	struct checkpoint_options o = options("sub/image", CHECKPOINT_ATOMIC);
	struct destination *d;
	int fd;

	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	put("older", "older");
	fd = open("older", O_RDONLY);
	assert_int_equal(rename("older", "renamed"), 0);
	put("older", "forged");
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(destination_link(d, fd, "image.1"), 0);
	assert_content("sub/image.1", "older");
	assert_int_equal(destination_link(d, fd, "image.1"), -EEXIST);
	destination_unlink(d, "image.1");
	assert_int_equal(access("sub/image.1", F_OK), -1);
	assert_content("renamed", "older");
	destination_close(d);
	close(fd);
}

/* In a folder that others may write to: root follows none of their links, and waits for nobody. */
static void test_others(void **state)
{
	struct checkpoint_options o = options("link", CHECKPOINT_ATOMIC);

	(void)state;
	if (geteuid())
		skip();
	put("target", "untouched");
	assert_int_equal(symlink("target", "link"), 0);
	assert_int_equal(lchown("link", 12345, 12345), 0);
	assert_int_equal(save(&o), -ELOOP);
	assert_content("target", "untouched");

	report_clear();
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(symlink("sub", "folder"), 0);
	o = options("folder/image", CHECKPOINT_ATOMIC);
	assert_int_equal(save(&o), 0);
	assert_int_equal(lchown("folder", 12345, 12345), 0);
	assert_int_equal(save(&o), -ELOOP);
	report_clear();
	o = options("image", CHECKPOINT_BACKUP);
	o.backup = "folder/old";
	put("image", "first");
	assert_int_equal(save(&o), -ELOOP);
	assert_content("image", "first");

	report_clear();
	o = options("fifo", CHECKPOINT_ATOMIC);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(chown("fifo", 12345, 12345), 0);
	alarm(20);
	assert_int_equal(save(&o), -EPERM);
	alarm(0);
}

static void exchange_fifo(void)
{
	assert_int_equal(unlink("fifo"), 0);
	assert_int_equal(symlink("target", "fifo"), 0);
}

/* What was seen to be a FIFO is a link when it is opened, whichever look was the last. */
static void test_fifo_exchanged(void **state)
{
	struct checkpoint_options o = options("fifo", CHECKPOINT_ATOMIC);

	(void)state;
	put("target", "untouched");
	for (int looks = 0; looks < 2; looks++) {
		unlink("fifo");
		assert_int_equal(mkfifo("fifo", 0600), 0);
		after_look = exchange_fifo;
		looks_before = looks;
		report_clear();
		assert_int_equal(save(&o), -EAGAIN);
		assert_null(after_look);
		assert_content("target", "untouched");
	}
}

/* The name gets what was written, or the run fails. */
static void test_exchanged_at_the_end(void **state)
{
	struct checkpoint_options o = options("image", CHECKPOINT_ATOMIC);
	struct destination *d;

	(void)state;
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(write(d->fd, "new", 3), 3);
	assert_int_equal(unlink(".image.tmp"), 0);
	put(".image.tmp", "forged");
	assert_int_equal(destination_commit(d), -ESTALE);
	destination_close(d);
}

/* The folder that was found stays the one, whatever its name means later. */
static void test_folder_exchanged(void **state)
{
	struct checkpoint_options o = options("sub/image", CHECKPOINT_ATOMIC);
	struct destination *d;

	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(mkdir("other", 0700), 0);
	put("other/image", "untouched");
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(write(d->fd, "new", 3), 3);
	assert_int_equal(rename("sub", "moved"), 0);
	assert_int_equal(symlink("other", "sub"), 0);
	assert_int_equal(destination_commit(d), 0);
	destination_close(d);
	assert_content("other/image", "untouched");
	assert_content("moved/image", "new");
}

static void test_special(void **state)
{
	struct checkpoint_options o = options("/dev/null", CHECKPOINT_CLOBBER);
	struct stat st;

	(void)state;
	assert_int_equal(save(&o), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void test_refused(void **state)
{
	static const struct { const char *path; int err; } bad[] = {
		{ ".", -EISDIR }, { "/", -EISDIR }, { "..", -EISDIR }, { "no/image", -ENOENT },
		{ "file/image", -ENOTDIR }, { "new/", -EISDIR },
	};
	struct checkpoint_options o;

	(void)state;
	put("file", "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		o = options(bad[i].path, CHECKPOINT_ATOMIC);
		assert_int_equal(save(&o), bad[i].err);
		assert_non_null(report_message());
		report_clear();
	}
	o = options(NULL, CHECKPOINT_ATOMIC);
	o.fd = 12345;
	assert_int_equal(save(&o), -EBADF);
	o.fd = open("file", O_RDONLY);
	assert_int_equal(save(&o), -EBADF);
	close(o.fd);
	assert_int_equal(nr_entries(), 1);
}

static void test_descriptor_and_rewind(void **state)
{
	struct checkpoint_options o = options(NULL, CHECKPOINT_ATOMIC);
	struct destination *d;
	int ends[2];

	(void)state;
	put("file", "head");
	o.fd = open("file", O_WRONLY);
	assert_int_equal(lseek(o.fd, 4, SEEK_SET), 4);
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(write(d->fd, "torn torn", 9), 9);
	assert_int_equal(destination_rewind(d), 0);
	assert_int_equal(write(d->fd, "good", 4), 4);
	assert_int_equal(destination_commit(d), 0);
	destination_close(d);
	assert_content("file", "headgood");
	close(o.fd);

	assert_int_equal(pipe(ends), 0);
	o.fd = ends[1];
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(destination_rewind(d), -ESPIPE);
	assert_int_equal(destination_sync(d), 0);
	destination_close(d);
	assert_int_equal(fcntl(o.fd, F_GETFD), 0);	/* the caller's own stays open */
	close(ends[0]);
	close(ends[1]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* What programs with callbacks are told the file will be called. */
static void test_path(void **state)
{
	struct checkpoint_options o = options("sub/name", CHECKPOINT_ATOMIC);
	char path[4096], expected[4096];
	struct destination *d;

	(void)state;
	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(destination_open(&d, &o), 0);
	destination_path(d, path, sizeof(path));
	snprintf(expected, sizeof(expected), "%s/sub/name", folder);
	assert_string_equal(path, expected);
	destination_close(d);

	o.path = NULL;
	o.fd = open("taken", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(destination_open(&d, &o), 0);
	destination_path(d, path, sizeof(path));
	snprintf(expected, sizeof(expected), "%s/taken", folder);
	assert_string_equal(path, expected);
	destination_close(d);
	close(o.fd);
	o.path = "/dev/null";
	assert_int_equal(destination_open(&d, &o), 0);
	assert_int_equal(destination_commit(d), 0);
	destination_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_new_file), CASE(test_replace), CASE(test_noclobber_race),
		CASE(test_backup), CASE(test_abandoned), CASE(test_leftover), CASE(test_two_runs),
		CASE(test_exchanged), CASE(test_sync),
		CASE(test_link), CASE(test_beside), CASE(test_others), CASE(test_fifo_exchanged),
		CASE(test_exchanged_at_the_end),
		CASE(test_folder_exchanged), CASE(test_special), CASE(test_refused),
		CASE(test_descriptor_and_rewind), CASE(test_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
