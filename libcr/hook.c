// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What happens after the callbacks (hooks, which threads are held), and small
 * controls that need no more than a field of struct cri.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define RESTART_OFFSET	(CR_HOOK_RSTRT_SIGNAL_CONTEXT - CR_HOOK_CONT_SIGNAL_CONTEXT)

/* ---- hooks ---------------------------------------------------------------------------- */

cr_hook_fn_t cr_register_hook(cr_hook_event_t event, cr_hook_fn_t fn)
{
	cr_hook_fn_t old = CR_HOOK_FN_ERROR;

	if (!cri_is_init())
		return CR_HOOK_FN_ERROR;
	/* The error that an earlier call returned is no function to go back to. */
	if ((unsigned int)event >= CR_NUM_HOOKS || fn == CR_HOOK_FN_ERROR) {
		errno = EINVAL;
		return CR_HOOK_FN_ERROR;
	}
	cri_lock();
	if (!cri_service_start() && !cri_signal_prepare()) {
		old = cri.hook[event];
		__atomic_store_n(&cri.hook[event], fn, __ATOMIC_RELEASE);
	}
	cri_unlock();
	return old;
}

void cri_hook_run(cr_hook_event_t kind, const struct cri_request *request)
{
	cr_hook_event_t event = request->result > 0 ? kind + RESTART_OFFSET : kind;
	cr_hook_fn_t fn = __atomic_load_n(&cri.hook[event], __ATOMIC_ACQUIRE);

	if (fn && request->result >= 0)
		fn(event);
}

bool cri_hook_for_all(void)
{
	return cri.hook[CR_HOOK_CONT_SIGNAL_CONTEXT] || cri.hook[CR_HOOK_RSTRT_SIGNAL_CONTEXT];
}

/* ---- hold ----------------------------------------------------------------------------- */

int cr_hold_ctrl(int scope, int flags)
{
	int highest = scope == CR_HOLD_SCOPE_THREAD ? CR_HOLD_DFLT : CR_HOLD_BOTH, *hold, old;

	if (!cri_is_init())
		return -1;
	if (scope < CR_HOLD_SCOPE_THREAD || scope > CR_HOLD_SCOPE_UNINIT ||
	    flags < CR_HOLD_READ || flags > highest) {
		errno = EINVAL;
		return -1;
	}
	hold = scope == CR_HOLD_SCOPE_THREAD ? &cri_self.hold :
	       scope == CR_HOLD_SCOPE_INIT ? &cri.hold_init : &cri.hold_uninit;
	cri_lock();
	old = *hold;
	if (flags != CR_HOLD_READ)
		*hold = flags;
	cri_unlock();
	return old;
}

/* ---- persistence ----------------------------------------------------------------------- */

static int change_persist(int by)
{
	int old = cri_self.persist;

	if (!cri_is_init())
		return -1;
	if (by > 0 ? old == INT_MAX : !old) {
		errno = ERANGE;
		return -1;
	}
	cri_self.persist = old + by;
	if (!old) {
		cri_lock();
		cri_stay_loaded();	/* what the thread's state needs when it ends */
		cri_unlock();
	}
	return old;
}

int cr_inc_persist(void)
{
	return change_persist(1);
}

int cr_dec_persist(void)
{
	return change_persist(-1);
}

/* ---- forwarding ------------------------------------------------------------------------ */

int cr_forward_checkpoint(cr_scope_t scope, pid_t target)
{
	if (!cri_is_init())
		return -1;
	if (!cri_self.run || cri_self.run->reached) {
		errno = CR_ENOTCB;
		return -1;
	}
	if ((unsigned int)scope > CR_SCOPE_TREE || target < 0) {
		errno = EINVAL;
		return -1;
	}
	if (!target)
		target = scope == CR_SCOPE_PGRP ? getpgrp() :
			 scope == CR_SCOPE_SESS ? getsid(0) : getpid();
	return cri_service_forward(scope, target);
}
