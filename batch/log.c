// SPDX-License-Identifier: GPL-2.0
/* The log; see log.h. */
#include "batch/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "image/view.h"
#include "proc/clock.h"

#define SAID_AGAIN_NS	(3600 * 1000000000ull)

static int log_fd = -1;
static bool is_quiet, is_verbose;

void log_open(const struct folder *f)
{
	char file[NAME_MAX + 1];

	log_fd = openat(f->fd, folder_file(f->name, "log", file),
			O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

void log_set_level(bool quiet, bool verbose)
{
	is_quiet = quiet;
	is_verbose = verbose;
}

static bool for_people(enum log_weight weight)
{
	return weight == LOG_FAILURE || (weight == LOG_NOTICE && !is_quiet) || is_verbose;
}

/* "2026-11-22 20:37:17.123 ", in local time. */
static void put_time(FILE *out)
{
	uint64_t ns = clock_ns(CLOCK_REALTIME);
	time_t seconds = (time_t)(ns / 1000000000);
	char text[32] = "";
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(text, sizeof(text), "%F %T", &local);
	fprintf(out, "%s.%03u ", text, (unsigned int)(ns / 1000000 % 1000));
}

/* One write, so that lines of several processes do not mix. */
static void write_line(int fd, bool with_time, const char *text)
{
	size_t size;
	char *line = NULL;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return;
	if (with_time)
		put_time(out);
	else
		fputs("cr_batch: ", out);
	text_put(out, text);
	putc('\n', out);
	if (!fclose(out) && write(fd, line, size) < 0) {
		/* The disk is full, or nobody reads: nothing else may suffer from that. */
	}
	free(line);
}

void log_event(enum log_weight weight, const char *format, ...)
{
	char text[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (log_fd >= 0)
		write_line(log_fd, true, text);
	if (log_fd < 0 || for_people(weight))
		write_line(STDERR_FILENO, false, text);
}

bool log_is_news(struct log_repeated *last, const char *text, uint64_t now_ns)
{
	char cut[sizeof(last->text)];

	snprintf(cut, sizeof(cut), "%s", text);
	if (last->said_ns && !strcmp(cut, last->text) && now_ns - last->said_ns < SAID_AGAIN_NS)
		return false;
	memcpy(last->text, cut, sizeof(cut));
	last->said_ns = now_ns;
	return true;
}
