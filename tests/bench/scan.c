// SPDX-License-Identifier: GPL-2.0
/*
 * `scan PID`: parks a process and times KCR_IOC_SCAN of all its private
 * anonymous memory; prints milliseconds and pages found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int scan_range(int job, pid_t pid, const struct kcr_vma *vma, unsigned long *pages)
{
	static struct kcr_run runs[4096];
	uint64_t at = vma->start;

	while (at < vma->end) {
		struct kcr_scan scan = {
			.size = sizeof(scan), .pid = pid, .count = 4096, .start = at,
			.end = vma->end, .max_pages = 1 << 20, .runs = (uintptr_t)runs,
		};
		int err = device_scan(job, &scan);

		if (err)
			return err;
		*pages += scan.nr_pages;
		at = scan.next;
	}
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	struct kcr_info info;
	struct kcr_park park;
	struct kcr_vma *vmas;
	const char *strings;
	unsigned long pages = 0;
	int job = device_open(&info), err, n;
	double start;

	err = job < 0 ? job : device_add(job, pid, pid, 0);
	if (!err)
		err = device_park(job, 0, &park);
	n = err ? err : device_vmas(job, pid, 0, &vmas, &strings);
	if (n < 0) {
		report_print(n);
		return 1;
	}
	start = now_ms();
	for (int i = 0; i < n && !err; i++)
		if (!vmas[i].path && !(vmas[i].flags & KCR_VMA_SHARED))
			err = scan_range(job, pid, &vmas[i], &pages);
	printf("%.3f %lu\n", now_ms() - start, pages);
	close(job);
	free(vmas);
	return err ? 1 : 0;
}
