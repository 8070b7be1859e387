// SPDX-License-Identifier: GPL-2.0
/*
 * Records the restart for kcr_restarted(3).  Only two pages of the record are
 * written, which the program itself never writes.
 */
#include "restart/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/device.h"
#include "libcr/record.h"
#include "report/report.h"

static int store(const struct rebuild *r, pid_t pid, const Kcr__Record *record,
		 struct cri_record_restart *restart)
{
	struct kcr_run run = {
		.address = record->address + offsetof(struct cri_record, restart),
		.nr_pages = sizeof(*restart) / CRI_RECORD_PAGE,
	};

	restart->count = record->restarts + 1;
	return device_store(r->job, pid, restart, &run, 1, NULL);
}

int record_restart(struct rebuild *r)
{
	struct cri_record_restart *restart = aligned_alloc(CRI_RECORD_PAGE, sizeof(*restart));
	struct timespec now;
	int err = 0;

	if (!restart)
		return report_errno(-ENOMEM, "restart");
	clock_gettime(CLOCK_REALTIME, &now);
	*restart = (struct cri_record_restart) {
		.sec = now.tv_sec, .nsec = now.tv_nsec, .requester = r->requester,
	};
	snprintf(restart->source, sizeof(restart->source), "%s", r->source);
	for (size_t i = 0; !err && i < r->context->nr_processes; i++) {
		const Kcr__Mm *mm = r->context->process[i]->mm;

		for (size_t k = 0; !err && mm && k < mm->n_record; k++)
			err = store(r, r->new_pid[i], mm->record[k], restart);
	}
	free(restart);
	return err;
}
