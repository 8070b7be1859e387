/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One message per failure: the function that first detects an error says what
 * happened and what the user can do; callers only pass the -errno on; the
 * tool prints the message once, at its end.
 */
#ifndef KCR_REPORT_H
#define KCR_REPORT_H

#include <stdbool.h>

/*
 * Records the message, unless one is recorded already, and returns `err` (a
 * negative errno) so that `return report_fail(-EIO, "…")` reads well.
 * The text has no trailing newline and no errno text: use report_errno() for
 * "text: strerror".
 */
int report_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As report_fail(), with ": strerror(-err)" appended. */
int report_errno(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * A warning: the work goes on.  Printed at once (unless quiet), except in
 * processes forked after report_share(): see report_relay().
 */
void report_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Progress for -v / KCR_DEBUG. */
void report_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `listener` gets every later warning of this process that is printed, too; NULL: none. */
void report_on_warning(void (*listener)(const char *text));

void report_set_program(const char *name);	/* prefix of printed lines */
void report_set_level(int level);		/* -2 silent, -1 no warnings, 0 normal, 1 verbose */

int report_error(void);				/* -errno given with the recorded text, or 0 */
const char *report_message(void);		/* recorded text, or NULL */
void report_clear(void);
/* Prints "PROGRAM: message" (or strerror when none is recorded) to stderr (unless silent). */
void report_print(int err);
/* A tool's exit code for a -errno: its low byte, but never 0. */
int report_exit_code(int err);

/*
 * Shares the record with processes forked from here (a MAP_SHARED page), so
 * that the first failure in any of them is what the tool prints.
 */
int report_share(void);
/*
 * Prints the warnings of processes forked after report_share() since the last
 * call; only in the process that called report_share().  They do not print themselves,
 * as their standard error may already be that of the restored program.
 */
void report_relay(void);

#endif /* KCR_REPORT_H */
