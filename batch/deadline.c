// SPDX-License-Identifier: GPL-2.0
/* The end of the allocation; see deadline.h. */
#include "batch/deadline.h"

#include <stdbool.h>
#include <unistd.h>

#include "batch/log.h"
#include "batch/scheduler.h"
#include "proc/clock.h"
#include "proc/duration.h"

#define SECOND		1000000000ull
#define FIRST_PAUSE_S	10		/* until a scheduler that does not answer is asked again */
#define PAUSES		7		/* each twice as long as the one before: 21 minutes in all */
#define SPREAD_S	15		/* of the tasks of a job, that they do not all ask at once */
#define WORTH_S		30		/* by how much the time must have grown to wait on */

/* In how many seconds; a job that is saved at once, each time, would never get on. */
static uint64_t time_of_last_save(int64_t left, int64_t before_end)
{
	char text[48], before[48];

	duration_format(text, sizeof(text), left);
	duration_format(before, sizeof(before), before_end);
	if (left > before_end) {
		log_event(LOG_ROUTINE, "the allocation ends in %s: the save is due %s before", text,
			  before);
		return left - before_end;
	}
	log_event(LOG_FAILURE, "warning: the allocation ends in %s, which is less than --before-end=%s: "
		  "the save is due when half of that is over", text, before);
	return left / 2;
}

/* Can another answer be expected later? */
static bool may_change(const struct options *o)
{
	return o->time_s < 0 && o->scheduler && o->scheduler->seconds_left &&
	       !o->scheduler->says_length;
}

/* The answer may take long: what asks for the program's end meanwhile is held back as in a save. */
static int64_t seconds_left(struct run *r, uint64_t now, bool anew)
{
	int64_t left;

	hold_set(&r->hold, true);
	left = scheduler_seconds_left(r->options->scheduler, r->options->time_s,
				      (int64_t)((now - r->start_ns) / SECOND), anew);
	if (!r->schedule.leave)		/* else a save is to come */
		hold_set(&r->hold, false);
	return left;
}

/* Before a save: with time for an answer, and not when all tasks of a job ask. */
static uint64_t time_to_ask(uint64_t now, uint64_t save_ns)
{
	uint64_t before = (SCHEDULER_ANSWER_S + getpid() % SPREAD_S) * SECOND;

	return save_ns > now + 2 * before ? save_ns - before : now + (save_ns - now) / 2;
}

/* After an answer, or none (left: -1). */
static void set_times(struct run *r, uint64_t now, int64_t left)
{
	uint64_t *end = &r->schedule.end_ns;

	*end = left < 0 ? SCHEDULE_NEVER :
			  now + time_of_last_save(left, r->options->before_end_s) * SECOND;
	r->ask_ns = SCHEDULE_NEVER;
	if (!may_change(r->options))
		return;
	if (left >= 0)
		r->ask_ns = time_to_ask(now, *end);
	else if (r->silent < PAUSES)
		r->ask_ns = now + (FIRST_PAUSE_S * SECOND << r->silent++);
}

void deadline_begin(struct run *r, uint64_t now)
{
	const struct scheduler *s = r->options->scheduler;
	int64_t left;

	r->schedule.end_ns = r->ask_ns = SCHEDULE_NEVER;
	if (r->options->before_end_s < 0)
		return;
	left = seconds_left(r, now, false);
	if (left < 0)
		log_event(LOG_FAILURE, "warning: %s%s when the allocation ends, so there is no save "
			  "before that: give its length with --time", s ? s->title : "there is no "
			  "scheduler to ask", s ? " does not say" : "");
	set_times(r, now, left);
}

void deadline_check(struct run *r, uint64_t now)
{
	const int64_t before_end = r->options->before_end_s;
	bool known = r->schedule.end_ns != SCHEDULE_NEVER;
	int64_t left;

	if (now < r->ask_ns)
		return;
	left = seconds_left(r, now, true);
	now = now_ns();			/* that may have taken a while */
	if (known && (left <= before_end ||
		      now + (left - before_end - WORTH_S) * SECOND <= r->schedule.end_ns)) {
		r->ask_ns = SCHEDULE_NEVER;
		return;
	}
	set_times(r, now, left);
	run_note(r);
}

uint64_t deadline_wait(const struct run *r, uint64_t now, uint64_t wait_ns)
{
	uint64_t left = r->ask_ns > now ? r->ask_ns - now : 0;

	if (r->ask_ns == SCHEDULE_NEVER)
		return wait_ns;
	return left < wait_ns ? left : wait_ns;
}
