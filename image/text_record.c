// SPDX-License-Identifier: GPL-2.0
/*
 * As text: what a process has declared by libcr's kcr_ calls.
 */
#include <inttypes.h>
#include <time.h>

#include "view.h"

#define SHOWN		60	/* bytes of a value, unless everything is shown */

static bool is_text(const ProtobufCBinaryData *value)
{
	size_t i;

	for (i = 0; i < value->len; i++)
		if (value->data[i] < 0x20 || value->data[i] >= 0x7f)
			return false;
	return true;
}

static void write_value(FILE *out, const Kcr__Value *value, bool all)
{
	size_t shown = all || value->value.len < SHOWN ? value->value.len : SHOWN, i;
	bool text = is_text(&value->value);

	fputs("  value ", out);
	text_put(out, value->key);
	fputs(text ? " = " : " = 0x", out);
	for (i = 0; i < shown; i++)
		fprintf(out, text ? "%c" : "%02x", value->value.data[i]);
	if (shown < value->value.len)
		fprintf(out, "... (%zu bytes)", value->value.len);
	putc('\n', out);
}

static void write_restarts(FILE *out, const Kcr__Record *record)
{
	time_t seconds = record->restart_sec;
	char when[64] = "?";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &tm);
	fprintf(out, "  restarted before: %" PRIu32 " times, the last time %s", record->restarts,
		when);
	if (record->restart_source && *record->restart_source) {
		fputs(" from ", out);
		text_put(out, record->restart_source);
	}
	putc('\n', out);
}

void text_record(FILE *out, const Kcr__Record *record, bool all)
{
	size_t i;

	if (record->restarts)
		write_restarts(out, record);
	for (i = 0; i < record->n_excluded; i++)
		fprintf(out, "  excluded %012" PRIx64 "-%012" PRIx64 "\n", record->excluded[i]->start,
			record->excluded[i]->end);
	for (i = 0; i < record->n_region; i++) {
		fprintf(out, "  region %012" PRIx64 " %" PRIu64 " bytes ", record->region[i]->start,
			record->region[i]->length);
		text_put(out, record->region[i]->name);
		putc('\n', out);
	}
	for (i = 0; i < record->n_value; i++)
		write_value(out, record->value[i], all);
}
