/* SPDX-License-Identifier: GPL-2.0 */
/* NUMA memory policies in the version this is built for.  Used by mempolicy.c only. */
#ifndef KCR_COMPAT_MEMPOLICY_H
#define KCR_COMPAT_MEMPOLICY_H

#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/version.h>

/* 5.14: all modes have their nodes in one place (269fbe72cded). */
#define KCR_HAVE_POLICY_NODES	(LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0))
/* 5.17: set_mempolicy_home_node(2) (c6018b4b2549). */
#define KCR_HAVE_HOME_NODE	(LINUX_VERSION_CODE >= KERNEL_VERSION(5, 17, 0))

#ifdef CONFIG_NUMA
static inline const struct mempolicy *kcr_task_policy(const struct task_struct *task)
{
	return task->mempolicy;
}

static inline const struct mempolicy *kcr_vma_policy(const struct vm_area_struct *vma)
{
	return vma->vm_policy;
}

/* As set_mempolicy(2) takes it: the mode, with its flags. */
static inline u32 kcr_policy_mode(const struct mempolicy *policy)
{
	u32 mode = policy->mode;

#if !KCR_HAVE_POLICY_NODES
	if (policy->flags & MPOL_F_LOCAL)
		mode = MPOL_LOCAL;
#endif
	return mode | (policy->flags & MPOL_MODE_FLAGS);
}

/*
 * … and the nodes; STATIC and RELATIVE ones not as they apply here.  Those of MPOL_LOCAL are never
 * set (mpol_set_nodemask(), mm/mempolicy.c): what was in that memory before is nobody's business.
 */
static inline void kcr_policy_nodes(const struct mempolicy *policy, nodemask_t *nodes)
{
	nodes_clear(*nodes);
	if (policy->mode == MPOL_LOCAL)
		return;
	if (policy->flags & (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES)) {
		*nodes = policy->w.user_nodemask;
		return;
	}
#if KCR_HAVE_POLICY_NODES
	*nodes = policy->nodes;
#else
	if (policy->mode != MPOL_PREFERRED)
		*nodes = policy->v.nodes;
	else if (!(policy->flags & MPOL_F_LOCAL))
		node_set(policy->v.preferred_node, *nodes);
#endif
}

static inline int kcr_policy_home(const struct mempolicy *policy)
{
#if KCR_HAVE_HOME_NODE
	return policy->home_node;
#else
	return NUMA_NO_NODE;
#endif
}
#else
static inline const struct mempolicy *kcr_task_policy(const struct task_struct *task)
{
	return NULL;
}

static inline const struct mempolicy *kcr_vma_policy(const struct vm_area_struct *vma)
{
	return NULL;
}

static inline u32 kcr_policy_mode(const struct mempolicy *policy)
{
	return MPOL_DEFAULT;
}

static inline void kcr_policy_nodes(const struct mempolicy *policy, nodemask_t *nodes)
{
	nodes_clear(*nodes);
}

static inline int kcr_policy_home(const struct mempolicy *policy)
{
	return NUMA_NO_NODE;
}
#endif

#endif /* KCR_COMPAT_MEMPOLICY_H */
