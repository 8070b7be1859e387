// SPDX-License-Identifier: GPL-2.0
/* Removing a deleted job's files; see clean.h. */
#include "batch/clean.h"

#include <errno.h>
#include <unistd.h>

#include "batch/folder.h"
#include "batch/scheduler.h"
#include "report/report.h"

int clean_deleted(const struct options *o)
{
	struct folder f;
	int err;

	if (!o->scheduler->is_deleted() || access(o->dir, F_OK))
		return 0;
	err = folder_open(&f, o->dir, o->name, false);
	if (err)
		return err;
	err = folder_lock(&f, 0);
	if (!err || err == -ENOLCK) {
		report_clear();
		err = folder_remove_job(&f);
	} else if (err == -EBUSY) {
		report_clear();
		err = 0;
	}
	folder_close(&f);
	return err;
}
