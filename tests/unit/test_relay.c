// SPDX-License-Identifier: GPL-2.0
/*
 * What is passed on in two directions: neither waits for the other, all arrives, and the end of one
 * is passed on, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migrate/relay.h"

#define MUCH		3000000
#define PATIENCE_S	60

/* A program in a shell, whose input and output are *there and *back. */
static pid_t run(const char *script, int *there, int *back)
{
	int input[2], output[2];
	pid_t pid;

	assert_int_equal(pipe2(input, O_CLOEXEC) | pipe2(output, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(input[0], STDIN_FILENO);
		dup2(output[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	*there = input[1];
	*back = output[0];
	return pid;
}

static char before[MUCH], after[MUCH];

/* Gives the program `before` on its input, or nothing but its end: the size of its output, in `after`. */
static ssize_t output_of(const char *script, size_t size, int flags)
{
	int in = memfd_create("input", MFD_CLOEXEC), out = memfd_create("output", MFD_CLOEXEC), status;
	struct relay_way output = { .to = out, .ends = true }, input = { .from = in };
	pid_t pid = run(script, &input.to, &output.from);
	ssize_t n;

	assert_int_equal(write(in, before, size), size);
	lseek(in, 0, SEEK_SET);
	fcntl(input.to, F_SETFL, flags);
	alarm(PATIENCE_S);
	assert_int_equal(relay_both(&output, &input), 0);
	alarm(0);
	if (input.to >= 0)
		close(input.to);
	close(output.from);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	n = pread(out, after, MUCH, 0);
	close(in);
	close(out);
	return n;
}

static void both_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < MUCH; i++)
		before[i] = (char)(i % 251);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(output_of("cat", MUCH, i ? O_NONBLOCK : 0), MUCH);
		assert_memory_equal(before, after, MUCH);
		memset(after, 0, MUCH);
	}
}

/* Its input ends before its output, and the other way round; it does not read all of that. */
static void ends(void **state)
{
	(void)state;
	assert_int_equal(output_of("cat; sleep 0.2; echo more", 100, 0), 105);
	assert_int_equal(output_of("exec 0<&-; sleep 0.2; echo more", MUCH, 0), 5);
	assert_int_equal(output_of("head -c 100000; exit 0", MUCH, O_NONBLOCK), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_at_once), cmocka_unit_test(ends),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
