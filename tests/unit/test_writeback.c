// SPDX-License-Identifier: GPL-2.0
/*
 * Early write-back (image/writeback.h): which bytes are handed to the disk, when, and that
 * nothing is done for what has none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "image/writeback.h"

#define MIB	(1ll << 20)

/* The call of libc: what it was told, and whether it waits. */
static atomic_llong handed;		/* bytes, from `first` on */
static off_t first = -1;
static atomic_int slow;			/* the disk takes no more until this is 0 */
static unsigned int flags_seen;

int sync_file_range(int fd, off_t offset, off_t count, unsigned int flags)
{
	(void)fd;
	while (atomic_load(&slow))
		usleep(1000);
	if (first < 0)
		first = offset;
	else
		assert_int_equal(offset, first + atomic_load(&handed));
	flags_seen |= flags;
	atomic_fetch_add(&handed, count);
	return 0;
}

static int new_file(void)
{
	char path[] = "/tmp/kcr-writeback.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0 && !unlink(path));
	first = -1;
	atomic_store(&handed, 0);
	flags_seen = 0;
	return fd;
}

static void await_handed(long long bytes)
{
	for (int i = 0; i < 5000 && atomic_load(&handed) < bytes; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&handed), bytes);
}

/* From the position on, in windows, without waiting for the disk. */
static void test_windows(void **state)
{
	struct writeback *w;
	int fd = new_file();

	(void)state;
	assert_int_equal(lseek(fd, 3 * MIB, SEEK_SET), 3 * MIB);
	w = writeback_begin(fd);
	assert_non_null(w);
	lseek(fd, 10 * MIB, SEEK_SET);		/* 7 MiB: no window yet */
	writeback_note(w);
	usleep(20000);
	assert_int_equal(atomic_load(&handed), 0);
	lseek(fd, 30 * MIB, SEEK_SET);
	writeback_note(w);
	await_handed(24 * MIB);
	assert_int_equal(first, 3 * MIB);
	lseek(fd, 36 * MIB, SEEK_SET);
	writeback_note(w);
	await_handed(32 * MIB);
	writeback_end(w);
	assert_int_equal(flags_seen, SYNC_FILE_RANGE_WRITE);
	close(fd);
}

/* Whoever writes does not wait for a slow disk; the end waits for one window only. */
static void test_slow(void **state)
{
	struct writeback *w;
	int fd = new_file();

	(void)state;
	w = writeback_begin(fd);
	assert_non_null(w);
	atomic_store(&slow, 1);
	for (int i = 1; i <= 20; i++) {
		lseek(fd, i * 4 * MIB, SEEK_SET);
		writeback_note(w);
	}
	usleep(20000);
	atomic_store(&slow, 0);
	writeback_end(w);
	assert_true(atomic_load(&handed) <= 80 * MIB);
	assert_int_equal(atomic_load(&handed) % (8 * MIB), 0);
	close(fd);
}

/* What has no position has no disk. */
static void test_none(void **state)
{
	int fd[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_null(writeback_begin(fd[1]));
	assert_null(writeback_begin(null));
	assert_null(writeback_begin(-1));
	writeback_note(NULL);
	writeback_end(NULL);
	close(fd[0]);
	close(fd[1]);
	close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows), cmocka_unit_test(test_slow), cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
