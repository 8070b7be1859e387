// SPDX-License-Identifier: GPL-2.0
/*
 * The first inputs of tests/fuzz/context_fuzz.c: they are to be what the reader
 * accepts, else the fuzzer starts from nothing.  After a change of the format,
 * `test_corpus --update` from the top folder writes them anew.
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
#include <unistd.h>

#include "report/report.h"
#include "sample.h"
#include "tests/memory_section.h"

#define CORPUS	"tests/fuzz/context_fuzz.corpus/"

/* Kinds of files that the sample lacks, with their lists. */
struct kinds {
	Kcr__UnixSocket socket;
	Kcr__UnixMessage message, *messages[1];
	Kcr__SocketOption option, *options[1];
	Kcr__Epoll epoll;
	Kcr__EpollEntry entry, *entries[1];
};

static void make_socket(struct sample *s, struct kinds *k)
{
	kcr__unix_socket__init(&k->socket);
	kcr__unix_message__init(&k->message);
	kcr__socket_option__init(&k->option);
	k->message.data.data = (uint8_t *)"datagram";
	k->message.data.len = 8;
	k->option.value.data = (uint8_t *)"\1\0\0\0";
	k->option.value.len = 4;
	k->messages[0] = &k->message;
	k->options[0] = &k->option;
	k->socket.type = 2;
	k->socket.has_peer_file_id = 1;
	k->socket.peer_file_id = 2;
	k->socket.n_message = k->socket.n_option = 1;
	k->socket.message = k->messages;
	k->socket.option = k->options;
	s->file[1].kind_case = KCR__FILE__KIND_UNIX_SOCKET;
	s->file[1].unix_socket = &k->socket;
}

static void make_epoll(struct sample *s, struct kinds *k)
{
	kcr__epoll__init(&k->epoll);
	kcr__epoll_entry__init(&k->entry);
	k->entry.file_id = 2;
	k->entries[0] = &k->entry;
	k->epoll.n_entry = 1;
	k->epoll.entry = k->entries;
	s->file[2].kind_case = KCR__FILE__KIND_EPOLL;
	s->file[2].epoll = &k->epoll;
}

static int write_metadata(const struct sample *s, int fd)
{
	struct context_writer *w;
	int err = context_writer_new(&w, fd, 0);

	if (err)
		return err;
	err = sample_write_metadata(s, w);
	if (!err)
		err = context_writer_finish(w);
	context_writer_free(w);
	return err;
}

/* An increment: one page of its own, one of its ancestor. */
static int write_increment(const struct sample *s, int fd)
{
	static const uint8_t page[CONTEXT_PAGE] = { 1 };
	const struct kcr_run run[] = { { SAMPLE_HEAP, 1 }, { SAMPLE_HEAP + 2 * CONTEXT_PAGE, 1 } };
	const struct context_table table = {
		.pid = SAMPLE_PID, .runs = run, .nr_runs = 2,
		.hash = (const struct context_hash[]){ { 1, 2 }, { 3, 4 } },
		.owner = (const uint16_t[]){ 0, 1 },
	};
	struct context_writer *w;
	int err = context_writer_new(&w, fd, CONTEXT_HAS_TABLES | CONTEXT_HAS_ANCESTORS);

	if (err)
		return err;
	err = sample_write_metadata(s, w);
	if (!err)
		err = context_write_table(w, &table);
	if (!err)
		err = section_write(w, SAMPLE_PID, &run[1], 1, page, CONTEXT_RAW);
	if (!err)
		err = context_writer_finish(w);
	context_writer_free(w);
	return err;
}

static int write_seed(const char *path, const struct sample *s,
		      int (*write_sample)(const struct sample *, int))
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), err;

	/* The fuzzer's own byte: seal the rest again. */
	if (fd < 0 || write(fd, "\1", 1) != 1)
		return -errno;
	err = write_sample(s, fd);
	close(fd);
	return err;
}

static int update(void)
{
	Kcr__Ancestor ancestor = KCR__ANCESTOR__INIT, *ancestors[] = { &ancestor };
	struct sample s;
	struct kinds kinds;
	int err;

	ancestor.name = "parent";
	sample_make(&s);
	err = write_seed(CORPUS "whole", &s, sample_write);
	s.preamble.n_ancestor = 1;
	s.preamble.ancestor = ancestors;
	if (!err)
		err = write_seed(CORPUS "increment", &s, write_increment);
	s.preamble.n_ancestor = 0;
	make_socket(&s, &kinds);
	make_epoll(&s, &kinds);
	if (!err)
		err = write_seed(CORPUS "metadata", &s, write_metadata);
	sample_free(&s);
	if (err)
		report_print(err);
	return err != 0;
}

static void expect_accepted(const char *path)
{
	uint64_t digest;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	lseek(fd, 1, SEEK_SET);
	report_clear();
	if (sample_read(fd, false, &digest))
		fail_msg("%s", report_message());
	close(fd);
}

static void accepted(void **state)
{
	(void)state;
	expect_accepted(CORPUS "whole");
	expect_accepted(CORPUS "metadata");
	expect_accepted(CORPUS "increment");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(accepted) };

	if (argc == 2 && !strcmp(argv[1], "--update"))
		return update();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
