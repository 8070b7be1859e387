// SPDX-License-Identifier: GPL-2.0
/* NUMA memory policies.  See mempolicy.h; the module tells what they are. */
#include "resource/mempolicy.h"

#include <linux/kcr.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rebuild/restorer.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/attribute.h"

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node	450	/* Linux 5.17 */
#endif
#define WORDS		(KCR_POLICY_NODES / 64)
#define LABEL		32	/* bytes of the longest label, at least */
#define MAX_NODE	(KCR_POLICY_NODES + 1)	/* as the calls count: one more than they take */

struct policy {
	int mode;
	uint64_t nodes[WORDS];
};

/* Does it keep memory on, or near, the nodes that it names? */
static bool keeps_to_nodes(int mode)
{
	mode &= ~MPOL_MODE_FLAGS;
	return mode == MPOL_BIND || mode == MPOL_PREFERRED || mode == MPOL_PREFERRED_MANY;
}

/* As it can be had here.  False: not at all.  *lost: not all of its nodes. */
static bool adapt(const struct rebuild *r, const Kcr__MemoryPolicy *saved, struct policy *out, bool *lost)
{
	uint64_t allowed[WORDS] = { 0 }, wanted = 0, had = 0;

	*lost = false;
	if (r->any_cpu && keeps_to_nodes(saved->mode))
		return false;
	*out = (struct policy){ .mode = (int)saved->mode };
	/* Those that cr_restart, and what it makes, may use. */
	syscall(SYS_get_mempolicy, NULL, allowed, MAX_NODE, 0, MPOL_F_MEMS_ALLOWED);
	for (size_t i = 0; i < saved->n_nodes && i < WORDS; i++) {
		out->nodes[i] = saved->nodes[i];
		wanted |= saved->nodes[i];
		had |= saved->nodes[i] & allowed[i];
		*lost |= saved->nodes[i] & ~allowed[i];
	}
	if (!wanted || saved->mode & MPOL_F_RELATIVE_NODES) {
		*lost = false;
		return true;
	}
	/* Of STATIC ones the kernel does this, again and again. */
	for (size_t i = 0; i < WORDS && !(saved->mode & MPOL_F_STATIC_NODES); i++)
		out->nodes[i] &= allowed[i];
	return had;
}

static void warn(const Kcr__Process *p, bool lost)
{
	static pid_t warned;

	if (!lost || warned == p->pid)
		return;
	warned = p->pid;
	report_warn("process %d was to have memory of NUMA nodes that cannot be had here", p->pid);
}

static bool has_some(const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_thread; i++)
		if (p->thread[i]->policy)
			return true;
	return false;
}

/* That which cr_restart was started with. */
static void get_own(struct policy *own)
{
	*own = (struct policy){ .mode = MPOL_DEFAULT };
	syscall(SYS_get_mempolicy, &own->mode, own->nodes, MAX_NODE, NULL, 0);
}

/* A thread that has none would have that of the one which creates it. */
static int script_thread(struct rebuild *r, const Kcr__Process *p, const Kcr__Thread *t,
			 struct script *s)
{
	struct policy policy;
	bool lost = false;

	if (!has_some(p))
		return 0;
	if (!t->policy || !adapt(r, t->policy, &policy, &lost))
		get_own(&policy);
	warn(p, lost);
	script_call_try(s, "set_mempolicy", SYS_set_mempolicy, policy.mode,
			script_data(s, policy.nodes, sizeof(policy.nodes)), MAX_NODE, 0, 0, 0);
	return 0;
}

const struct attribute attribute_mempolicy = {
	.name = "memory policies",
	.script_thread = script_thread,
};

void mempolicy_script(const struct rebuild *r, const Kcr__Process *p, const Kcr__Mm *mm,
		      struct script *s)
{
	for (size_t i = 0; i < mm->n_policy; i++) {
		const Kcr__MemoryPolicy *saved = mm->policy[i];
		uint64_t length = saved->end - saved->start;
		struct policy policy;
		bool lost, known = adapt(r, saved, &policy, &lost);

		warn(p, lost);
		if (!known)
			continue;
		script_call_try(s, "mbind", SYS_mbind, saved->start, length, policy.mode,
				script_data(s, policy.nodes, sizeof(policy.nodes)), MAX_NODE, 0);
		if (saved->has_home_node)
			script_call_try(s, "set_mempolicy_home_node", SYS_set_mempolicy_home_node,
					saved->start, length, saved->home_node, 0, 0, 0);
	}
}

uint64_t mempolicy_script_size(const Kcr__Mm *mm)
{
	/* Two calls with their labels, which are there again if they take turns, and the nodes. */
	return mm->n_policy * (2 * (sizeof(struct restorer_op) + LABEL) + sizeof(struct policy) + 16);
}

/* ---- memory that cr_restart fills -------------------------------------------------------- */

void mempolicy_adopt(const struct rebuild *r, pid_t pid)
{
	static __thread const Kcr__MemoryPolicy *now;
	static __thread struct policy own;	/* before the first one */
	static __thread bool changed;
	const Kcr__Process *p = context_process(r->context, pid);
	const Kcr__MemoryPolicy *wanted = p && p->n_thread ? p->thread[0]->policy : NULL;
	struct policy policy;
	bool lost;

	if (wanted == now)
		return;
	now = wanted;
	if (!changed)
		get_own(&own);
	changed = true;
	if (!wanted || !adapt(r, wanted, &policy, &lost))
		policy = own;
	syscall(SYS_set_mempolicy, policy.mode, policy.nodes, MAX_NODE);
}
