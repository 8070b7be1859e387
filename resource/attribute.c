// SPDX-License-Identifier: GPL-2.0
/*
 * The attributes of a process, in the order in which they are rebuilt.  Two
 * rules determine it: what needs privileges comes before `credentials`, which
 * drops them; what a change of credentials resets (the parent-death signal)
 * comes after it.  Limits are raised first and lowered last.  No memory becomes executable
 * after `mdwe`.
 */
#include "resource/attribute.h"

const struct attribute *const attributes[] = {
	&attribute_namespace,
	&attribute_cwd,
	&attribute_thread_folder,
	&attribute_root,
	&attribute_sigaction,
	&attribute_name,
	&attribute_personality,
	&attribute_sched,
	&attribute_mempolicy,
	&attribute_membarrier,
	&attribute_sysv_semaphores,
	&attribute_sysv_queues,
	&attribute_thread_settings,
	&attribute_seccomp,
	&attribute_credentials,
	&attribute_prctl,
	&attribute_terminal,
	&attribute_pending,
	&attribute_timer,
	&attribute_rlimit,
	&attribute_mdwe,
	&attribute_aio_context,
	NULL,
};
