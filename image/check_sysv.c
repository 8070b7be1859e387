// SPDX-License-Identifier: GPL-2.0
/* Validates what a context file says of System V semaphores and message queues. */
#include <limits.h>

#include "section.h"

#define SEMAPHORES_MAX	65536u		/* of a set: kernel.sem permits 32000 by default */
#define VALUE_MAX	32767u		/* SEMVMX, SEMAEM */

static const char *check_identity(const Kcr__SysvIdentity *identity)
{
	return identity->id < 0 || identity->mode > 0777 ? "impossible System V object" : NULL;
}

static const char *check_set(const Kcr__SemaphoreSet *set)
{
	if (!set->n_value || set->n_value > SEMAPHORES_MAX || set->n_pid != set->n_value)
		return "impossible number of semaphores";
	for (size_t i = 0; i < set->n_value; i++)
		if (set->value[i] > VALUE_MAX || set->pid[i] < 0)
			return "impossible semaphore";
	return check_identity(set->identity);
}

static const char *check_queue(const Kcr__SysvQueue *queue)
{
	for (size_t i = 0; i < queue->n_message; i++)
		if (queue->message[i]->type <= 0 || queue->message[i]->text.len > INT_MAX)
			return "impossible message";
	return check_identity(queue->identity);
}

static const Kcr__SemaphoreSet *find_set(const struct context *c, int32_t id)
{
	for (size_t i = 0; i < c->nr_processes; i++)
		for (size_t k = 0; k < c->process[i]->n_semaphore_set; k++)
			if (c->process[i]->semaphore_set[k]->identity->id == id)
				return c->process[i]->semaphore_set[k];
	return NULL;
}

static const char *check_undo(const struct context *c, const Kcr__SemaphoreUndo *undo)
{
	const Kcr__SemaphoreSet *set = find_set(c, undo->set);

	if (!set || undo->number >= set->n_value || !undo->adjustment ||
	    undo->adjustment > (int)VALUE_MAX || undo->adjustment < -(int)VALUE_MAX)
		return "impossible adjustment of a semaphore";
	return NULL;
}

static const char *check_process_sysv(const struct context *c, const Kcr__Process *p)
{
	const char *wrong = NULL;

	if (p->state == KCR__PROCESS__STATE__ZOMBIE &&
	    (p->n_semaphore_set || p->n_sysv_queue || p->n_semaphore_undo))
		return "zombie with semaphores or message queues";
	for (size_t i = 0; i < p->n_semaphore_set && !wrong; i++)
		wrong = check_set(p->semaphore_set[i]);
	for (size_t i = 0; i < p->n_sysv_queue && !wrong; i++)
		wrong = check_queue(p->sysv_queue[i]);
	for (size_t i = 0; i < p->n_semaphore_undo && !wrong; i++)
		wrong = check_undo(c, p->semaphore_undo[i]);
	return wrong;
}

const char *check_sysv(const struct context *c)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < c->nr_processes && !wrong; i++)
		wrong = check_process_sysv(c, c->process[i]);
	return wrong;
}
