// SPDX-License-Identifier: GPL-2.0
/*
 * The blob: mapping it, allocating from it, and the jump into it.
 */
#include "rebuild/blob.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/restorer.h"
#include "report/report.h"

#define PAGE	4096u

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* A second mapping of the same shared page, at a fixed address. */
static int map_status(struct blob *blob, struct restorer_status *status)
{
	void *place = (void *)(uintptr_t)blob->status;

	/* An old size of 0 duplicates a shared mapping instead of moving it. */
	if (mremap(status, 0, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place)
		return report_errno(-errno, "cannot share the status page");
	return 0;
}

int blob_map(struct blob *blob, uint64_t base, uint64_t length, struct restorer_status *status)
{
	uint64_t code = __stop_kcr_restorer - __start_kcr_restorer;
	uint64_t entry = (const char *)(uintptr_t)restorer_run - __start_kcr_restorer;
	void *memory = mmap((void *)(uintptr_t)base, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory == MAP_FAILED)
		return report_errno(-errno, "cannot map %llu bytes for the restart",
				    (unsigned long long)length);
	memset(blob, 0, sizeof(*blob));
	blob->base = base;
	blob->length = length;
	blob->run = base + entry;
	memcpy(memory, __start_kcr_restorer, code);
	code = round_up(code, PAGE);
	if (mprotect(memory, code, PROT_READ | PROT_EXEC))
		return report_errno(-errno, "cannot make the restorer executable");
	blob->status = base + code;
	blob->used = code + PAGE;
	return map_status(blob, status);
}

uint64_t blob_reserve(struct blob *blob, uint64_t length, uint64_t align)
{
	uint64_t start = round_up(blob->used, align);

	if (length > blob->length || start > blob->length - length) {
		blob->error = -ENOSPC;
		return 0;
	}
	blob->used = start + length;
	return blob->base + start;
}

void blob_run(const struct blob *blob, uint64_t script, uint64_t stack_top)
{
	arch_run(blob->run, script, stack_top);
}
