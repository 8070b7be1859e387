// SPDX-License-Identifier: GPL-2.0
/*
 * Answers of the module that will not change are not waited for: more mappings than it can list,
 * and a process that a lazy restart loads for longer than the caller has time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/internal.h"
#include "device/device.h"
#include "proc/clock.h"
#include "report/report.h"

#define MAPPINGS	((1u << 20) + 1)
#define LIMIT_NS	100000000ull

static unsigned int asked;

/* The module. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;

	(void)fd;
	errno = EINPROGRESS;
	if (request == KCR_IOC_VMAS) {
		va_start(list, request);
		va_arg(list, struct kcr_vmas *)->count = MAPPINGS;
		va_end(list);
		errno = ENOSPC;
	}
	/* For ever would be too long for a test. */
	return ++asked == 1000 ? 0 : -1;
}

static void too_many_mappings(void **state)
{
	const char *strings;
	struct kcr_vma *vmas;

	(void)state;
	asked = 0;
	assert_int_equal(device_vmas(3, 1, 0, &vmas, &strings), -E2BIG);
	assert_int_equal(asked, 1);
	assert_non_null(strstr(report_message(), "has 1048577 mappings"));
	report_clear();
}

static void loading(void **state)
{
	const struct scope_process self = { .pid = getpid(), .thread = getpid() };
	struct checkpoint c = { .attempt.job = 3 };
	uint64_t start = now_ns();

	(void)state;
	c.deadline_ns = start + LIMIT_NS;
	asked = 0;
	assert_int_equal(stop_add(&c, &self), -ETIMEDOUT);
	assert_in_range(now_ns() - start, LIMIT_NS, 20 * LIMIT_NS);
	assert_true(asked > 1);
	report_clear();

	/* Others are parked. */
	c.deadline_ns = now_ns() + 100 * LIMIT_NS;
	c.attempt.members.count = 1;
	asked = 0;
	assert_int_equal(stop_add(&c, &self), -EBUSY);
	assert_int_equal(asked, 1);
	report_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_mappings), cmocka_unit_test(loading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
