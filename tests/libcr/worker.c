/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that does at random what a program may do with libcr outside of callbacks:
 * sections, registrations, hooks, hold settings, requests; and that ends and begins
 * again (main.c), sometimes within a section.
 */
#include <sys/syscall.h>

#include "tests/libcr/random.h"

struct worker {
	unsigned int group;
	uint64_t random;
	cr_client_id_t id;
	int hold;
};

bool stop;

static volatile unsigned long one[NR_GROUPS], other[NR_GROUPS];
static unsigned int requesting;

bool workers_are_consistent(void)
{
	for (unsigned int i = 1; i <= nr_workers; i++)
		if (one[i] != other[i])
			return false;
	return true;
}

/* ---- sections -------------------------------------------------------------------------- */

static void inside(struct worker *w, unsigned int depth)
{
	int status = cr_status();

	CHECK(status == CR_STATE_IDLE || status == CR_STATE_PENDING);
	CHECK(!LOAD(round_now.running));
	if (once_in(&w->random, 20))
		round_audit();
	if (once_in(&w->random, 3))
		usleep(any(&w->random, 300));
	if (depth < 5 && any(&w->random, 2)) {
		CHECK((any(&w->random, 2) ? cr_enter_cs(w->id) : cr_tryenter_cs(w->id)) == 0);
		inside(w, depth + 1);
		CHECK(cr_leave_cs(w->id) == 0);
	}
}

static void section(struct worker *w)
{
	int ret = any(&w->random, 2) ? cr_tryenter_cs(w->id) : cr_enter_cs(w->id);

	CHECK(ret == 0 || ret == 1);
	if (ret)
		return;
	one[w->group]++;
	inside(w, 0);
	other[w->group]++;
	CHECK(!LOAD(round_now.running));
	CHECK(cr_leave_cs(w->id) == 0);
	if (once_in(&w->random, 8))
		CHECK(cr_leave_cs(w->id) == -1 && errno == EINVAL);
}

/* ---- requests --------------------------------------------------------------------------- */

/* What may become of a request for this process, which others request, too. */
static bool may_fail_with(int err, unsigned int restarted)
{
	switch (err) {
	case EBUSY:
	case CR_ETEMPFAIL:
	case CODE_OF_CALL:
	case CODE_OF_RETURN:
	case CODE_AFTER:
		return true;
	case ESRCH:
		return !child_pid;	/* it is left out, and there is nobody else */
	case CR_ERESTARTED:
		return LOAD(round_now.restarted) != restarted;
	default:
		fprintf(stderr, "# request: %s\n", cr_strerror(err));
		return false;
	}
}

/* 0 or an error number. */
static int result_of(struct worker *w, cr_checkpoint_handle_t *handle)
{
	struct timeval timeout;
	char *text = NULL, log[64];
	int ret, err;

	if (any(&w->random, 2)) {
		do {
			ret = cr_poll_checkpoint_msg(handle, NULL, &text);
			err = errno;
		} while (ret == CR_POLL_CHKPT_ERR_PRE && err == EINTR);
		free(text);
		CHECK(ret == 1 || ret == CR_POLL_CHKPT_ERR_POST);
		return ret == 1 ? 0 : err;
	}
	do {
		timeout.tv_sec = 0;
		timeout.tv_usec = any(&w->random, 100000);
		ret = cr_wait_checkpoint(handle, &timeout);
	} while (!ret || (ret < 0 && errno == EINTR));
	CHECK(ret == 1);
	CHECK(cr_log_checkpoint(handle, sizeof(log), log) == cr_log_checkpoint(handle, 0, NULL));
	return cr_reap_checkpoint(handle) ? errno : 0;
}

