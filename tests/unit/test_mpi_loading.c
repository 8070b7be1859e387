// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint of a job whose ranks do not get their memory (cr_restart --lazy): it waits, but as
 * long only as whoever asked for it, and one that nobody could end for a limited time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/request.h"
#include "mpirun.h"

#define LOADING_S	1

static struct wire node;		/* with the only rank, which is restored */
static char folder[] = "/tmp/kcr-loading.XXXXXX";
static char *path;

static void next(uint32_t type)
{
	struct pollfd p = { node.fd, POLLIN, 0 };
	struct wire_header h;
	const uint8_t *data;
	int got;

	while (!(got = wire_next(&node, &h, &data))) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		assert_true(wire_fill_once(&node) >= 0);
	}
	assert_int_equal(got, 1);
	assert_int_equal(h.type, type);
}

static void restored(void)
{
	const struct wire_version version = { WIRE_VERSION, WIRE_CAN_0 | WIRE_CAN_FIND };
	struct {
		struct wire_hello head;
		struct wire_version version;
	} hello = { { 1, 1, 1, true, 0 }, version };

	wire_send(&node, WIRE_HELLO, 0, 0, &hello, sizeof(hello));
	next(WIRE_BACK);
	wire_send(&node, WIRE_WHERE, WIRE_ALL, 0, NULL, 0);
	next(WIRE_FOUND);
}

static int start(void **state)
{
	if (!mkdtemp(folder) || asprintf(&path, "%s/saved.kcr", folder) < 0)
		return -1;
	mpirun_settings.loading_s = LOADING_S;
	mpirun_settings.path = path;
	if (start_heard_mpirun(state))
		return -1;
	daemon_comes(&node, job.secret, 5);
	restored();
	return 0;
}

static int start_periodic(void **state)
{
	mpirun_settings.interval_ns = 100000000;
	mpirun_settings.keep = 1;
	return start(state);
}

static int end(void **state)
{
	int failed = end_mpirun(state);
	char *partial;

	wire_close(&node);
	if (asprintf(&partial, "%s.partial", path) > 0) {
		rmdir(partial);
		free(partial);
	}
	free(path);
	rmdir(folder);
	memset(strchr(folder, '.') + 1, 'X', 6);
	return failed;
}

static void by_its_time(void **state)
{
	struct job_request request = { .path = path, .keep = 1, .timeout_s = LOADING_S + 1 };
	struct job_answer answer = { 0 };
	double begun = now();
	int fd = job_connect(mpirun);

	(void)state;
	assert_int_equal(job_ask(fd, &request, &answer), 0);
	assert_int_equal(answer.code, ETIMEDOUT);
	assert_non_null(strstr(answer.message, "--time"));
	assert_true(now() - begun > LOADING_S + 0.9);
	job_answer_free(&answer);
	close(fd);
	next(WIRE_LOAD);
	next(WIRE_CONTINUE);
}

static void by_its_asker(void **state)
{
	struct job_request request = { .path = path, .keep = 1 };
	char *line = job_request_format(&request);
	int fd = job_connect(mpirun);

	(void)state;
	assert_non_null(line);
	assert_int_equal(dprintf(fd, "%s\n", line), strlen(line) + 1);
	free(line);
	next(WIRE_LOAD);
	sleep(LOADING_S + 1);
	assert_int_equal(wire_fill_once(&node), 0);	/* it waits */
	close(fd);
	next(WIRE_CONTINUE);
}

/* Others are refused meanwhile. */
static void by_its_limit(void **state)
{
	double begun;

	(void)state;
	next(WIRE_LOAD);
	begun = now();
	next(WIRE_CONTINUE);
	assert_true(now() - begun > LOADING_S - 0.1);
	wire_send(&node, WIRE_CONTINUED, 0, 1, NULL, 0);
	mpirun_says("KCR: not saved: ranks have not had all of their memory loaded within 1 s");
	next(WIRE_LOAD);			/* next time */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_its_time, start, end),
		cmocka_unit_test_setup_teardown(by_its_asker, start, end),
		cmocka_unit_test_setup_teardown(by_its_limit, start_periodic, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
