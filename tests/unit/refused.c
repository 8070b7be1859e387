// SPDX-License-Identifier: GPL-2.0
/* See refused.h. */
#include "refused.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/report.h"

struct sample sample;

int refused_setup(void **state)
{
	(void)state;
	sample_make(&sample);
	return 0;
}

int refused_teardown(void **state)
{
	(void)state;
	sample_free(&sample);
	return 0;
}

void refused_expect(const char *why)
{
	uint64_t digest;
	int fd = memfd_create("context", MFD_CLOEXEC), err;

	assert_int_equal(sample_write(&sample, fd), 0);
	lseek(fd, 0, SEEK_SET);
	report_clear();
	err = sample_read(fd, false, &digest);
	close(fd);
	if (!why) {
		if (err)
			fail_msg("refused: %s", report_message());
		return;
	}
	assert_int_equal(err, -EINVAL);
	if (!strstr(report_message(), why))
		fail_msg("%s instead of %s", report_message(), why);
}
