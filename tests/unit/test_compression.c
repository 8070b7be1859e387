// SPDX-License-Identifier: GPL-2.0
/*
 * Compression: what --compress takes, levels, what adaptive compression chooses by what it
 * knows, and how it finds out at which rate a destination takes bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "image/chooser.h"
#include "image/codec.h"
#include "report/report.h"
#include "util/choices.h"

/* ---- time ------------------------------------------------------------------------- */

static uint64_t clock_us;

/* Passes where something takes time here, and a little with each look. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	(void)clock;
	clock_us++;
	now->tv_sec = (time_t)(clock_us / 1000000);
	now->tv_nsec = (long)(clock_us % 1000000 * 1000);
	return 0;
}

/* ---- a disk ---------------------------------------------------------------------- */

static int disk_error;			/* of each call */
static unsigned int disk_us;		/* that it needs for each that waits */
static unsigned int disk_calls;

int sync_file_range(int fd, off_t offset, off_t length, unsigned int flags)
{
	(void)fd;
	(void)offset;
	(void)length;
	disk_calls++;
	if (flags & SYNC_FILE_RANGE_WAIT_AFTER)
		clock_us += disk_us;
	errno = disk_error;
	return disk_error ? -1 : 0;
}

/* ---- the option -------------------------------------------------------------------- */

static void accepts(const char *value, enum context_compression kind, int level, const char *back)
{
	struct compression how;
	char *text;

	assert_int_equal(choice_compression(value, &how), 0);
	assert_int_equal(how.kind, kind);
	assert_int_equal(how.level, level);
	assert_int_equal(how.adaptive, !strcmp(value, "auto"));
	text = choice_compression_option(&how);
	assert_string_equal(text, back);
	free(text);
}

static void options(void **state)
{
	static const char *const bad[] = {
		"", ":", "lz", "lz44", "gzip", "LZ4", "auto:1", "none:1", "none:", "zstd:", "zstd:0",
		"zstd:23", "zstd:-131073", "zstd:x", "zstd:3x", "zstd:3:4", "zstd:9999999999999999999",
		"lz4:", "lz4:0", "lz4:13", "lz4:-65537", "lz4:1.5",
	};
	struct compression how;

	(void)state;
	accepts("none", CONTEXT_RAW, 0, "--compress=none");
	accepts("auto", CONTEXT_RAW, 0, "--compress=auto");
	/* As older releases know them, on other nodes of an MPI job. */
	accepts("lz4", CONTEXT_LZ4, 0, "--compress=lz4");
	accepts("zstd", CONTEXT_ZSTD, 0, "--compress=zstd");
	accepts("lz4:12", CONTEXT_LZ4, 12, "--compress=lz4:12");
	accepts("lz4:-65536", CONTEXT_LZ4, -65536, "--compress=lz4:-65536");
	accepts("zstd:22", CONTEXT_ZSTD, 22, "--compress=zstd:22");
	accepts("zstd:-5", CONTEXT_ZSTD, -5, "--compress=zstd:-5");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(choice_compression(bad[i], &how), -EINVAL);
		assert_non_null(strstr(report_message(), "--compress"));
		assert_null(strchr(report_message(), '\n'));
		report_clear();
	}
}

/* ---- levels ------------------------------------------------------------------------- */

#define LENGTH	(256u << 10)

static void make_words(unsigned char *p, size_t length)
{
	uint32_t x = 1;

	for (size_t i = 0; i < length; i++) {
		x = i % 4 ? x : x * 1664525 + 1013904223;
		p[i] = "abcdefgh ijklmno"[(x >> (24 - i % 4)) % 16];
	}
}

/* Each comes back, and higher ones are smaller than fast ones. */
static void levels(void **state)
{
	static const int all[] = { -65536, -20, -1, 0, 1, 2, 3, 9, 12 };
	unsigned char *data = malloc(LENGTH), *out = malloc(LENGTH), *back = malloc(LENGTH);
	struct codec *codec = codec_new();

	(void)state;
	make_words(data, LENGTH);
	for (enum context_compression kind = CONTEXT_LZ4; kind <= CONTEXT_ZSTD; kind++) {
		ssize_t length[sizeof(all) / sizeof(*all)];

		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
			struct compression how = { .kind = kind, .level = all[i] };

			length[i] = codec_compress(codec, &how, data, LENGTH, out);
			assert_in_range(length[i], 0, LENGTH);
			if (!length[i])		/* so fast that nothing was found */
				continue;
			memset(back, 0, LENGTH);
			assert_int_equal(codec_decompress(codec, kind, out, length[i], back,
							  LENGTH), 0);
			assert_memory_equal(data, back, LENGTH);
		}
		assert_true(length[8] < length[4] && length[4] < (length[1] ?: LENGTH));
	}
	codec_free(codec);
	free(data);
	free(out);
	free(back);
}

/* ---- the choice ----------------------------------------------------------------------- */

/* ns per byte of compressing and what is left of it: the usual. */
static const struct chooser_costs usual = {
	.load = 0.2, .alone = -1, .processors = 2, .direct = true,
	.guess = { [CONTEXT_LZ4] = { 2, 0.6 }, [CONTEXT_ZSTD] = { 4, 0.4 } },
};

static void expect(double store, enum context_compression kind)
{
	struct chooser_costs c = usual;

	c.store = store;
	assert_int_equal(chooser_best(&c), kind);
}

