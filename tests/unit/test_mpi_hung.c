// SPDX-License-Identifier: GPL-2.0
/*
 * Daemons that do not answer in a checkpoint: the others' ranks go on, and the next one begins when they
 * all answer again.  One that answers may take its time for its part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpirun.h"

#define ANSWER_S	3
#define LONG_S		(2 * ANSWER_S)
#define SAID		"KCR: not saved: the daemon of node node does not answer"

enum { GOOD, BAD, OLD, NODES };		/* with a rank each; OLD does not say whether it is alive */

static struct wire node[NODES];
static uint32_t checkpoint;		/* the last that has begun */
static char folder[] = "/tmp/kcr-hung.XXXXXX";
static char *path;

/* The next message within so many seconds; 0: there is none. */
static uint32_t next(int number, double seconds)
{
	struct pollfd p = { node[number].fd, POLLIN, 0 };
	double end = now() + seconds, left;
	struct wire_header h;
	const uint8_t *data;
	int got;

	while (!(got = wire_next(&node[number], &h, &data))) {
		left = end - now();
		if (left <= 0 || !poll(&p, 1, left * 1000 + 1))
			return 0;
		assert_true(wire_fill_once(&node[number]) >= 0);
	}
	assert_int_equal(got, 1);
	if (h.type == WIRE_PREPARE)
		checkpoint = h.id;
	return h.type;
}

static void say(int number, uint32_t type, uint32_t id)
{
	wire_send(&node[number], type, number, id, NULL, 0);
}

/* It answers whenever it is asked, but does nothing else, for so many seconds. */
static void only_lives(int number, double seconds)
{
	double end = now() + seconds;
	uint32_t type;

	while (now() < end && (type = next(number, end - now()))) {
		assert_int_equal(type, WIRE_ALIVE);
		say(number, WIRE_ALIVE, checkpoint);
	}
}

/* What it is to do next; meanwhile it answers. */
static uint32_t told(int number)
{
	uint32_t type;

	while ((type = next(number, 10)) == WIRE_ALIVE)
		say(number, WIRE_ALIVE, checkpoint);
	return type;
}

static int start(void **state)
{
	const struct wire_version version = { WIRE_VERSION, WIRE_CAN_0 };
	struct {
		struct wire_hello head;
		struct wire_version version;
	} hello = { { 1, 1, NODES, false, 0 }, version };

	if (!mkdtemp(folder) || asprintf(&path, "%s/saved.kcr", folder) < 0)
		return -1;
	mpirun_settings = (struct root_settings){
		.path = path, .keep = 1, .interval_ns = 100000000, .stand_still = true, .answer_s = ANSWER_S,
	};
	if (start_heard_mpirun(state))
		return -1;
	for (int i = 0; i < NODES; i++) {
		daemon_comes(&node[i], job.secret, 5);
		if (i != OLD)
			say(i, WIRE_ALIVE, 0);
		wire_send(&node[i], WIRE_HELLO, i, 0, &hello, sizeof(hello));
	}
	return 0;
}

static int end(void **state)
{
	int failed = end_mpirun(state);
	char *partial;

	for (int i = 0; i < NODES; i++)
		wire_close(&node[i]);
	if (asprintf(&partial, "%s.partial", path) > 0) {
		rmdir(partial);
		free(partial);
	}
	free(path);
	rmdir(folder);
	return failed;
}

static void hangs(void **state)
{
	uint32_t hung;

	(void)state;
	for (int i = 0; i < NODES; i++)
		assert_int_equal(told(i), WIRE_PREPARE);
	hung = checkpoint;
	say(GOOD, WIRE_BOOKMARKS, hung);
	say(OLD, WIRE_BOOKMARKS, hung);
	assert_int_equal(told(GOOD), WIRE_CONTINUE);
	assert_int_equal(told(OLD), WIRE_CONTINUE);
	say(GOOD, WIRE_CONTINUED, hung);
	say(OLD, WIRE_CONTINUED, hung);
	mpirun_says(SAID);
	assert_int_equal(next(GOOD, ANSWER_S), 0);	/* no rank stops in vain */

	assert_int_equal(next(BAD, 1), WIRE_ALIVE);
	assert_int_equal(next(BAD, 1), WIRE_CONTINUE);
	say(BAD, WIRE_ALIVE, hung);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(told(i), WIRE_PREPARE);
	assert_int_equal(checkpoint, hung + 1);
	say(GOOD, WIRE_BOOKMARKS, checkpoint);
	say(OLD, WIRE_BOOKMARKS, checkpoint);
	say(BAD, WIRE_BOOKMARKS, hung);			/* its answers of then */
	say(BAD, WIRE_CONTINUED, hung);
	only_lives(BAD, LONG_S);
	say(BAD, WIRE_BOOKMARKS, checkpoint);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(told(i), WIRE_DRAIN);
	say(BAD, WIRE_DRAINED, checkpoint);
	say(GOOD, WIRE_DRAINED, checkpoint);
	assert_int_equal(next(OLD, LONG_S), 0);		/* it is not asked */
	say(OLD, WIRE_DRAINED, checkpoint);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(told(i), WIRE_DUMP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hangs, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
