// SPDX-License-Identifier: GPL-2.0
/* The limit of what is written per second, and how people write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "image/context.h"
#include "image/limiter.h"
#include "proc/bandwidth.h"
#include "proc/clock.h"

#define SECOND	1000000000ull
#define BEGIN	(1000 * SECOND)

static void steady(void **state)
{
	struct limiter l = { .rate = 1000000 };
	uint64_t now = BEGIN;

	(void)state;
	for (int i = 0; i < 100; i++)
		now = limiter_due(&l, 300000, now);
	assert_in_range(now - BEGIN, 29900000000ull, 30 * SECOND);
}

/* A destination that was slow itself is not made slower; what it has lost is soon forgotten. */
static void after_a_pause(void **state)
{
	struct limiter l = { .rate = 1000000 };
	uint64_t now = limiter_due(&l, 1000000, BEGIN);

	(void)state;
	assert_true(limiter_due(&l, 10000, now + SECOND) < now + SECOND);
	assert_in_range(limiter_due(&l, 1000000, now + 100 * SECOND), now + 100 * SECOND + SECOND / 2,
			now + 101 * SECOND);
}

static void large_pieces(void **state)
{
	struct limiter l = { .rate = 1000 };
	uint64_t due = limiter_due(&l, 1ull << 33, BEGIN);

	(void)state;
	assert_in_range((due - BEGIN) / SECOND, 8589933, 8589934);
}

static void waits(void **state)
{
	struct limiter limited = { .rate = 1000000 }, l = { .rate = 0 };
	uint64_t begun = now_ns();

	(void)state;
	limiter_wait(&l, 1ull << 40);
	assert_true(now_ns() - begun < SECOND / 5);
	begun = now_ns();
	limiter_wait(&limited, 300000);
	limiter_wait(&limited, 100000);
	assert_true(now_ns() - begun >= SECOND * 3 / 10);
}

/* What it writes itself, and what the module writes between its sections. */
static void writer(void **state)
{
	const struct kcr_run run = { .address = 0x10000, .nr_pages = 25 };
	static const char data[100000];
	struct context_writer *w;
	uint64_t begun = now_ns();
	int fd = memfd_create("context", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(context_writer_new(&w, fd, 0), 0);
	context_writer_limit(w, 1000000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(context_write_content(w, 1, i * sizeof(data), data, sizeof(data)), 0);
	assert_true(now_ns() - begun >= SECOND * 28 / 100);
	assert_int_equal(context_memory_begin(w, 1, &run, 1), 0);
	assert_int_equal(context_memory_end(w, 0), 0);
	assert_true(now_ns() - begun >= SECOND * 38 / 100);
	context_writer_free(w);
	close(fd);
}

static void rates(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate;
	} each[] = {
		{ "1000", 1000 }, { "1K", 1000 }, { "800K", 800000 }, { "100M", 100000000 }, { "1.5G", 1500000000 },
		{ "", 0 }, { "999", 0 }, { "0", 0 }, { "-1M", 0 }, { "M", 0 }, { "1MB", 0 }, { "1m", 0 },
		{ " 1M", 0 }, { "inf", 0 }, { "1e30", 0 }, { "1M ", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++)
		assert_int_equal(bandwidth_parse(each[i].text), each[i].rate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady), cmocka_unit_test(after_a_pause), cmocka_unit_test(large_pieces),
		cmocka_unit_test(waits), cmocka_unit_test(writer), cmocka_unit_test(rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
