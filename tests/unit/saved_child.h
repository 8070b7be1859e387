/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For tests of attributes: children that are saved from outside, and rebuilt in others, in which
 * the script's calls are made at once.  What only the module knows of them is canned.
 */
#ifndef TESTS_UNIT_SAVED_CHILD_H
#define TESTS_UNIT_SAVED_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "device/device.h"
#include "rebuild/script.h"
#include "resource/attribute.h"

#define CHILD_TIMERS	2

extern siginfo_t canned_signal;
extern int nr_canned_signals;
extern struct kcr_timer canned_timer[CHILD_TIMERS];
extern int nr_canned_timers;

struct child {
	pid_t pid;
	int release;
};

/* Forks a child that runs work(argument), says so, and stays until it is released. */
struct child child_start(void (*work)(void *), void *argument);
void child_finish(struct child child);
int child_save(pid_t pid, Kcr__Process **out);

struct remake {
	Kcr__Process *p;
	int err;
};

/* For child_start(): rebuilds what a struct remake has, or fails. */
void child_rebuild(void *argument);
extern bool child_script_failed;	/* a call of the script, in this child */

/* Whatever work() sets must be found again after save and rebuild. */
void child_round_trip(void (*work)(void *));
/* In a child, which fails unless. */
void child_need(bool ok);

#endif /* TESTS_UNIT_SAVED_CHILD_H */
