// SPDX-License-Identifier: GPL-2.0
/*
 * The streams of a program at another machine: all that it has written arrives, however it ends,
 * and what has come along with the command is not left for later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migrate/tunnel.h"

#define PATIENCE_S	60
#define MUCH		3000000
#define MORE_THAN_FITS	(1100 << 10)	/* into the messages that may wait */
#define TIMES		100
#define MOMENT_US	200000

static pid_t program;

static int wait_for_program(void)
{
	int status = -1;

	waitpid(program, &status, 0);
	return status;
}

/* Runs it for the other end, whose command is the script. */
static void serve(int fd)
{
	struct tunnel t = { .sends = { false, true, true } };
	struct wire_header header;
	const uint8_t *data;
	int both[TUNNEL_STREAMS][2];
	char script[200];

	wire_open(&t.wire, fd);
	usleep(MOMENT_US / 10);		/* until all is there that was sent at once */
	while (!wire_next(&t.wire, &header, &data))
		if (wire_fill(&t.wire) < 0)
			_exit(1);
	memcpy(script, data, header.length);
	script[header.length] = '\0';
	for (int i = 0; i < TUNNEL_STREAMS; i++)
		if (pipe2(both[i], O_CLOEXEC))
			_exit(1);
	program = fork();
	if (!program) {
		for (int i = 0; i < TUNNEL_STREAMS; i++)
			dup2(both[i][!!i], i);
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(127);
	}
	for (int i = 0; i < TUNNEL_STREAMS; i++) {
		close(both[i][!!i]);
		t.fd[i] = both[i][!i];
	}
	t.program = (int)syscall(SYS_pidfd_open, program, 0);
	tunnel_run(&t, wait_for_program);
	_exit(0);
}

/* Our end of a connection; the other one is served. */
static int connect_to(pid_t *server)
{
	int both[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
	*server = fork();
	if (!*server) {
		alarm(PATIENCE_S);
		close(both[0]);
		serve(both[1]);
	}
	close(both[1]);
	return both[0];
}

static void begin(struct tunnel *t, int fd, const char *script)
{
	*t = (struct tunnel){ .fd = { -1, -1, -1 }, .sends = { true }, .program = -1 };
	wire_open(&t->wire, fd);
	wire_queue(&t->wire, TUNNEL_COMMAND, 0, 0, script, strlen(script));
}

/* Runs the script with that input: its output. */
static int output_of(const char *script, int input, int delay_us, int status)
{
	int out = memfd_create("output", MFD_CLOEXEC);
	struct tunnel t;
	pid_t server;

	begin(&t, connect_to(&server), script);
	assert_int_equal(wire_flush(&t.wire), 0);
	t.fd[STDIN_FILENO] = input;
	t.fd[STDOUT_FILENO] = dup(out);
	t.fd[STDERR_FILENO] = dup(out);
	usleep(delay_us);
	alarm(PATIENCE_S);
	assert_int_equal(tunnel_run(&t, NULL), 0);
	alarm(0);
	assert_int_equal(t.status, status << 8);
	tunnel_close(&t);
	assert_int_equal(waitpid(server, NULL, 0), server);
	return out;
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_size;
}

static void input_and_output(void **state)
{
	static char before[MUCH], after[MUCH];
	int input = memfd_create("input", MFD_CLOEXEC), out;

	(void)state;
	for (size_t i = 0; i < sizeof(before); i++)
		before[i] = (char)(i % 251);
	assert_int_equal(write(input, before, MUCH), MUCH);
	lseek(input, 0, SEEK_SET);
	out = output_of("cat; exit 3", input, 0, 3);
	assert_int_equal(pread(out, after, MUCH, 0), MUCH);
	assert_memory_equal(before, after, MUCH);
	assert_int_equal(size_of(out), MUCH);
}

static int nothing(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* It has written and ended: seen in either order. */
static void ends_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < TIMES; i++)
		assert_int_equal(size_of(output_of("echo output; echo error >&2", nothing(), 0, 0)), 13);
}

/* It has ended while nobody takes what it has written. */
static void is_taken_late(void **state)
{
	char script[100];

	(void)state;
	for (off_t size = MORE_THAN_FITS; size < MORE_THAN_FITS + (500 << 10); size += 50 << 10) {
		snprintf(script, sizeof(script), "head -c %ld /dev/zero", (long)size);
		assert_int_equal(size_of(output_of(script, nothing(), MOMENT_US, 0)), size);
	}
}

/* It gets what came with its command, although nothing follows until it has answered. */
static void asks_first(void **state)
{
	int question[2], answer[2];
	char text[4] = "";
	struct tunnel t;
	pid_t server, asker;

	(void)state;
	begin(&t, connect_to(&server), "read it && echo $it && cat");
	assert_int_equal(pipe2(question, O_CLOEXEC) | pipe2(answer, O_CLOEXEC), 0);
	wire_queue(&t.wire, TUNNEL_DATA, STDIN_FILENO, 0, "yes\n", 4);
	assert_int_equal(wire_flush(&t.wire), 0);
	asker = fork();
	if (!asker) {
		alarm(PATIENCE_S);
		_exit(read(answer[0], text, sizeof(text)) != 4 || memcmp(text, "yes\n", 4));
	}
	close(question[1]);
	close(answer[0]);
	t.fd[STDIN_FILENO] = question[0];
	t.fd[STDOUT_FILENO] = answer[1];
	alarm(PATIENCE_S);
	assert_int_equal(tunnel_run(&t, NULL), 0);
	alarm(0);
	tunnel_close(&t);
	program = asker;
	assert_int_equal(wait_for_program(), 0);
	program = server;
	assert_int_equal(wait_for_program(), 0);
}

/* What the other end may not say; and it vanishes. */
static void is_wrong(void **state)
{
	static const struct {
		uint32_t type, stream;
	} wrong[] = {
		{ TUNNEL_COMMAND, 0 }, { TUNNEL_DATA, STDIN_FILENO }, { TUNNEL_DATA, TUNNEL_STREAMS },
		{ TUNNEL_END, 0 }, { 77, 0 },
	};
	struct wire other;
	struct tunnel t;
	int both[2];

	(void)state;
	for (size_t i = 0; i <= sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
		begin(&t, both[0], "");
		wire_open(&other, both[1]);
		if (i < sizeof(wrong) / sizeof(*wrong))
			wire_send(&other, wrong[i].type, wrong[i].stream, 0, "1", 1);
		else
			wire_close(&other);
		assert_int_equal(tunnel_run(&t, NULL), other.fd < 0 ? -ECONNRESET : -EPROTO);
		wire_close(&other);
		tunnel_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_and_output), cmocka_unit_test(ends_at_once),
		cmocka_unit_test(is_taken_late), cmocka_unit_test(asks_first),
		cmocka_unit_test(is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
