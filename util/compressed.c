// SPDX-License-Identifier: GPL-2.0
/* See compressed.h. */
#include "util/compressed.h"

#include "report/report.h"

void compressed_json(FILE *out, const struct compression_count *count, double target_rate)
{
	fputs(",\"compression\":{", out);
	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++) {
		const struct compression_count *n = &count[i];

		fprintf(out, "%s\"%s\":{\"chunks\":%llu,\"bytes\":%llu,\"stored\":%llu}", i ? "," : "",
			compression_names[i], (unsigned long long)n->chunks, (unsigned long long)n->bytes,
			(unsigned long long)n->stored);
	}
	if (target_rate > 0)
		fprintf(out, ",\"target_mb_s\":%.1f", target_rate / 1e6);
	putc('}', out);
}

void compressed_tell(const struct compression *how, const struct checkpoint_result *r)
{
	char text[256] = "", *at = text;

	if (!how->adaptive && how->kind == CONTEXT_RAW)
		return;
	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++) {
		const struct compression_count *n = &r->compression[i];

		if (n->chunks)
			at += snprintf(at, (size_t)(text + sizeof(text) - at),
				       "%s%s %llu chunks (%.1f MB, stored in %.1f MB)", *text ? ", " : "",
				       compression_names[i], (unsigned long long)n->chunks, (double)n->bytes / 1e6,
				       (double)n->stored / 1e6);
	}
	if (r->target_rate > 0)
		report_verbose("compression: %s; the destination takes %.0f MB/s",
			       *text ? text : "no memory", r->target_rate / 1e6);
	else
		report_verbose("compression: %s", *text ? text : "no memory");
}
