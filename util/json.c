// SPDX-License-Identifier: GPL-2.0
/* See json.h. */
#include "util/json.h"

#include <inttypes.h>

void json_event(FILE *out, const char *event)
{
	fprintf(out, "{\"event\":\"%s\"", event);
}

void json_end(FILE *out)
{
	fputs("}\n", out);
	fflush(out);
}

void json_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ')
			fprintf(out, "\\u%04x", c);
		else
			putc(c, out);
	}
	putc('"', out);
}

void json_text(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	json_string(out, text);
}

void json_number(FILE *out, const char *name, uint64_t number)
{
	fprintf(out, ",\"%s\":%" PRIu64, name, number);
}

void json_time(FILE *out, const char *name, uint64_t ns)
{
	fprintf(out, ",\"%s_ms\":%.3f", name, (double)ns / 1e6);
}

void json_rate(FILE *out, const char *name, uint64_t bytes, uint64_t ns)
{
	fprintf(out, ",\"%s_mb_s\":%.1f", name, ns ? (double)bytes / (double)ns * 1e3 : 0);
}
