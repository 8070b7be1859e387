// SPDX-License-Identifier: GPL-2.0
/*
 * Context files through everything that can be written and read, and what
 * happens when it can't.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/context.h"
#include "report/report.h"
#include "sample.h"

static struct sample sample;

static int memory_file(void)
{
	int fd = memfd_create("context", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The digest of the sample, by way of a file. */
static uint64_t expected(void)
{
	uint64_t digest;
	int fd = memory_file();

	assert_int_equal(sample_write(&sample, fd), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(sample_read(fd, false, &digest), 0);
	close(fd);
	return digest;
}

static void file_round_trip(void **state)
{
	uint64_t digest, taken;
	int fd = memory_file();

	(void)state;
	assert_int_equal(sample_write(&sample, fd), 0);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(sample_read(fd, false, &digest), 0);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(sample_read(fd, true, &taken), 0);
	assert_int_equal(digest, taken);
	close(fd);
}

/* Not a byte beyond the trailer is read, and the start need not be 0. */
static void surrounded(void **state)
{
	char text[6] = "";
	uint64_t digest;
	int fd = memory_file();

	(void)state;
	assert_int_equal(write(fd, "before", 6), 6);
	assert_int_equal(sample_write(&sample, fd), 0);
	assert_int_equal(write(fd, "after", 5), 5);
	lseek(fd, 6, SEEK_SET);
	assert_int_equal(sample_read(fd, false, &digest), 0);
	assert_int_equal(read(fd, text, 6), 5);
	assert_string_equal(text, "after");
	assert_int_equal(digest, expected());
	close(fd);
}

/* Pages start at multiples of 4096 so that they can be moved without copies. */
static void pages_are_aligned(void **state)
{
	const struct kcr_run run = { SAMPLE_HEAP, 1 };
	struct context_writer *w;
	int fd = memory_file();

	(void)state;
	assert_int_equal(context_writer_new(&w, fd, 0), 0);
	assert_int_equal(sample_write_metadata(&sample, w), 0);
	assert_int_equal(context_memory_begin(w, SAMPLE_PID, &run, 1), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR) % CONTEXT_PAGE, 0);
	assert_int_equal(context_writer_bytes(w), lseek(fd, 0, SEEK_CUR));
	context_writer_free(w);
	close(fd);
}

/* A child writes into one end, we read from the other. */
static void through(int in, int out)
{
	uint64_t digest;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		close(in);
		_exit(sample_write(&sample, out) ? 1 : 0);
	}
	close(out);
	assert_int_equal(sample_read(in, false, &digest), 0);
	close(in);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(digest, expected());
}

static void pipe_round_trip(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);	/* many short writes */
	through(fds[0], fds[1]);
}

static void nonblocking_pipe(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	fcntl(fds[1], F_SETPIPE_SZ, 65536);
	through(fds[0], fds[1]);
}

static void socket_round_trip(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	through(fds[0], fds[1]);
}

static void dev_null(void **state)
{
	int fd = open("/dev/null", O_WRONLY);

	(void)state;
	assert_int_equal(sample_write(&sample, fd), 0);
	close(fd);
}

/* ---- failing writes ---------------------------------------------------------- */

static void dev_full(void **state)
{
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	report_clear();
	assert_int_equal(sample_write(&sample, fd), -ENOSPC);
	assert_non_null(strstr(report_message(), "No space left"));
	close(fd);
}

static void reader_gone(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(sample_write(&sample, fds[1]), -EPIPE);
	close(fds[1]);
}

/* The disk is full after any number of bytes: an error, at the latest at the end. */
static void full_anywhere(void **state)
{
	struct rlimit old, limit;
	int fd = memory_file();
	off_t whole, size;

	(void)state;
	assert_int_equal(sample_write(&sample, fd), 0);
	whole = lseek(fd, 0, SEEK_CUR);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	for (size = 0; size < whole; size += 97) {
		limit.rlim_cur = size;
		setrlimit(RLIMIT_FSIZE, &limit);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(sample_write(&sample, fd), -EFBIG);
	}
	setrlimit(RLIMIT_FSIZE, &old);
	close(fd);
}

