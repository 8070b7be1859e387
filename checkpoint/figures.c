// SPDX-License-Identifier: GPL-2.0
/*
 * What the result of a checkpoint tells beside pages and bytes.
 *
 * Pages are searched for with the question which are worth saving, and the answer does not say
 * why others are not.  So where pages of anonymous memory were left out, the search is done
 * again for all that were touched: it reads page tables only, no contents.
 */
#include "checkpoint/internal.h"

#include "device/device.h"
#include "proc/clock.h"

void figures_describe(struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	struct checkpoint_result *result = c->result;

	result->nr_files = d->preamble.nr_files;
	for (size_t i = 0; i < d->nr_processes; i++)
		result->nr_mappings += d->process[i]->mm ? d->process[i]->mm->n_vma : 0;
	for (size_t i = 0; i < d->nr_spaces; i++) {
		const struct address_space *space = &d->space[i];

		for (size_t k = 0; k < space->nr_regions; k++)
			result->nr_scanned += (space->region[k].end - space->region[k].start) /
					      CONTEXT_PAGE;
	}
}

int figures_scan(struct checkpoint *c, struct kcr_scan *scan)
{
	uint64_t start = now_ns();
	int err = device_scan(c->attempt.job, scan);

	c->result->scan_ns += now_ns() - start;
	return err;
}

/* Those that have been touched, zero or not. */
static int count_touched(struct checkpoint *c, const struct kcr_scan *range, uint64_t *nr_touched)
{
	struct kcr_run run[CONTEXT_CHUNK_RUNS];
	struct kcr_scan scan = {
		.flags = (range->flags & KCR_SCAN_SNAPSHOT) | KCR_SCAN_KEEP_ZERO,
		.pid = range->pid, .end = range->end, .next = range->start,
		.max_pages = UINT64_MAX, .runs = (uintptr_t)run,
	};
	int err = 0;

	*nr_touched = 0;
	while (!err && scan.next < scan.end) {
		scan.start = scan.next;
		scan.count = CONTEXT_CHUNK_RUNS;
		err = figures_scan(c, &scan);
		*nr_touched += err ? 0 : scan.nr_pages;
	}
	return err;
}

int figures_left_out(struct checkpoint *c, const struct region *r, const struct kcr_scan *range,
		     uint64_t nr_found)
{
	struct checkpoint_left_out *out = &c->result->left_out;
	uint64_t nr_pages = (range->end - range->start) / CONTEXT_PAGE, nr_touched;
	int err;

	if (!c->options->figures || nr_found == nr_pages)
		return 0;
	if (r->how == SAVE_PRESENT) {
		out->nr_untouched += nr_pages - nr_found;
		return 0;
	}
	if (r->how != SAVE_TOUCHED) {
		out->nr_mapped += nr_pages - nr_found;
		return 0;
	}
	err = count_touched(c, range, &nr_touched);
	if (err)
		return err;
	/* Others may have touched more meanwhile, and the kernel may have dropped what is free. */
	nr_touched = nr_touched < nr_found ? nr_found : nr_touched;
	out->nr_zero += nr_touched - nr_found;
	out->nr_untouched += nr_pages - nr_touched;
	return 0;
}
