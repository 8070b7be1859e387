// SPDX-License-Identifier: GPL-2.0
/*
 * What the tools make of the answers of an mpirun, of one that ends before the last
 * above all, and whom they take for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/request.h"

static const struct job_answer done = {
	.path = "/saved.kcr", .ranks = 4, .stopped_ms = 2,
	.figures.number = { 4, [JOB_FIGURES_COUNTS - 1] = 1ull << 40, [JOB_FIGURES - 1] = 1234567 },
};

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
	assert_memory_equal(&answer.figures, &done.figures, sizeof(done.figures));
	job_answer_free(&answer);
	assert_int_equal(ask(NULL, NULL, &answer), -ECONNRESET);
}

static void sent_and_received(void **state)
{
	struct job_request request = { .path = strdup("/saved.kcr"), .keep = 2, .incremental = true }, got;
	char *line;

	(void)state;
	for (int i = 0; i < JOB_MAX_ARGUMENTS; i++)
		assert_int_equal(job_request_add(&request, "--full-every=3"), 0);
	assert_int_equal(job_request_add(&request, "--nosync"), -E2BIG);
	line = job_request_format(&request);
	assert_int_equal(job_request_parse(line, &got), 0);
	assert_true(got.incremental && !got.snapshot && got.keep == 2);
	assert_int_equal(got.nr_arguments, JOB_MAX_ARGUMENTS);
	assert_string_equal(got.argument[JOB_MAX_ARGUMENTS - 1], "--full-every=3");
	free(line);
	job_request_free(&request);
	job_request_free(&got);
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

/* A child that has bound the name of `owner` as user `user` and listens, or not. */
static pid_t hold_name(pid_t owner, uid_t user, bool listens)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, ends[2], length;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		length = sprintf(address.sun_path + 1, "kcr-mpi.%d", owner ? owner : getpid());
		length += offsetof(struct sockaddr_un, sun_path) + 1;
		if (seteuid(user) || bind(fd, (struct sockaddr *)&address, length) ||
		    (listens && listen(fd, 8)) || seteuid(0) ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) || write(ends[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_true(pid > 0 && read(ends[0], &length, 1) == 1);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Somebody else has the name that this mpirun would have: it is reached all the same. */
static void held_name(void **state)
{
	struct ucred holder;
	int listener, fd;
	pid_t other;

	(void)state;
	if (geteuid())
		skip();
	for (int listens = 0; listens < 2; listens++) {
		other = hold_name(getpid(), 65534, listens);
		assert_int_equal(job_connect(getpid()), -ENOENT);
		listener = job_listen(&holder);
		assert_true(listener >= 0);
		assert_int_equal(holder.pid, listens ? other : -1);
		if (listens)
			assert_int_equal(holder.uid, 65534);
		fd = job_connect(getpid());
		assert_true(fd >= 0);
		close(fd);
		close(listener);
		end(other);
	}
	listener = job_listen(&holder);
	assert_true(listener >= 0 && !holder.pid);
	fd = job_connect(getpid());
	assert_true(fd >= 0);
	close(fd);
	close(listener);
}

/*
 * The right number and another user: that of a process that had the number before,
 * and left the socket to a child, looks like this.
 */
static void another_user(void **state)
{
	pid_t other;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	other = hold_name(0, 0, true);
	fd = job_connect(other);
	assert_true(fd >= 0);
	close(fd);
	end(other);
	other = hold_name(0, 65534, true);
	assert_int_equal(job_connect(other), -ENOENT);
	end(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_signal), cmocka_unit_test(with_signal),
		cmocka_unit_test(sent_and_received),
		cmocka_unit_test(held_name), cmocka_unit_test(another_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