/* After a failure nothing that looks like success follows. */
static void stays_failed(void **state)
{
	Kcr__Preamble *preamble = &sample.preamble;
	struct context_writer *w;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(context_writer_new(&w, fds[1], 0), 0);
	close(fds[0]);
	assert_int_equal(context_write_message(w, CONTEXT_PREAMBLE, &preamble->base), -EPIPE);
	assert_int_equal(context_write_content(w, 1, 0, "x", 1), -EPIPE);
	assert_int_equal(context_writer_finish(w), -EPIPE);
	context_writer_free(w);
	close(fds[1]);
}

static void misuse(void **state)
{
	const struct kcr_run run = { SAMPLE_HEAP, 1 }, huge = { SAMPLE_HEAP, 1u << 20 };
	struct context_writer *w;
	int fd = memory_file();

	(void)state;
	assert_int_equal(context_writer_new(&w, fd, 0), 0);
	assert_int_equal(context_memory_end(w, 0), -EINVAL);
	assert_int_equal(context_memory_begin(w, 1, &huge, 1), -EINVAL);
	assert_int_equal(context_memory_begin(w, 1, &run, 0), -EINVAL);
	assert_int_equal(context_memory_begin(w, 1, &run, 1), 0);
	assert_int_equal(context_memory_begin(w, 1, &run, 1), -EINVAL);
	assert_int_equal(context_writer_finish(w), -EINVAL);
	context_writer_free(w);
	close(fd);
}

/* What a reader must know goes into the file head, though it is known late. */
static void required_features(void **state)
{
	Kcr__Process *p = &sample.process[0], *list[] = { p };
	Kcr__Credentials credentials = KCR__CREDENTIALS__INIT;
	Kcr__File file = KCR__FILE__INIT;
	struct context_writer *w;
	struct context_reader *r;
	Kcr__InetSocket ping = KCR__INET_SOCKET__INIT;
	Kcr__PacketSocket packets = KCR__PACKET_SOCKET__INIT;
	Kcr__PacketRing ring = KCR__PACKET_RING__INIT;
	char *root = p->root;
	int fd = memory_file();

	(void)state;
	assert_int_equal(context_needs(list, 1), 0);
	p->root = (char *)"/jail";
	assert_int_equal(context_needs(list, 1), CONTEXT_HAS_ROOT);
	p->thread[1]->credentials = &credentials;
	assert_int_equal(context_needs(list, 1), CONTEXT_HAS_ROOT | CONTEXT_HAS_OWN_THREADS);
	assert_int_equal(context_file_needs(&file), 0);
	file.kind_case = KCR__FILE__KIND_PACKET_SOCKET;
	file.packet_socket = &packets;
	assert_int_equal(context_file_needs(&file), CONTEXT_HAS_PACKETS);
	packets.rx_ring = &ring;
	assert_int_equal(context_file_needs(&file), CONTEXT_HAS_PACKETS | CONTEXT_HAS_RINGS);
	file.kind_case = KCR__FILE__KIND_INET_SOCKET;
	file.inet_socket = &ping;
	ping.type = SOCK_DGRAM;
	ping.protocol = IPPROTO_ICMP;
	assert_int_equal(context_file_needs(&file), CONTEXT_HAS_RAW);
	ping.protocol = IPPROTO_UDP;
	assert_int_equal(context_file_needs(&file), 0);
	assert_int_equal(context_writer_new(&w, fd, CONTEXT_HAS_TABLES), 0);
	context_writer_require(w, context_needs(list, 1));
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
	p->thread[1]->credentials = NULL;
	p->root = root;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(context_reader_new(&r, fd, "test"), 0);
	assert_int_equal(context_reader_features(r),
			 CONTEXT_HAS_TABLES | CONTEXT_HAS_ROOT | CONTEXT_HAS_OWN_THREADS);
	context_reader_free(r);
	close(fd);
}

static int setup(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	sample_make(&sample);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sample_free(&sample);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_round_trip),
		cmocka_unit_test(surrounded),
		cmocka_unit_test(pages_are_aligned),
		cmocka_unit_test(pipe_round_trip),
		cmocka_unit_test(nonblocking_pipe),
		cmocka_unit_test(socket_round_trip),
		cmocka_unit_test(dev_null),
		cmocka_unit_test(dev_full),
		cmocka_unit_test(reader_gone),
		cmocka_unit_test(full_anywhere),
		cmocka_unit_test(stays_failed),
		cmocka_unit_test(misuse),
		cmocka_unit_test(required_features),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
