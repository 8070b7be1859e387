// SPDX-License-Identifier: GPL-2.0
/*
 * Answers of the module that will not change are not waited for: more mappings than it can list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "device/device.h"
#include "report/report.h"

#define MAPPINGS	((1u << 20) + 1)

static unsigned int asked;

/* The module. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;

	(void)fd;
	errno = EINVAL;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
