// SPDX-License-Identifier: GPL-2.0
/*
 * cr_batch: runs a command under a batch scheduler so that it goes on in the next run where
 * this one has saved it.  See cr_batch(1); read batch/run.h next.
 */
#include "batch/clean.h"
#include "batch/options.h"
#include "batch/run.h"
#include "batch/show.h"
#include "report/report.h"

int main(int argc, char **argv)
{
	struct options o;
	int code, err;

	report_set_program("cr_batch");
	code = options_parse(argc, argv, &o);
	if (code >= 0)
		return code;
	if (!o.status && !o.clean)
		return run_supervise(&o);
	err = o.clean ? clean_deleted(&o) : show_folder(o.status, o.json);
	if (!err)
		return 0;
	report_print(err);
	return report_exit_code(err);
}
