// SPDX-License-Identifier: GPL-2.0
/*
 * The record of the first failure, and the lines that the tools print.
 *
 * The record is a static structure, or, after report_share(), in memory shared by
 * forked processes: the process that claims it first fills it in, all others leave
 * it alone.  The lines of such processes follow in that memory, each with its NUL.
 */
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plain.h"

#define LINES_ROOM	16384
#define WARNING		"warning: "

enum record_state { RECORD_EMPTY, RECORD_CLAIMED, RECORD_READY };

struct record {
	_Atomic int state;
	int error;
	char text[2048];
};

struct shared {
	struct record record;
	pid_t owner;			/* prints the lines of all others */
	_Atomic size_t used;		/* may exceed the size: what does not fit is lost */
	size_t printed;
	char lines[LINES_ROOM];
};

static struct shared *shared;
static struct record own_record;
static struct record *record = &own_record;
static const char *program = "kcr";
static int level;
static void (*listener)(const char *text);

/*
 * Names and paths may contain anything, and a message must be one line: libcr
 * takes a line that begins with a byte 1 for a status line of the tool.
 */
static void make_plain(char *text)
{
	char *to = text;

	while (*text) {
		bool harmless;
		size_t length = plain_next(text, &harmless);

		if (harmless)
			memmove(to, text, length);
		else
			*to = '?';
		to += harmless ? length : 1;
		text += length;
	}
	*to = '\0';
}

static void record_text(int err, bool with_errno, const char *format, va_list args)
{
	int expected = RECORD_EMPTY;
	size_t used;

	if (!atomic_compare_exchange_strong(&record->state, &expected, RECORD_CLAIMED))
		return;
	record->error = err;
	vsnprintf(record->text, sizeof(record->text), format, args);
	make_plain(record->text);
	used = strlen(record->text);
	if (with_errno)
		snprintf(record->text + used, sizeof(record->text) - used, ": %s",
			 strerror(-err));
	atomic_store(&record->state, RECORD_READY);
}

int report_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record_text(err, false, format, args);
	va_end(args);
	return err;
}

int report_errno(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record_text(err, true, format, args);
	va_end(args);
	return err;
}

static void leave_line(const char *line)
{
	size_t length = strlen(line) + 1, at = atomic_fetch_add(&shared->used, length);

	if (at < LINES_ROOM && length <= LINES_ROOM - at)
		memcpy(shared->lines + at, line, length);
}

static void say(const char *line)
{
	fprintf(stderr, "%s: %s\n", program, line);
	if (listener && !strncmp(line, WARNING, strlen(WARNING)))
		listener(line + strlen(WARNING));
}

/* One write per line, so that lines of several processes do not mix. */
static void print_line(const char *kind, const char *format, va_list args)
{
	char text[2048], line[2100];

	vsnprintf(text, sizeof(text), format, args);
	make_plain(text);
	snprintf(line, sizeof(line), "%s%s", kind, text);
	if (shared && shared->owner != getpid())
		leave_line(line);
	else
		say(line);
}

void report_relay(void)
{
	size_t end, length;

	if (!shared || shared->owner != getpid())
		return;
	end = atomic_load(&shared->used);
	if (end > LINES_ROOM)
		end = LINES_ROOM;
	for (; shared->printed < end; shared->printed += length + 1) {
		const char *line = shared->lines + shared->printed;

		/* Empty: its writer was killed while writing, or it did not fit. */
		length = strnlen(line, end - shared->printed);
		if (length)
			say(line);
	}
}

void report_warn(const char *format, ...)
{
	va_list args;

	if (level < 0)
		return;
	va_start(args, format);
	print_line(WARNING, format, args);
	va_end(args);
}

void report_on_warning(void (*new_listener)(const char *text))
{
	listener = new_listener;
}

void report_verbose(const char *format, ...)
{
	va_list args;

	if (level < 1)
		return;
	va_start(args, format);
	print_line("", format, args);
	va_end(args);
}

void report_set_program(const char *name)
{
	program = name;
}

void report_set_level(int new_level)
{
	level = new_level;
}

int report_error(void)
{
	return atomic_load(&record->state) == RECORD_READY ? record->error : 0;
}

const char *report_message(void)
{
	return atomic_load(&record->state) == RECORD_READY ? record->text : NULL;
}

void report_clear(void)
{
	atomic_store(&record->state, RECORD_EMPTY);
}

void report_print(int err)
{
	const char *message = report_message();

	if (level >= -1)
		fprintf(stderr, "%s: %s\n", program, message ? message : strerror(-err));
}

int report_exit_code(int err)
{
	return -err & 0xff ?: 1;
}

int report_share(void)
{
	struct shared *page;

	if (shared)
		return 0;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	if (page == MAP_FAILED)
		return report_errno(-errno, "cannot share messages between processes");
	page->owner = getpid();
	page->record.error = record->error;
	memcpy(page->record.text, record->text, sizeof(page->record.text));
	atomic_store(&page->record.state, atomic_load(&record->state));
	record = &page->record;
	shared = page;
	return 0;
}
