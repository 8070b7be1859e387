// SPDX-License-Identifier: GPL-2.0
/*
 * What the tools make of the answers of an mpirun, of one that ends before the last
 * above all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi-plugin/job/request.h"

static const struct job_answer done = { .path = "/saved.kcr", .ranks = 4, .stopped_ms = 2 };

static void send_answer(int fd, struct job_answer answer, bool committed)
{
	char *line;

	answer.committed = committed;
	line = job_answer_format(&answer);
	assert_non_null(line);
	assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
	assert_int_equal(send(fd, "\n", 1, 0), 1);
	free(line);
}

/* The answers are there before the request, as one piece; then mpirun is gone. */
static int ask(const struct job_answer *first, const struct job_answer *last,
	       struct job_answer *answer)
{
	struct job_request request = { .path = "/saved.kcr", .keep = 1 };
	int ends[2], err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	if (first)
		send_answer(ends[1], *first, true);
	if (last)
		send_answer(ends[1], *last, false);
	shutdown(ends[1], SHUT_WR);
	memset(answer, 0, sizeof(*answer));
	err = job_ask(ends[0], &request, answer);
	close(ends[0]);
	close(ends[1]);
	return err;
}

static void without_signal(void **state)
{
	struct job_answer answer;

	(void)state;
	assert_int_equal(ask(NULL, &done, &answer), 0);
	assert_int_equal(answer.ranks, 4);
	job_answer_free(&answer);
	assert_int_equal(ask(NULL, NULL, &answer), -ECONNRESET);
}

/* Complete is complete, whether mpirun survives the signal or not. */
static void with_signal(void **state)
{
	struct job_answer first = done, answer;

	(void)state;
	first.stopped_ms = 1;
	assert_int_equal(ask(&first, &done, &answer), 0);
	assert_true(answer.stopped_ms == 2 && !answer.committed);
	job_answer_free(&answer);
	assert_int_equal(ask(&first, NULL, &answer), 0);
	assert_true(!answer.code && answer.stopped_ms == 1);
	assert_string_equal(answer.path, "/saved.kcr");
	job_answer_free(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_signal), cmocka_unit_test(with_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
