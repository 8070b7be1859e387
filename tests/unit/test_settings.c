// SPDX-License-Identifier: GPL-2.0
/*
 * What the module answers about settings of a process and its threads: an older one, which does
 * not know the question, leaves all as it is; what cannot be saved is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "checkpoint/internal.h"

#define COUNT	3

static int answer;
static uint32_t state, process_state, tracing;
static struct kcr_dispatch dispatch;

/* The module: its threads are in another order, and one of them is new. */
int ioctl(int fd, unsigned long request, ...)
{
	struct kcr_settings *all;
	struct kcr_setting *list;
	va_list arguments;

	(void)fd;
	if (answer) {
		errno = answer;
		return -1;
	}
	va_start(arguments, request);
	all = va_arg(arguments, struct kcr_settings *);
	va_end(arguments);
	assert_int_equal(request, KCR_IOC_SETTINGS);
	assert_int_equal(all->pid, 10);
	assert_true(all->count >= COUNT);
	list = (void *)(uintptr_t)all->settings;
	for (int i = 0; i < COUNT; i++)
		list[i] = (struct kcr_setting){
			.tid = 10 + COUNT - i, .state = i ? 0 : state, .timer_slack_ns = 100 + i,
		};
	list[1].dispatch = dispatch;
	all->count = COUNT;
	all->tracing = tracing;
	all->state = process_state;
	all->tracer = tracing == KCR_TRACER_ONE ? 7 : 0;
	return 0;
}

static int ask(Kcr__Process *p)
{
	static Kcr__Thread thread[COUNT];
	static Kcr__Sched sched[COUNT];
	static Kcr__Thread *threads[COUNT];
	static struct checkpoint c;

	kcr__process__init(p);
	p->pid = 10;
	p->n_thread = COUNT;
	p->thread = threads;
	for (int i = 0; i < COUNT; i++) {
		kcr__sched__init(&sched[i]);
		kcr__thread__init(&thread[i]);
		thread[i].tid = 10 + i;
		thread[i].sched = i == 1 ? NULL : &sched[i];
		threads[i] = &thread[i];
	}
	return describe_settings(&c, p);
}

static void older_module(void **unused)
{
	Kcr__Process p;

	(void)unused;
	answer = ENOTTY;
	assert_int_equal(ask(&p), 0);
	assert_false(p.has_tracer);
	assert_false(p.thread[0]->sched->has_timer_slack_ns);
	answer = ESRCH;
	assert_int_equal(ask(&p), -ESRCH);
	answer = 0;
}

static void slack(void **unused)
{
	Kcr__Process p;

	(void)unused;
	assert_int_equal(ask(&p), 0);
	assert_false(p.thread[0]->sched->has_timer_slack_ns);
	assert_true(p.thread[2]->sched->has_timer_slack_ns);
	assert_int_equal(p.thread[2]->sched->timer_slack_ns, 101);
}

static void tracers(void **unused)
{
	Kcr__Process p;

	(void)unused;
	tracing = KCR_TRACER_ANY;
	assert_int_equal(ask(&p), 0);
	assert_true(p.has_tracer);
	assert_int_equal(p.tracer, -1);
	tracing = KCR_TRACER_ONE;
	assert_int_equal(ask(&p), 0);
	assert_int_equal(p.tracer, 7);
	tracing = KCR_TRACER_OTHER;
	assert_int_equal(ask(&p), 0);
	assert_false(p.has_tracer);
	tracing = KCR_TRACER_NONE;
}

static void speculation(void **unused)
{
	static const struct {
		uint32_t state, store_bypass, indirect_branch;
	} cases[] = {
		{ KCR_SETTING_STORE_OFF, PR_SPEC_DISABLE, 0 },
		{ KCR_SETTING_STORE_OFF | KCR_SETTING_STORE_FORCED, PR_SPEC_FORCE_DISABLE, 0 },
		{ KCR_SETTING_STORE_OFF | KCR_SETTING_STORE_NOEXEC, PR_SPEC_DISABLE_NOEXEC, 0 },
		{ KCR_SETTING_BRANCH_OFF, 0, PR_SPEC_DISABLE },
		{ KCR_SETTING_BRANCH_OFF | KCR_SETTING_BRANCH_FORCED, 0, PR_SPEC_FORCE_DISABLE },
	};
	Kcr__Process p;

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		state = cases[i].state;
		ask(&p);
		p.thread[0]->tid = 10 + COUNT;
		assert_int_equal(describe_settings(&(struct checkpoint){}, &p), 0);
		assert_int_equal(p.thread[0]->store_bypass, cases[i].store_bypass);
		assert_int_equal(p.thread[0]->indirect_branch, cases[i].indirect_branch);
		assert_int_equal(p.thread[0]->cache_flush, 0);
		assert_int_equal(p.thread[2]->store_bypass, 0);
	}
	state = 0;
}

static void of_processes(void **unused)
{
	Kcr__Process p;

	(void)unused;
	process_state = KCR_SETTINGS_MERGE | KCR_SETTINGS_AMX;
	assert_int_equal(ask(&p), 0);
	assert_true(p.merge && p.amx && !p.thp_advised);
	process_state = 0;
	dispatch = (struct kcr_dispatch){ .on = 1, .selector = 1, .offset = 2, .length = 3 };
	assert_int_equal(ask(&p), 0);
	assert_null(p.thread[0]->dispatch);
	assert_non_null(p.thread[2]->dispatch);
	assert_int_equal(p.thread[2]->dispatch->selector, 1);
	assert_int_equal(p.thread[2]->dispatch->offset, 2);
	assert_int_equal(p.thread[2]->dispatch->length, 3);
	kcr__dispatch__free_unpacked(p.thread[2]->dispatch, NULL);
	dispatch = (struct kcr_dispatch){};
}

/* That of a thread which is not there does not count. */
static void refused(void **unused)
{
	Kcr__Process p;

	(void)unused;
	state = KCR_SETTING_NO_CPUID;
	assert_int_equal(ask(&p), 0);
	p.thread[0]->tid = 10 + COUNT;
	assert_int_equal(describe_settings(&(struct checkpoint){}, &p), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(older_module), cmocka_unit_test(slack),
		cmocka_unit_test(tracers), cmocka_unit_test(speculation),
		cmocka_unit_test(of_processes), cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
