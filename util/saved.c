// SPDX-License-Identifier: GPL-2.0
/* See saved.h. */
#include "util/saved.h"

#include <string.h>

#include "report/report.h"
#include "util/compressed.h"
#include "util/json.h"

/* The files that an increment needs. */
static void older(const struct checkpoint_result *r)
{
	if (!r->nr_older)
		return;
	fputs(",\"older\":[", stdout);
	for (size_t i = 0; i < r->nr_older; i++)
		printf("%s{\"bytes\":%llu,\"id\":\"%016llx\"}", i ? "," : "",
		       (unsigned long long)r->older[i].bytes, (unsigned long long)r->older[i].id);
	putchar(']');
}

static void counts(const struct checkpoint_result *r)
{
	compressed_json(stdout, r->compression, r->target_rate);
	json_number(stdout, "processes", r->nr_processes);
	json_number(stdout, "threads", r->nr_threads);
	json_number(stdout, "pages", r->nr_pages);
	json_number(stdout, "pages_unchanged", r->nr_unchanged);
	json_number(stdout, "pages_unwritten", r->nr_unwritten);
	json_number(stdout, "bytes", r->bytes);
	printf(",\"id\":\"%016llx\"", (unsigned long long)r->id);
}

static void times(const struct checkpoint_result *r)
{
	json_time(stdout, "park", r->park_ns);
	json_time(stdout, "describe", r->describe_ns);
	json_time(stdout, "snapshot", r->snapshot_ns);
	json_time(stdout, "write", r->write_ns);
	json_time(stdout, "commit", r->commit_ns);
	json_time(stdout, "stopped", r->stopped_ns);
}

void saved_json(const struct checkpoint_options *o, const struct checkpoint_result *r)
{
	json_event(stdout, "done");
	json_number(stdout, "target", o->target);
	if (o->path)
		json_text(stdout, "file", o->path);
	if (o->precopy) {
		json_number(stdout, "rounds", r->nr_rounds);
		json_number(stdout, "rounds_bytes", r->rounds_bytes);
	}
	older(r);
	counts(r);
	times(r);
	json_end(stdout);
}

void saved_error(int err)
{
	json_event(stdout, "error");
	json_number(stdout, "code", report_exit_code(err));
	json_text(stdout, "message", report_message() ? report_message() : strerror(-err));
	json_end(stdout);
}

void saved_tell(const struct checkpoint_options *o, const struct checkpoint_result *r)
{
	if (o->incremental || o->precopy)
		report_verbose("%llu pages were not saved, as older files have them: %llu of them have not "
			       "been written to and were not read",
			       (unsigned long long)r->nr_unchanged, (unsigned long long)r->nr_unwritten);
	compressed_tell(&o->compression, r);
	report_verbose("%zu processes with %zu threads: %llu pages, %.1f MB; they were stopped for "
		       "%.1f ms", r->nr_processes, r->nr_threads, (unsigned long long)r->nr_pages,
		       (double)r->bytes / 1e6, (double)r->stopped_ns / 1e6);
}
