// SPDX-License-Identifier: GPL-2.0
/* See saved.h. */
#include "util/saved.h"

#include <string.h>

#include "report/report.h"
#include "util/compressed.h"
#include "util/json.h"
#include "util/status.h"

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

static void pages(const struct checkpoint_result *r)
{
	const struct checkpoint_left_out *out = &r->left_out;

	json_number(stdout, "pages_scanned", r->nr_scanned);
	json_number(stdout, "pages", r->nr_pages);
	json_number(stdout, "pages_shared", r->nr_shared);
	json_number(stdout, "pages_duplicate", r->nr_duplicates);
	json_number(stdout, "pages_unchanged", r->nr_unchanged);
	json_number(stdout, "pages_unwritten", r->nr_unwritten);
	json_number(stdout, "pages_zero", out->nr_zero);
	json_number(stdout, "pages_untouched", out->nr_untouched);
	json_number(stdout, "pages_mapped", out->nr_mapped);
	compressed_json(stdout, r->compression, r->target_rate);
}

static void counts(const struct checkpoint_result *r)
{
	json_number(stdout, "attempts", r->attempts);
	json_number(stdout, "processes", r->nr_processes);
	json_number(stdout, "threads", r->nr_threads);
	json_number(stdout, "mappings", r->nr_mappings);
	json_number(stdout, "files", r->nr_files);
	json_number(stdout, "content_bytes", r->content_bytes);
	pages(r);
	json_number(stdout, "bytes", r->bytes);
	printf(",\"id\":\"%016llx\"", (unsigned long long)r->id);
}

/* In the order of the phases; those that are parts of others come behind them. */
static void times(const struct checkpoint_result *r)
{
	json_time(stdout, "check", r->check_ns);
	json_time(stdout, "notify", r->notify_ns);
	json_time(stdout, "park", r->park_ns);
	json_time(stdout, "describe", r->describe_ns);
	json_time(stdout, "snapshot", r->snapshot_ns);
	json_time(stdout, "write", r->write_ns);
	json_time(stdout, "content", r->content_ns);
	json_time(stdout, "memory", r->memory_ns);
	json_time(stdout, "scan", r->scan_ns);
	json_time(stdout, "finish", r->finish_ns);
	json_time(stdout, "commit", r->commit_ns);
	json_time(stdout, "sync", r->sync_ns);
	json_time(stdout, "stopped", r->stopped_ns);
	json_time(stdout, "total", r->total_ns);
}

static void rates(const struct checkpoint_result *r)
{
	json_rate(stdout, "content", r->content_bytes, r->content_ns);
	json_rate(stdout, "memory", r->nr_pages * CONTEXT_PAGE, r->memory_ns);
	json_rate(stdout, "write", r->bytes, r->write_ns);
	json_rate(stdout, "disk", r->bytes, r->write_ns + r->sync_ns);
}

static void figures(const struct checkpoint_result *r)
{
	older(r);
	counts(r);
	times(r);
	rates(r);
	json_end(stdout);
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
	figures(r);
}

void saved_round(void *arg, unsigned int number, const struct checkpoint_result *r)
{
	const struct checkpoint_options *o = arg;

	json_event(stdout, "round");
	json_number(stdout, "target", o->target);
	json_number(stdout, "round", number);
	figures(r);
}

int saved_held(void *arg, const struct checkpoint_result *r)
{
	const struct checkpoint_options *o = arg;

	json_event(stdout, "saved");
	json_number(stdout, "target", o->target);
	figures(r);
	return hold_end_wait();
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
