// SPDX-License-Identifier: GPL-2.0
/* What the end of a stopped process undoes of its operations on System V semaphores (SEM_UNDO). */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"

#define EXIT_TRIES	50
#define EXIT_WAIT_US	20000

static int add(Kcr__Process *p, const struct kcr_undo *from)
{
	Kcr__SemaphoreUndo *undo = malloc(sizeof(*undo));

	if (!undo)
		return report_errno(-ENOMEM, "process %d", p->pid);
	kcr__semaphore_undo__init(undo);
	undo->set = from->set;
	undo->number = from->number;
	undo->adjustment = from->adjustment;
	p->semaphore_undo[p->n_semaphore_undo++] = undo;
	return 0;
}

/* A process in the memory of another is made in a way that leaves no room for that. */
static int check(const Kcr__Process *p, uint32_t state, int count)
{
	if (state & KCR_UNDOS_SHARED)
		return report_fail(-EOPNOTSUPP, "process %d shares its semaphore adjustments (SEM_UNDO) "
				   "with another process (CLONE_SYSVSEM), which cannot be saved", p->pid);
	if (state & KCR_UNDOS_SEVERAL)
		return report_fail(-EOPNOTSUPP, "process %d has threads with semaphore adjustments "
				   "(SEM_UNDO) of their own, which cannot be saved", p->pid);
	if (count && !p->mm)
		return report_fail(-EOPNOTSUPP, "process %d has semaphore adjustments (SEM_UNDO) and "
				   "shares its memory with its parent, which cannot be saved", p->pid);
	return 0;
}

/* A thread that exits is not stopped, and counts as another process until it has given up its share. */
static int ask(const struct checkpoint *c, pid_t pid, uint32_t *state, struct kcr_undo **list)
{
	int count = device_undos(c->attempt.job, pid, state, list);

	for (int i = 0; i < EXIT_TRIES && count >= 0 && *state & KCR_UNDOS_SHARED; i++) {
		free(*list);
		*list = NULL;
		usleep(EXIT_WAIT_US);
		count = device_undos(c->attempt.job, pid, state, list);
	}
	return count;
}

int describe_undos(const struct checkpoint *c, Kcr__Process *p)
{
	struct kcr_undo *list = NULL;
	uint32_t state = 0;
	int count = ask(c, p->pid, &state, &list), err;

	if (count == -EOPNOTSUPP)	/* undos_warn() */
		return 0;
	if (count < 0)
		return count;
	err = check(p, state, count);
	if (!err && count) {
		p->semaphore_undo = calloc(count, sizeof(*p->semaphore_undo));
		if (!p->semaphore_undo)
			err = report_errno(-ENOMEM, "process %d", p->pid);
	}
	for (int i = 0; !err && i < count; i++)
		err = add(p, &list[i]);
	free(list);
	return err;
}

void undos_warn(const struct checkpoint *c)
{
	const struct description *d = &c->attempt.description;
	bool used = false, unknown = false;

	for (size_t i = 0; i < d->nr_processes; i++) {
		const Kcr__Process *p = d->process[i];
		struct kcr_undo *list = NULL;
		uint32_t state;

		for (size_t k = 0; k < p->n_semaphore_set; k++)
			used |= p->semaphore_set[k]->identity->used;
		if (p->n_semaphore_set)
			unknown |= device_undos(c->attempt.job, p->pid, &state, &list) == -EOPNOTSUPP;
		free(list);
	}
	if (used && unknown)
		report_warn("this kernel does not tell what the ends of processes undo of semaphores "
			    "(SEM_UNDO): after a restart they undo nothing");
}
