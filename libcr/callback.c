// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Registering callbacks, and running a group of them: nested, in reverse order
 * of registration.  The innermost call decides what cr_checkpoint() returns in
 * the whole group.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXTS	(CR_THREAD_CONTEXT | CR_SIGNAL_CONTEXT)
#define FAILURES	(CR_CHECKPOINT_TEMP_FAILURE | CR_CHECKPOINT_PERM_FAILURE | \
			 CR_CHECKPOINT_OMIT)

void cri_callbacks_free(struct cri_callbacks *callbacks)
{
	free(callbacks->entry);
	*callbacks = (struct cri_callbacks){};
}

/* ---- registering -------------------------------------------------------------------- */

/* Index of the new callback, or -1 with errno.  cri.lock held. */
static int add(struct cri_callbacks *callbacks, cr_callback_t func, void *arg)
{
	if (callbacks->count == CR_MAX_CALLBACKS) {
		errno = ENOSPC;
		return -1;
	}
	if (callbacks->count == callbacks->room) {
		unsigned int room = callbacks->room ? 2 * callbacks->room : 8;
		void *larger = realloc(callbacks->entry, room * sizeof(*callbacks->entry));

		if (!larger) {
			errno = ENOMEM;
			return -1;
		}
		callbacks->entry = larger;
		callbacks->room = room;
	}
	callbacks->entry[callbacks->count] = (struct cri_callback){ func, arg };
	return callbacks->count++;
}

bool cri_callbacks_copy(struct cri_callbacks *copy, const struct cri_callbacks *of)
{
	*copy = (struct cri_callbacks){ .count = of->count };
	if (!of->count)
		return true;
	copy->entry = malloc(of->count * sizeof(*of->entry));
	if (!copy->entry) {
		copy->count = 0;
		return false;
	}
	memcpy(copy->entry, of->entry, of->count * sizeof(*of->entry));
	return true;
}

static struct cri_callbacks *of_context(int flags)
{
	if (flags == CR_SIGNAL_CONTEXT)
		return &cri_self.callbacks;
	if (flags == CR_THREAD_CONTEXT)
		return &cri.thread_callbacks;
	errno = EINVAL;
	return NULL;
}

/* The check of register and replace: false with errno. */
static bool may_change(void)
{
	if (!cri_is_init())
		return false;
	if (!cri_self.run)
		return true;
	errno = EBUSY;
	return false;
}

cr_callback_id_t cr_register_callback(cr_callback_t func, void *arg, int flags)
{
	struct cri_callbacks *callbacks;
	int index = -1;

	if (!may_change())
		return -1;
	callbacks = of_context(flags);
	if (!callbacks)
		return -1;
	cri_lock();
	if (!cri_service_start() &&
	    (flags == CR_THREAD_CONTEXT || !cri_signal_prepare()))
		index = add(callbacks, func, arg);
	cri_unlock();
	return index < 0 ? -1 : index | flags;
}

int cr_replace_callback(cr_callback_id_t id, cr_callback_t func, void *arg, int flags)
{
	struct cri_callbacks *callbacks;
	unsigned int index = id & CR_MAX_CALLBACKS;
	int ret = 0;

	if (!may_change())
		return -1;
	callbacks = of_context(flags);
	if (!callbacks)
		return -1;
	cri_lock();
	if (id < 0 || (id & CONTEXTS) != flags || index >= callbacks->count) {
		errno = EINVAL;
		ret = -1;
	} else {
		callbacks->entry[index] = (struct cri_callback){ func, arg };
	}
	cri_unlock();
	return ret;
}

int cr_replace_self(cr_callback_t func, void *arg, int flags)
{
	struct cri_run *run = cri_self.run;

	if (!run) {
		errno = CR_ENOTCB;
		return -1;
	}
	if (flags != run->context) {
		errno = EINVAL;
		return -1;
	}
	cri_lock();
	/* A thread whose callbacks another one runs may have ended meanwhile, and has none then. */
	if (run->current < run->origin->count)
		run->origin->entry[run->current] = (struct cri_callback){ func, arg };
	cri_unlock();
	return 0;
}

/* ---- running ------------------------------------------------------------------------- */

static int clip_code(int code)
{
	return (code < 0 ? -(unsigned int)code : (unsigned int)code) & 0xffff ?: CR_ETEMPFAIL;
}

/* A callback returned non-zero: this ends the request. */
static void note_code(struct cri_run *run, int ret)
{
	int code = clip_code(ret), none = 0;

	if (!run->reached && !run->flags)
		run->flags = CR_CHECKPOINT_TEMP_FAILURE_CODE(code);
	__atomic_compare_exchange_n(&run->request->code, &none, code, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

/* The next callback, or the end of the group: returns when the checkpoint is over. */
static void go_on(struct cri_run *run)
{
	unsigned int outer = run->current;
	bool outer_called = run->called;

	while (run->left && !run->flags && !run->callbacks.entry[run->left - 1].func)
		run->left--;
	if (run->left && !run->flags) {
		struct cri_callback callback = run->callbacks.entry[--run->left];
		int ret;

		run->current = run->left;
		run->called = false;
		ret = callback.func(callback.arg);
		if (ret)
			note_code(run, ret);
		if (!run->called)
			go_on(run);
		run->current = outer;
		run->called = outer_called;
	}
	if (!run->reached) {
		run->reach(run);
		run->reached = true;
	}
}

void cri_callbacks_run(struct cri_run *run)
{
	struct cri_run *outer = cri_self.run;

	run->left = run->callbacks.count;
	cri_self.run = run;
	go_on(run);
	cri_self.run = outer;
}

int cr_checkpoint(int flags)
{
	struct cri_run *run = cri_self.run;

	if (!run || run->called)
		return -CR_ENOTCB;
	run->called = true;
	if (flags & FAILURES && !run->flags)
		run->flags = flags;
	go_on(run);
	return run->request->result;
}

/* ---- information on the request -------------------------------------------------------- */

const struct cr_checkpoint_info *cr_get_checkpoint_info(void)
{
	if (!cri_self.run) {
		errno = CR_ENOTCB;
		return NULL;
	}
	return cri_self.run->reached ? NULL : &cri_self.run->request->checkpoint;
}

const struct cr_restart_info *cr_get_restart_info(void)
{
	if (!cri_self.run) {
		errno = CR_ENOTCB;
		return NULL;
	}
	return cri_self.run->reached && cri_self.run->request->result > 0 ?
	       &cri_self.run->request->restart : NULL;
}
