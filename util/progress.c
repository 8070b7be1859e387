// SPDX-License-Identifier: GPL-2.0
/* Progress on a terminal or as JSON; see progress.h. */
#include "util/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/clock.h"
#include "report/report.h"
#include "util/json.h"

#define INTERVAL_NS	200000000ull
#define BAR_WIDTH	40

static void print_warning(const char *text)
{
	json_event(stdout, "warning");
	json_text(stdout, "message", text);
	json_end(stdout);
}

void progress_init(struct progress *p, bool quiet, bool json)
{
	*p = (struct progress){
		.json = json,
		.bar = !quiet && !json && isatty(STDERR_FILENO),
		.last_ns = now_ns(),
	};
	report_on_warning(json ? print_warning : NULL);
}

static void draw(uint64_t done, uint64_t total)
{
	char bar[BAR_WIDTH + 1];
	int filled;

	if (total < done)		/* it was an estimate */
		total = done;
	filled = total ? done * BAR_WIDTH / total : 0;
	memset(bar, ' ', BAR_WIDTH);
	memset(bar, '#', filled);
	bar[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r[%s] %llu of %llu MB ", bar, (unsigned long long)done >> 20,
		(unsigned long long)total >> 20);
}

void progress_update(void *progress, uint64_t bytes_done, uint64_t bytes_total)
{
	struct progress *p = progress;
	uint64_t now;

	if (!p->bar && !p->json)
		return;
	now = now_ns();
	if (now - p->last_ns < INTERVAL_NS)
		return;
	p->last_ns = now;
	p->shown = true;
	if (p->bar) {
		draw(bytes_done, bytes_total);
		return;
	}
	json_event(stdout, "progress");
	json_number(stdout, "bytes", bytes_done);
	json_number(stdout, "total", bytes_total);
	json_end(stdout);
}

void progress_end(struct progress *p)
{
	if (p->bar && p->shown)
		fprintf(stderr, "\r%*s\r", BAR_WIDTH + 40, "");
	p->shown = false;
}
