// SPDX-License-Identifier: GPL-2.0
/* See early_pages.h. */
#include "restart/early_pages.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report.h"

static int compare(const struct early_page *a, int32_t pid, uint64_t address)
{
	if (a->pid != pid)
		return a->pid < pid ? -1 : 1;
	return (a->address > address) - (a->address < address);
}

static int by_address(const void *a, const void *b)
{
	const struct early_page *other = b;

	return compare(a, other->pid, other->address);
}

/* The PID of the process that has the description of this one's memory; 0: it has none. */
static int32_t owner(const struct context *c, const Kcr__Process *p)
{
	if (p->mm)
		return p->pid;
	for (size_t i = 0; i < c->nr_processes; i++)
		if (c->process[i]->mm && c->process[i]->mm_id == p->mm_id)
			return c->process[i]->pid;
	return 0;
}

static int add(struct early_pages *e, const Kcr__Process *p, int32_t pid)
{
	struct early_page *more = reallocarray(e->at, e->count + p->n_thread + 1, sizeof(*more));

	if (!more)
		return report_errno(-ENOMEM, "process %d: its threads", p->pid);
	e->at = more;
	for (size_t i = 0; i < p->n_thread; i++)
		if (p->thread[i]->rseq)
			more[e->count++] = (struct early_page){
				pid, p->thread[i]->rseq & ~(uint64_t)(CONTEXT_PAGE - 1),
			};
	return 0;
}

int early_pages_find(struct early_pages *e, const struct context *c, const Kcr__Process *only)
{
	int err = 0;

	*e = (struct early_pages){ 0 };
	for (size_t i = 0; i < c->nr_processes && !err; i++) {
		const Kcr__Process *p = c->process[i];
		int32_t pid = p->state == KCR__PROCESS__STATE__ZOMBIE ? 0 : owner(c, p);

		if (pid && (!only || pid == only->pid))
			err = add(e, p, pid);
	}
	if (err)
		early_pages_free(e);
	else if (e->count)
		qsort(e->at, e->count, sizeof(*e->at), by_address);
	return err;
}

uint64_t early_pages_next(const struct early_pages *e, int32_t pid, uint64_t address)
{
	size_t low = 0, high = e->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&e->at[middle], pid, address) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < e->count && e->at[low].pid == pid ? e->at[low].address : UINT64_MAX;
}

void early_pages_free(struct early_pages *e)
{
	free(e->at);
	*e = (struct early_pages){ 0 };
}