static void request_with(struct worker *w, cr_checkpoint_args_t *args, bool in_section)
{
	unsigned int saved = LOAD(round_now.saved), restarted = LOAD(round_now.restarted);
	struct timeval none = { 0, 0 };
	cr_checkpoint_handle_t handle;
	int ret, err;

	if (in_section) {
		CHECK(cr_enter_cs(w->id) == 0);
		saved = LOAD(round_now.saved);
	}
	ret = cr_request_checkpoint(args, &handle);
	err = errno;
	if (in_section) {
		CHECK(!LOAD(round_now.running) && LOAD(round_now.saved) == saved);
		CHECK(cr_leave_cs(w->id) == 0);
	} else if (!ret) {
		CHECK(cr_wait_checkpoint(&handle, &none) == 1);
	}
	if (!ret)
		err = result_of(w, &handle);
	if (ret || err)
		CHECK(may_fail_with(err, restarted));
	else
		CHECK(LOAD(round_now.saved) != saved);
}

/* One at a time: two are in each other's way all the time. */
static void request(struct worker *w)
{
	unsigned int nobody = 0;
	cr_checkpoint_args_t args;

	if (is_child || !__atomic_compare_exchange_n(&requesting, &nobody, 1, false,
						     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	CHECK(cr_initialize_checkpoint_args_t(&args) == 0);
	args.cr_scope = any(&w->random, 2) ? CR_SCOPE_PROC : CR_SCOPE_TREE;
	args.cr_flags = any(&w->random, 2) ? CR_CHKPT_ASYNC_ERR : 0;
	args.cr_fd = any(&w->random, 2) ? open("/dev/null", O_WRONLY | O_CLOEXEC) :
		     open("own", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	NEED(args.cr_fd >= 0);
	request_with(w, &args, any(&w->random, 2));
	close(args.cr_fd);
	usleep(500000 + any(&w->random, 1500000));	/* others want to save it, too */
	STORE(requesting, 0u);
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void change_hold(struct worker *w)
{
	int next = any(&w->random, CR_HOLD_DFLT + 1);

	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, next) == w->hold);
	w->hold = next;
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, CR_HOLD_READ) == next);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, CR_HOLD_DFLT) == -1 && errno == EINVAL);
}

static void change_callbacks(struct worker *w)
{
	unsigned int group = any(&w->random, 3) ? w->group : 0;

	if (once_in(&w->random, 4))
		slot_add(group, &w->random);
	else
		slot_replace(group, any(&w->random, MAX_SLOTS), &w->random);
}

static void step(struct worker *w)
{
	int status = cr_status();

	CHECK(status == CR_STATE_IDLE || status == CR_STATE_PENDING);
	switch (any(&w->random, 16)) {
	case 0:
	case 1:
		change_callbacks(w);
		break;
	case 2:
		change_hold(w);
		break;
	case 3:
		round_change_hook((cr_hook_event_t)any(&w->random, CR_NUM_HOOKS),
				  any(&w->random, 4));
		break;
	case 4:
		if (once_in(&w->random, 20))
			request(w);
		break;
	default:
		section(w);
	}
	usleep(any(&w->random, 500 * nr_workers));
}

static void begin(struct worker *w)
{
	struct group *g = &groups[w->group];

	ADD(g->changes, 1);
	STORE(g->life, (unsigned int)CHANGES);
	CHECK(cr_status() == -1 && errno == CR_ENOINIT);
	CHECK(cr_enter_cs(0) == -1 && errno == CR_ENOINIT);
	w->id = cr_init();
	CHECK(w->id > 0 && cr_init() == w->id);
	STORE(g->tid, (pid_t)syscall(SYS_gettid));
	STORE(g->life, (unsigned int)LIVES);
	ADD(g->changes, 1);
}

void *worker_run(void *argument)
{
	struct worker w;
	unsigned int steps;

	w.group = (uintptr_t)argument;
	w.random = mix(seed * 31 + w.group) + LOAD(groups[w.group].changes);
	w.hold = CR_HOLD_DFLT;
	begin(&w);
	/* Some do without callbacks. */
	for (unsigned int n = any(&w.random, 4); n; n--)
		slot_add(w.group, &w.random);
	for (steps = 50 + any(&w.random, 400); steps && !LOAD(stop); steps--)
		step(&w);
	if (once_in(&w.random, 8))
		CHECK(cr_enter_cs(w.id) == 0);	/* libcr leaves it */
	ADD(groups[w.group].changes, 1);
	STORE(groups[w.group].life, (unsigned int)CHANGES);
	return argument;
}
