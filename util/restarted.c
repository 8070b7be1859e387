// SPDX-License-Identifier: GPL-2.0
/* See restarted.h. */
#include "util/restarted.h"

#include "util/json.h"

void restarted_json(const struct restart_result *r)
{
	printf("{\"pid\":%d", r->leader);
	json_number(stdout, "processes", r->nr_processes);
	json_number(stdout, "threads", r->nr_threads);
	json_number(stdout, "pages", r->nr_pages);
	json_time(stdout, "open", r->open_ns);
	json_time(stdout, "skeleton", r->skeleton_ns);
	json_time(stdout, "fill", r->fill_ns);
	json_end(stdout);
}