static void choices(void **state)
{
	struct chooser_costs c = usual;

	(void)state;
	expect(-1, CONTEXT_LZ4);	/* not known */
	expect(0.5, CONTEXT_RAW);	/* 2 GB/s */
	expect(1.1, CONTEXT_RAW);	/* nothing to be gained */
	expect(2, CONTEXT_LZ4);		/* 500 MB/s: LZ4 has 900, Zstandard 480 */
	expect(10, CONTEXT_ZSTD);	/* 100 MB/s */
	c.store = 10;
	c.alone = 0.5;			/* it is slow only because we compress */
	assert_int_equal(chooser_best(&c), CONTEXT_RAW);
	c.alone = 20;			/* others were in the way */
	assert_int_equal(chooser_best(&c), CONTEXT_ZSTD);
	c.guess[CONTEXT_LZ4].ratio = c.guess[CONTEXT_ZSTD].ratio = 1;
	assert_int_equal(chooser_best(&c), CONTEXT_RAW);
	c.guess[CONTEXT_ZSTD].ratio = 0.95;	/* not worth it */
	assert_int_equal(chooser_best(&c), CONTEXT_RAW);
	c = usual;
	c.store = 2;
	c.processors = 1;
	assert_int_equal(chooser_best(&c), CONTEXT_RAW);
	c.guess[CONTEXT_LZ4].cost = 0.1;	/* zeros */
	c.guess[CONTEXT_LZ4].ratio = 0.01;
	assert_int_equal(chooser_best(&c), CONTEXT_LZ4);
}

/* ---- the rate --------------------------------------------------------------------------- */

#define READER_US	4000		/* for each 64 KiB: 16 MB/s */

static bool is_readers(double cost)
{
	const double exact = READER_US * 1000.0 / (1 << 16);

	return cost > exact * 0.99 && cost < exact * 1.02;
}

static void means(void **state)
{
	struct rate_mean m = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		rate_mean_add(&m, 1 << 20, 10000000);		/* 105 MB/s */
	assert_true(m.ns / m.bytes > 9 && m.ns / m.bytes < 10);
	for (int i = 0; i < 50; i++)
		rate_mean_add(&m, 1 << 20, 1000000);		/* for 50 ms, ten times that */
	assert_true(m.ns / m.bytes < 5);
}

/* Reads once what is there, in which the time passes that a slow reader needs. */
static void drain(int fd)
{
	static char buffer[1 << 16];
	ssize_t n = read(fd, buffer, sizeof(buffer));

	assert_true(n > 0);
	clock_us += (uint64_t)n * READER_US >> 16;
}

/* Writes so many pieces, to a reader if that is not -1; ns per byte by our account. */
static double feed(struct rate *r, int fd, int reader, unsigned int pieces, size_t length)
{
	char *data = calloc(1, length);

	for (unsigned int i = 0; i < pieces; i++) {
		rate_begin(r, true);
		for (size_t done = 0; done < length;) {
			ssize_t n = write(fd, data + done, length - done);

			if (n < 0 && errno == EAGAIN && reader >= 0) {
				drain(reader);
				continue;
			}
			assert_true(n > 0);
			done += (size_t)n;
		}
		assert_int_equal(rate_end(r, length), 0);
	}
	free(data);
	return rate_cost(r);
}

/* What the buffer takes says nothing; what the reader takes does. */
static void stream(int in, int out)
{
	struct rate r;

	rate_init(&r, out);
	assert_int_equal(fcntl(out, F_SETFL, O_NONBLOCK), 0);
	assert_true(feed(&r, out, -1, 4, 8192) < 0);	/* nobody reads */
	assert_true(is_readers(feed(&r, out, in, 12, 128 << 10)));
	assert_true(is_readers(rate_cost_alone(&r)));
	close(out);
	close(in);
}

static void streams(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	stream(ends[0], ends[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	stream(ends[0], ends[1]);
}

/* Of a file the page cache counts, or the disk, whose errors are not lost. */
static void files(void **state)
{
	int fd = memfd_create("rate", MFD_CLOEXEC);
	char byte[64 << 10] = "";
	struct rate r;

	(void)state;
	rate_init(&r, fd);
	rate_pace(&r, false);
	assert_true(feed(&r, fd, -1, 4, 4 << 20) > 0);
	assert_int_equal(disk_calls, 0);
	rate_pace(&r, true);
	disk_us = 40000;		/* for 4 MiB: 105 MB/s */
	assert_true(feed(&r, fd, -1, 8, 4 << 20) > 9);
	assert_true(rate_cost_alone(&r) > 9);
	assert_true(disk_calls > 8);
	rate_pace(&r, false);
	assert_true(rate_cost(&r) == r.taken.ns / r.taken.bytes);		/* the disk does not count in it */

	rate_pace(&r, true);
	disk_us = 0;
	disk_error = EIO;
	feed(&r, fd, -1, 63, 64 << 10);
	rate_begin(&r, false);
	assert_int_equal(write(fd, byte, sizeof(byte)), sizeof(byte));
	assert_int_equal(rate_end(&r, sizeof(byte)), -EIO);
	assert_non_null(report_message());
	report_clear();
	/* This is no file after all. */
	disk_error = EINVAL;
	rate_pace(&r, true);
	assert_true(feed(&r, fd, -1, 4, 4 << 20) > 0);
	disk_error = 0;
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options), cmocka_unit_test(levels), cmocka_unit_test(choices),
		cmocka_unit_test(means), cmocka_unit_test(streams), cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
