// SPDX-License-Identifier: GPL-2.0
/* The content of pages: from processes to files and buffers, and back. */
#include "device/device.h"
#include "device/internal.h"
#include "report/report.h"

static bool knows_no_sum;		/* the module last opened: KCR_PAGES_NO_SUM */

void device_pages_know(const struct kcr_info *info)
{
	knows_no_sum = info->features & KCR_FEATURE_NO_SUM;
}

static int move_pages(int job, unsigned long request, struct kcr_pages *pages,
		      const struct kcr_run *runs, size_t count, uint64_t *sum)
{
	int err;

	pages->size = sizeof(*pages);
	pages->runs = (uintptr_t)runs;
	pages->count = count;
	err = device_call(job, request, pages);
	if (!err && sum)
		*sum = pages->sum;
	return err;
}

/* Its computation is left out if the module in memory can. */
static uint32_t no_sum(const uint64_t *sum)
{
	return sum || !knows_no_sum ? 0 : KCR_PAGES_NO_SUM;
}

int device_write(int job, pid_t pid, uint32_t flags, int fd, const struct kcr_run *runs,
		 size_t count, uint64_t *sum)
{
	struct kcr_pages pages = { .flags = flags, .pid = pid, .fd = fd };
	int err = move_pages(job, KCR_IOC_WRITE, &pages, runs, count, sum);

	return err ? report_errno(err, "cannot write the memory of process %d", pid) : 0;
}

int device_read(int job, pid_t pid, uint32_t flags, void *buffer, const struct kcr_run *runs,
		size_t count, uint64_t *sum)
{
	struct kcr_pages pages = {
		.flags = flags | no_sum(sum), .pid = pid, .fd = -1, .buffer = (uintptr_t)buffer,
	};
	int err = move_pages(job, KCR_IOC_READ, &pages, runs, count, sum);

	return err ? report_errno(err, "cannot read the memory of process %d", pid) : 0;
}

int device_fill(int job, pid_t pid, int fd, const struct kcr_run *runs, size_t count,
		uint64_t *sum)
{
	struct kcr_pages pages = { .pid = pid, .fd = fd };
	int err = move_pages(job, KCR_IOC_FILL, &pages, runs, count, sum);

	return err ? report_errno(err, "cannot fill the memory of process %d", pid) : 0;
}

int device_store(int job, pid_t pid, const void *buffer, const struct kcr_run *runs,
		 size_t count, uint64_t *sum)
{
	struct kcr_pages pages = {
		.flags = no_sum(sum), .pid = pid, .fd = -1, .buffer = (uintptr_t)buffer,
	};
	int err = move_pages(job, KCR_IOC_STORE, &pages, runs, count, sum);

	return err ? report_errno(err, "cannot store the memory of process %d", pid) : 0;
}
