/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The callbacks: one body behind two functions, of which a version has one.  Each
 * checks what holds in callbacks, and does at random what may be done there.
 */
#include <signal.h>

#include "tests/libcr/random.h"

#define NOBODY	4194305		/* no process has this number */

void *callback_argument(unsigned int group, unsigned int slot, unsigned int version)
{
	return (void *)((uintptr_t)version << 16 | group << 4 | slot);
}

/* What fails in callbacks, and what does nothing there. */
static void try_what_fails(unsigned int group, uint64_t *random)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	cr_client_id_t id = cr_init();

	switch (any(random, 6)) {
	case 0:
		CHECK(cr_register_callback(NULL, NULL, CR_THREAD_CONTEXT) == -1 && errno == EBUSY);
		break;
	case 1:
		CHECK(cr_replace_callback(0 | CR_THREAD_CONTEXT, NULL, NULL,
					  CR_THREAD_CONTEXT) == -1 && errno == EBUSY);
		break;
	case 2:
		cr_initialize_checkpoint_args_t(&args);
		args.cr_scope = CR_SCOPE_PROC;
		args.cr_fd = 2;
		CHECK(cr_request_checkpoint(&args, &handle) == -1 && errno == EBUSY);
		break;
	case 3:
		CHECK(cr_enter_cs(CR_ID_CALLBACK) == 0 && cr_tryenter_cs(id) == 0);
		CHECK(cr_leave_cs(id) == 0 && cr_leave_cs(CR_ID_CALLBACK) == 0);
		break;
	case 4:
		CHECK(cr_status() == CR_STATE_ACTIVE);
		break;
	default:
		CHECK(group || id == 0);
		CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, CR_HOLD_READ) == CR_HOLD_BOTH);
	}
}

/*
 * With this error (0: none)?  A checkpoint of several processes, or one that is cancelled
 * from outside, may be over meanwhile.
 */
static bool forward_gives(cr_scope_t scope, pid_t target, int err)
{
	int got = cr_forward_checkpoint(scope, target) ? errno : 0;

	if (got == ECANCELED && (aborts || is_child || child_pid))
		return true;
	if (got != err)
		fprintf(stderr, "# forward to %d: %s\n", target, strerror(got));
	return got == err;
}

static void forward(unsigned int group, unsigned int slot, uint64_t *random)
{
	/* A restart needs the child: the last callback before the others adds it. */
	if (child_pid && !group && (!slot || once_in(random, 3)))
		CHECK(forward_gives(CR_SCOPE_TREE, child_pid, 0));
	switch (any(random, 12)) {
	case 0:
		CHECK(forward_gives(CR_SCOPE_PROC, 0, 0));
		break;
	case 1:
		CHECK(forward_gives(CR_SCOPE_TREE, NOBODY, ESRCH));
		break;
	case 2:
		CHECK(forward_gives((cr_scope_t)4, 0, EINVAL));
		break;
	default:
		break;
	}
}

static void look_before(void)
{
	const struct cr_checkpoint_info *info = cr_get_checkpoint_info();

	CHECK(workers_are_consistent());
	CHECK(!cr_get_restart_info());
	CHECK(info && info->dest[0] == '/' && info->requester > 0);
	CHECK(info && (info->target == getpid() || is_child));
}

static void look_after(int result)
{
	const struct cr_restart_info *info = cr_get_restart_info();

	CHECK(workers_are_consistent());
	CHECK(!cr_get_checkpoint_info());
	CHECK(!!info == (result > 0));
	CHECK(!info || (info->requester == result && info->src[0] == '/'));
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) == -CR_ENOTCB);
	CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, 0) == -1 && errno == CR_ENOTCB);
	CHECK(cr_status() == CR_STATE_ACTIVE);
}

static int flags_of(enum answer answer)
{
	switch (answer) {
	case TEMPORARY:
		return CR_CHECKPOINT_TEMP_FAILURE;
	case TEMPORARY_CODE:
		return CR_CHECKPOINT_TEMP_FAILURE_CODE(CODE_OF_CALL);
	case OMITTED:
		return CR_CHECKPOINT_OMIT;
	default:
		return CR_CHECKPOINT_READY;
	}
}

static int call(unsigned int group, unsigned int slot, unsigned int version)
{
	struct group *g = &groups[group];
	enum answer answer = round_begin(group, slot, version);
	int result = 0;

	look_before();
	try_what_fails(group, &g->random);
	forward(group, slot, &g->random);
	if (once_in(&g->random, 6))
		slot_replace_self(group, slot);
	if (answer == RETURNED) {
		round_end(group, true);
		return CODE_OF_RETURN;
	}
	/* Without cr_checkpoint() it is called when this returns. */
	if (answer != READY || (!group && !slot) || any(&g->random, 4)) {
		round_enter(group, slot, answer);
		result = cr_checkpoint(flags_of(answer));
		round_leave(group, slot, result);
		look_after(result);
		try_what_fails(group, &g->random);
		if (once_in(&g->random, 6))
			slot_replace_self(group, slot);
		answer = !result && !group && once_in(&g->random, 30) ? RETURNED : READY;
	}
	round_end(group, false);
	return answer == RETURNED ? CODE_AFTER : 0;
}

static int call_argument(void *argument, unsigned int odd)
{
	uintptr_t number = (uintptr_t)argument;

	CHECK((number >> 16 & 1) == odd);
	return call(number >> 4 & 0xfff, number & 0xf, number >> 16);
}

static int even(void *argument)
{
	return call_argument(argument, 0);
}

static int odd(void *argument)
{
	return call_argument(argument, 1);
}

cr_callback_t callback_function(unsigned int version)
{
	return version & 1 ? odd : even;
}
