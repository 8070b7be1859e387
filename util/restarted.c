// SPDX-License-Identifier: GPL-2.0
/* See restarted.h. */
#include "util/restarted.h"

#include "util/compressed.h"
#include "util/json.h"

static void images(const struct restart_result *r)
{
	fputs(",\"images\":[", stdout);
	for (size_t i = 0; i < r->nr_images; i++)
		printf("%s{\"id\":\"%016llx\",\"pages\":%llu,\"bytes\":%llu}", i ? "," : "",
		       (unsigned long long)r->image[i].id, (unsigned long long)r->image[i].nr_pages,
		       (unsigned long long)r->image[i].bytes);
	putchar(']');
}

void restarted_json(const struct restart_result *r)
{
	printf("{\"pid\":%d", r->leader);
	json_number(stdout, "processes", r->nr_processes);
	json_number(stdout, "threads", r->nr_threads);
	json_number(stdout, "mappings", r->nr_mappings);
	json_number(stdout, "files", r->nr_files);
	json_number(stdout, "content_bytes", r->content_bytes);
	json_number(stdout, "pages", r->nr_pages);
	json_number(stdout, "pages_shared", r->nr_shared);
	json_number(stdout, "pages_duplicate", r->nr_duplicates);
	json_number(stdout, "deferred_pages", r->nr_deferred);
	compressed_json(stdout, r->compression, 0);
	json_number(stdout, "bytes", r->bytes);
	images(r);
	json_time(stdout, "load", r->load_ns);
	json_time(stdout, "open", r->open_ns);
	json_time(stdout, "skeleton", r->skeleton_ns);
	json_time(stdout, "fill", r->fill_ns);
	json_time(stdout, "resume", r->resume_ns);
	json_time(stdout, "total", r->total_ns);
	json_rate(stdout, "fill", r->nr_pages * CONTEXT_PAGE, r->fill_ns);
	json_end(stdout);
}
