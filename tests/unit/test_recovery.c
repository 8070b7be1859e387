// SPDX-License-Identifier: GPL-2.0
/*
 * Which nodes a job goes on without if mpirun cannot start its ranks again: those that answer only for
 * as long as there are enough others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "job/relaunch.h"
#include "launch/recovery.h"

static struct recovery after(const char *lost, const char *suspects, const char *avoided)
{
	struct recovery r;

	setenv("KCR_MPI_LOST", lost, 1);
	setenv("KCR_MPI_SUSPECTS", suspects, 1);
	setenv("KCR_MPI_AVOIDED", avoided, 1);
	recovery_init(&r, 9, true);
	assert_null(getenv("KCR_MPI_AVOIDED"));
	return r;
}

static void expect_again(struct recovery *r, const char *why, const char *lost)
{
	char text[200];

	assert_true(recovery_starts_again(r, "mpirun", text, sizeof(text)));
	assert_string_equal(text, why);
	if (lost)
		assert_string_equal(r->lost, lost);
	else
		assert_null(r->lost);
}

static void suspects_are_avoided_once(void **state)
{
	struct recovery r = after("b", "a,c", "");

	(void)state;
	expect_again(&r, "not all ranks could be started where they had been", "b,a,c");
	assert_int_equal(r.unstarted, 0);
	expect_again(&r, "mpirun could not start the ranks", "b");
	assert_false(r.pauses);
	expect_again(&r, "mpirun could not start the ranks", "b");
	assert_true(r.pauses);
	assert_false(recovery_take_back(&r));
	recovery_free(&r);
}

/* What the process before has left. */
static void avoided_nodes_are_known(void **state)
{
	struct recovery r = after("a", "", "a");

	(void)state;
	assert_true(recovery_take_back(&r));
	assert_null(r.lost);
	recovery_free(&r);

	r = after("a.site,b,c", "d", "a");
	expect_again(&r, "not all ranks could be started where they had been", "a.site,b,c,d");
	expect_again(&r, "mpirun could not start the ranks", "b,c");
	recovery_free(&r);
}

/* Nodes that fail as often as they are used again do not keep the job for ever. */
static void starts_are_tried_some_times(void **state)
{
	struct recovery r = after("b", "", "");
	char text[200];

	(void)state;
	for (unsigned int tries = 0; tries < RELAUNCH_RETRIES; tries++) {
		recovery_node_gone(&r, "a", false);
		expect_again(&r, "not all ranks could be started where they had been", "b,a");
		expect_again(&r, "mpirun could not start the ranks", "b");
	}
	assert_false(recovery_starts_again(&r, "mpirun", text, sizeof(text)));
	recovery_done(&r);
	expect_again(&r, "mpirun could not start the ranks", "b");
	recovery_free(&r);
}

/* A port that is closed is an answer, too; nobody is at 255.255.255.255. */
static void lost_nodes_that_answer_are_used(void **state)
{
	struct recovery r = after("a,b.site,c,d", "", "c");

	(void)state;
	recovery_has_nodes(&r, strdup("e=127.0.0.1,a=127.0.0.1,b=127.0.0.2,c=127.0.0.4,d=255.255.255.255"));
	recovery_has_nodes(&r, strdup("e=127.0.0.1"));
	assert_string_equal(r.nodes, "e=127.0.0.1,a=127.0.0.1,b=127.0.0.2,c=127.0.0.4,d=255.255.255.255");
	expect_again(&r, "mpirun could not start the ranks", "d");
	assert_false(r.pauses);
	expect_again(&r, "mpirun could not start the ranks", "d");
	assert_true(r.pauses);
	recovery_has_nodes(&r, strdup("d=127.0.0.3"));
	assert_string_equal(r.nodes, "d=127.0.0.3");
	assert_true(recovery_take_back(&r));
	assert_null(r.lost);
	recovery_free(&r);
}

/* One that failed, and later does not answer, waits for its answer like the others. */
static void avoided_nodes_may_become_silent(void **state)
{
	struct recovery r = after("a,b,c", "", "a,b,c");

	(void)state;
	recovery_has_nodes(&r, strdup("b=255.255.255.255"));
	recovery_node_gone(&r, "b", true);
	assert_string_equal(r.avoided, "a,c");
	assert_true(recovery_take_back(&r));
	assert_string_equal(r.lost, "b");
	assert_false(recovery_take_back(&r));

	recovery_has_nodes(&r, strdup("a=255.255.255.255,c=127.0.0.1"));
	recovery_node_gone(&r, "c", false);
	expect_again(&r, "not all ranks could be started where they had been", "b,a");
	recovery_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suspects_are_avoided_once),
		cmocka_unit_test(avoided_nodes_are_known),
		cmocka_unit_test(starts_are_tried_some_times),
		cmocka_unit_test(lost_nodes_that_answer_are_used),
		cmocka_unit_test(avoided_nodes_may_become_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
