// SPDX-License-Identifier: GPL-2.0
/* Validates what a context file says of seccomp filters and of the threads that have them. */
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "section.h"

const char *check_filter(const Kcr__Filter *filter)
{
	size_t size = sizeof(struct sock_filter);

	if (!filter->program.len || filter->program.len % size ||
	    filter->program.len / size > BPF_MAXINSNS)
		return "seccomp filter of an impossible length";
	/* Others change other threads, or open a descriptor. */
	if (filter->flags & ~SECCOMP_FILTER_FLAG_LOG)
		return "seccomp filter with unknown flags";
	return NULL;
}

const char *check_seccomp(const Kcr__Thread *thread, const Kcr__Preamble *preamble)
{
	size_t i;

	if (thread->seccomp > SECCOMP_MODE_FILTER)
		return "thread in an unknown seccomp mode";
	if (!thread->n_filter != (thread->seccomp != SECCOMP_MODE_FILTER))
		return "thread with filters and in another seccomp mode";
	for (i = 0; i < thread->n_filter; i++)
		if (!thread->filter[i] || thread->filter[i] > preamble->n_filter)
			return "thread with an unknown seccomp filter";
	return NULL;
}
