// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages the module is asked to sum up: those whose checksum is wanted, and all if it is of an
 * older release and would refuse the flag.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/pages.c"		/* other tests' device_read() is beside it */

#define SUM	0x1234u

static struct kcr_pages asked;

/* The module. */
int device_call(int job, unsigned long request, void *argument)
{
	struct kcr_pages *pages = argument;

	(void)job;
	(void)request;
	asked = *pages;
	pages->sum = SUM;
	return 0;
}

static void check(uint32_t features, uint32_t expected)
{
	const struct kcr_info info = { .features = features };
	struct kcr_run run = { .address = 0x1000, .nr_pages = 1 };
	uint64_t sum = 0;
	char page[4096];

	device_pages_know(&info);
	assert_int_equal(device_read(3, 1, KCR_PAGES_SNAPSHOT, page, &run, 1, NULL), 0);
	assert_int_equal(asked.flags, KCR_PAGES_SNAPSHOT | expected);
	assert_int_equal(device_store(3, 1, page, &run, 1, NULL), 0);
	assert_int_equal(asked.flags, expected);
	assert_int_equal(device_read(3, 1, 0, page, &run, 1, &sum), 0);
	assert_int_equal(asked.flags, 0);
	assert_int_equal(sum, SUM);
	assert_int_equal(device_store(3, 1, page, &run, 1, &sum), 0);
	assert_int_equal(asked.flags, 0);
	/* From and to files: the only checksum that there is. */
	assert_int_equal(device_write(3, 1, 0, 4, &run, 1, NULL), 0);
	assert_int_equal(asked.flags, 0);
	assert_int_equal(device_fill(3, 1, 4, &run, 1, NULL), 0);
	assert_int_equal(asked.flags, 0);
}

static void this_release(void **state)
{
	(void)state;
	check(KCR_FEATURE_NO_SUM, KCR_PAGES_NO_SUM);
}

static void older_release(void **state)
{
	(void)state;
	check(KCR_FEATURE_NO_SUM - 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_release), cmocka_unit_test(older_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
