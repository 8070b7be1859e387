// SPDX-License-Identifier: GPL-2.0
/* When to save; see schedule.h. */
#include "batch/schedule.h"

#include "job/optimum.h"

#define SECOND		1000000000ull
#define FIRST_RETRY_S	5
#define LAST_RETRY_S	60
#define GUESSED_COST	(10 * SECOND)	/* of a save, as long as none has been made */

static uint64_t next_after(const struct schedule *s, uint64_t now, uint64_t cost_ns)
{
	if (s->interval_ns)
		return now + s->interval_ns;
	return s->mttf_ns ? now + optimum_interval(cost_ns ? cost_ns : 1, s->mttf_ns) :
		SCHEDULE_NEVER;
}

void schedule_begin(struct schedule *s, uint64_t now)
{
	s->next_ns = next_after(s, now, GUESSED_COST);
	s->retry_ns = 0;
	s->failures = 0;
	s->save = s->leave = false;
}

static enum schedule_action wanted(const struct schedule *s, uint64_t now)
{
	if (s->leave || now >= s->end_ns)
		return SCHEDULE_LEAVE;
	if (now >= s->next_ns)
		return s->leave_each ? SCHEDULE_LEAVE : SCHEDULE_SAVE;
	return s->save ? SCHEDULE_SAVE : SCHEDULE_NONE;
}

enum schedule_action schedule_due(const struct schedule *s, uint64_t now, uint64_t *wait_ns)
{
	enum schedule_action action = wanted(s, now);
	uint64_t next = s->next_ns < s->end_ns ? s->next_ns : s->end_ns;

	if (action != SCHEDULE_NONE && now >= s->retry_ns)
		return action;
	if (action != SCHEDULE_NONE)
		next = s->retry_ns;
	*wait_ns = next == SCHEDULE_NEVER ? SCHEDULE_NEVER : next - now;
	return SCHEDULE_NONE;
}

void schedule_saved(struct schedule *s, uint64_t now, uint64_t cost_ns)
{
	s->next_ns = next_after(s, now, cost_ns);
	s->retry_ns = 0;
	s->failures = 0;
	s->save = false;
}

void schedule_failed(struct schedule *s, uint64_t now, enum schedule_action action)
{
	uint64_t pause = FIRST_RETRY_S << (s->failures < 4 ? s->failures : 4);

	s->failures++;
	s->retry_ns = now + (pause < LAST_RETRY_S ? pause : LAST_RETRY_S) * SECOND;
	if (action == SCHEDULE_LEAVE)
		s->leave = true;
	else
		s->save = true;
}
