// SPDX-License-Identifier: GPL-2.0
/* As test_check.c, of semaphores and message queues of System V. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "refused.h"

static void semaphores(void **state)
{
	Kcr__SysvIdentity identity = KCR__SYSV_IDENTITY__INIT;
	Kcr__SemaphoreSet set = KCR__SEMAPHORE_SET__INIT, *sets = &set;
	Kcr__SemaphoreUndo undo = KCR__SEMAPHORE_UNDO__INIT, *undos = &undo;
	uint32_t values[] = { 0, 32767 };
	int32_t pids[] = { 0, 12 };

	(void)state;
	set.identity = &identity;
	set.value = values;
	set.pid = pids;
	set.n_value = set.n_pid = 2;
	undo.number = 1;
	undo.adjustment = -5;
	process(0)->semaphore_set = &sets;
	process(0)->n_semaphore_set = 1;
	process(1)->semaphore_undo = &undos;
	process(1)->n_semaphore_undo = 1;
	refused_expect(NULL);
	REFUSED(identity.id, -1, "System V object");
	REFUSED(identity.mode, 01000, "System V object");
	REFUSED(set.n_value, 0, "number of semaphores");
	REFUSED(set.n_pid, 1, "number of semaphores");
	REFUSED(values[1], 32768, "impossible semaphore");
	REFUSED(pids[1], -1, "impossible semaphore");
	REFUSED(undo.set, 1, "adjustment");
	REFUSED(undo.number, 2, "adjustment");
	REFUSED(undo.adjustment, 0, "adjustment");
	REFUSED(undo.adjustment, 32768, "adjustment");
	REFUSED(undo.adjustment, -32768, "adjustment");
	process(0)->n_semaphore_set = process(1)->n_semaphore_undo = 0;
	process(0)->semaphore_set = NULL;
	process(1)->semaphore_undo = NULL;
}

static void queues(void **state)
{
	Kcr__SysvIdentity identity = KCR__SYSV_IDENTITY__INIT;
	Kcr__SysvMessage message = KCR__SYSV_MESSAGE__INIT, *messages = &message;
	Kcr__SysvQueue queue = KCR__SYSV_QUEUE__INIT, *all = &queue;

	(void)state;
	message.type = 1;
	queue.identity = &identity;
	queue.message = &messages;
	queue.n_message = 1;
	process(0)->sysv_queue = &all;
	process(0)->n_sysv_queue = 1;
	refused_expect(NULL);
	REFUSED(message.type, 0, "impossible message");
	REFUSED(identity.id, -1, "System V object");
	process(0)->sysv_queue = NULL;
	process(0)->n_sysv_queue = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(semaphores), cmocka_unit_test(queues),
	};

	return cmocka_run_group_tests(tests, refused_setup, refused_teardown);
}
