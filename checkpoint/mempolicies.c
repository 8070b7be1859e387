// SPDX-License-Identifier: GPL-2.0
/* NUMA memory policies of a stopped process, as the module tells them. */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"
#include "report/report.h"

#define WORDS	(KCR_POLICY_NODES / 64)

/* NULL: no memory. */
static Kcr__MemoryPolicy *make(const struct kcr_mempolicy *from)
{
	Kcr__MemoryPolicy *out = malloc(sizeof(*out));

	if (!out)
		return NULL;
	kcr__memory_policy__init(out);
	out->mode = from->mode;
	out->has_start = out->has_end = !from->tid;
	out->start = from->start;
	out->end = from->end;
	out->has_home_node = from->home_node >= 0;
	out->home_node = from->home_node;
	out->nodes = malloc(WORDS * sizeof(*out->nodes));
	if (!out->nodes) {
		kcr__memory_policy__free_unpacked(out, NULL);
		return NULL;
	}
	for (size_t i = 0; i < WORDS; i++) {
		out->nodes[i] = from->nodes[i];
		if (from->nodes[i])
			out->n_nodes = i + 1;
	}
	return out;
}

/* Is it of a mapping that is saved?  One that has excluded parts begins with one of its pieces. */
static bool has_mapping(const Kcr__Mm *mm, const struct kcr_mempolicy *from)
{
	return context_area(mm, from->start) != SIZE_MAX;
}

static int add(Kcr__Process *p, const struct kcr_mempolicy *from)
{
	Kcr__Thread *t = from->tid ? describe_find_thread(p, from->tid, 0) : NULL;
	Kcr__MemoryPolicy *policy;

	if (from->tid ? !t : !p->mm || !has_mapping(p->mm, from))
		return 0;
	policy = make(from);
	if (!policy)
		return -ENOMEM;
	if (t)
		t->policy = policy;
	else
		p->mm->policy[p->mm->n_policy++] = policy;
	return 0;
}

int describe_mempolicies(const struct checkpoint *c, Kcr__Process *p)
{
	struct kcr_mempolicy *list = NULL;
	int count = device_mempolicies(c->attempt.job, p->pid, &list), err = 0;

	if (count > 0 && p->mm) {
		p->mm->policy = calloc(count, sizeof(*p->mm->policy));
		err = p->mm->policy ? 0 : -ENOMEM;
	}
	for (int i = 0; !err && i < count; i++)
		err = add(p, &list[i]);
	free(list);
	if (err)
		return report_errno(err, "process %d: memory policies", p->pid);
	return count < 0 ? count : 0;
}
