// SPDX-License-Identifier: GPL-2.0
/*
 * Guard regions (MADV_GUARD_INSTALL, since Linux 6.13): pages without contents whose use is a
 * fault, as at the end of a stack.  They are no mappings of their own; the kernel finds them
 * by PAGEMAP_SCAN since 6.16, and before that not.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"

#define AT_ONCE		256
#define ADDRESSES_END	0x7ffffffff000ull	/* of what programs map unless they ask for more */

/* As <linux/fs.h> of Linux 6.16 has it. */
struct scan_region {
	uint64_t start, end, categories;
};

struct scan_request {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN		_IOWR('f', 16, struct scan_request)
#define IS_GUARD	(1u << 8)

static int add(Kcr__Mm *mm, const struct scan_region *found, size_t count)
{
	Kcr__Range **larger = reallocarray(mm->guard, mm->n_guard + count, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	mm->guard = larger;
	for (size_t i = 0; i < count; i++) {
		Kcr__Range *range = malloc(sizeof(*range));

		if (!range)
			return -ENOMEM;
		kcr__range__init(range);
		range->start = found[i].start;
		range->end = found[i].end;
		mm->guard[mm->n_guard++] = range;
	}
	return 0;
}

static int scan(int fd, Kcr__Mm *mm)
{
	struct scan_region found[AT_ONCE];
	struct scan_request request = {
		.size = sizeof(request), .end = ADDRESSES_END, .vec = (uintptr_t)found,
		.vec_len = AT_ONCE, .category_mask = IS_GUARD, .return_mask = IS_GUARD,
	};
	int err = 0;

	while (!err && request.start < request.end) {
		int count = ioctl(fd, SCAN, &request);

		if (count < 0)
			return errno == ENOTTY || errno == EINVAL ? 0 : -errno;
		if (!count)
			break;
		err = add(mm, found, count);
		request.start = request.walk_end;
	}
	return err;
}

int guard_save(pid_t thread, Kcr__Mm *mm)
{
	int fd = proc_open(thread, "pagemap", O_RDONLY), err = fd < 0 ? fd : scan(fd, mm);

	if (fd >= 0)
		close(fd);
	return err ? report_errno(err, "process %d: cannot see its guard regions", mm->pid) : 0;
}
