// SPDX-License-Identifier: GPL-2.0
/*
 * Partial files: who has no use for one refuses it, others read which pages are elsewhere, and ask
 * for them through a socket, several threads at a time; whatever comes that was not asked for, or
 * is not what it should be, ends that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/codec.h"
#include "image/deferred.h"
#include "image/pages.h"
#include "report/report.h"
#include "restart/elsewhere.h"
#include "restart/link.h"
#include "sample.h"

#define HEAP(n)	(SAMPLE_HEAP + CONTEXT_PAGE * (n))
#define THREADS	4

static const struct kcr_run first[] = { { HEAP(0), 2 }, { HEAP(4), 1 } };
static const struct kcr_run second[] = { { HEAP(6), 2 } };

/* ---- the file ------------------------------------------------------------------------------ */

static int make(uint64_t features)
{
	int fd = memfd_create("context", MFD_CLOEXEC);
	struct context_writer *w;
	struct sample sample;

	assert_true(fd >= 0);
	sample_make(&sample);
	assert_int_equal(context_writer_new(&w, fd, features), 0);
	assert_int_equal(sample_write_metadata(&sample, w), 0);
	assert_int_equal(context_write_elsewhere(w, SAMPLE_PID, first, 2), 0);
	assert_int_equal(context_write_elsewhere(w, SAMPLE_PID, second, 1), 0);
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
	sample_free(&sample);
	lseek(fd, 0, SEEK_SET);
	report_clear();
	return fd;
}

static void is_refused(void **state)
{
	int fd = make(CONTEXT_HAS_ELSEWHERE);
	struct context_reader *r;
	struct context *c;
	uint64_t id;

	(void)state;
	assert_int_equal(context_reader_new(&r, fd, "image"), -EINVAL);
	assert_non_null(strstr(report_message(), "cr_migrate --lazy"));
	lseek(fd, 0, SEEK_SET);
	report_clear();
	assert_int_equal(context_verify(fd, "image", &id), -EINVAL);
	close(fd);

	/* A section that the head does not announce; tables, which would name the same pages. */
	fd = make(0);
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), -EINVAL);
	context_reader_free(r);
	close(fd);
	fd = make(CONTEXT_HAS_ELSEWHERE | CONTEXT_HAS_TABLES);
	assert_int_equal(context_reader_new_partial(&r, fd, "image"), -EINVAL);
	close(fd);
	report_clear();
}

static void is_read(void **state)
{
	int fd = make(CONTEXT_HAS_ELSEWHERE);
	struct context_reader *r;
	struct context_item item;
	struct context *c;

	(void)state;
	assert_int_equal(context_reader_new_partial(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), 0);
	assert_int_equal(context_read(r, &item), 1);
	assert_int_equal(item.type, CONTEXT_ELSEWHERE);
	assert_int_equal(item.pid, SAMPLE_PID);
	assert_int_equal(item.nr_pages, 3);
	assert_memory_equal(item.runs, first, sizeof(first));
	assert_int_equal(context_read(r, &item), 1);
	assert_int_equal(item.nr_runs, 1);
	assert_int_equal(context_read(r, &item), 0);
	context_free(c);
	context_reader_free(r);
	close(fd);
}

/* Pages that nobody defers are missing. */
static void must_be_deferred(void **state)
{
	int fd = make(CONTEXT_HAS_ELSEWHERE);
	struct context_reader *r;
	struct context *c;

	(void)state;
	assert_int_equal(context_reader_new_partial(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), 0);
	assert_int_equal(chain_move(&(struct pages_flow){ .work = PAGES_DECODE }, r, NULL), -EINVAL);
	context_free(c);
	context_reader_free(r);
	close(fd);
	report_clear();
}

static void are_cut(void **state)
{
	static const struct kcr_run runs[] = { { HEAP(0), 2 }, { HEAP(4), 3 }, { HEAP(9), 1 } };
	struct kcr_run out[3];

	(void)state;
	assert_int_equal(context_cut_runs(runs, 3, 0, 100, out), 3);
	assert_memory_equal(out, runs, sizeof(runs));
	assert_int_equal(context_cut_runs(runs, 3, 1, 3, out), 2);
	assert_int_equal(out[0].address, HEAP(1));
	assert_int_equal(out[0].nr_pages, 1);
	assert_int_equal(out[1].address, HEAP(4));
	assert_int_equal(out[1].nr_pages, 2);
	assert_int_equal(context_cut_runs(runs, 3, 5, 1, out), 1);
	assert_int_equal(out[0].address, HEAP(9));
	assert_int_equal(context_cut_runs(runs, 3, 6, 1, out), 0);
}

/* ---- asking for them ----------------------------------------------------------------------- */

/* What a page is filled with. */
static uint8_t byte_of(const struct link_want *want, uint32_t page)
{
	return (uint8_t)(want->number * 7 + want->first + page);
}

static enum fault { NONE, SUM, LENGTH, OTHER, COMPRESSION, TYPE, CUT, END } fault;
static int ends[2];
static bool was_loaded;

static void answer(const struct link *w, const struct link_want *want, struct codec *codec)
{
	static struct { struct link_pages head; uint8_t data[CONTEXT_FETCH_PAGES * CONTEXT_PAGE]; } reply;
	static uint8_t raw[CONTEXT_FETCH_PAGES * CONTEXT_PAGE];
	size_t length = want->nr_pages * CONTEXT_PAGE;
	ssize_t stored = 0;

	for (uint32_t i = 0; i < want->nr_pages; i++)
		memset(raw + i * CONTEXT_PAGE, byte_of(want, i), CONTEXT_PAGE);
	memcpy(reply.data, raw, length);
	/* Every other one is compressed. */
	if (want->first % 2)
		stored = codec_compress(codec, &(struct compression){ .kind = CONTEXT_LZ4 }, raw, length,
					reply.data);
	length = stored > 0 ? (size_t)stored : length;
	reply.head = (struct link_pages) {
		.of = *want, .compression = stored > 0 ? CONTEXT_LZ4 : CONTEXT_RAW,
		.sum = XXH64(reply.data, length, 0) + (fault == SUM),
	};
	reply.head.of.number += fault == OTHER;
	reply.head.compression = fault == COMPRESSION ? 9 : reply.head.compression;
	length -= fault == LENGTH;
	link_send(w, fault == TYPE ? LINK_WANT : LINK_PAGES, &reply,
		  sizeof(reply.head) + (fault == CUT ? 0 : length));
}

/* The one who has them. */
static void *serve(void *arg)
{
	const struct link w = { .in = ends[1], .out = ends[1] };
	struct codec *codec = codec_new();
	struct link_want want;
	struct link_head head;

	while (fault != END && !link_receive(&w, &head)) {
		was_loaded |= head.type == LINK_LOADED;
		if (head.type != LINK_WANT || link_read(&w, &want, sizeof(want)))
			break;
		answer(&w, &want, codec);
	}
	codec_free(codec);
	shutdown(ends[1], SHUT_RDWR);
	return arg;
}

static int ask(struct elsewhere *e, uint64_t number, uint32_t page, uint32_t nr_pages)
{
	const struct link_want want = { number, page, nr_pages };
	uint8_t *buffer = malloc(nr_pages * CONTEXT_PAGE);
	int err = e->fetch(e, number, page, nr_pages, buffer);

	for (uint32_t i = 0; !err && i < nr_pages * CONTEXT_PAGE; i++)
		if (buffer[i] != byte_of(&want, i / CONTEXT_PAGE))
			err = -EIO;
	free(buffer);
	return err;
}

static void *ask_for_many(void *arg)
{
	intptr_t err = 0;

	for (uint32_t i = 0; !err && i < 100; i++)
		err = ask(arg, i % 3, i, 1 + i % CONTEXT_FETCH_PAGES);
	return (void *)err;
}

static struct elsewhere *begin(pthread_t *server, enum fault what)
{
	struct elsewhere *e;

	fault = what;
	was_loaded = false;
	report_clear();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(elsewhere_new(&e, ends[0]), 0);
	assert_int_equal(pthread_create(server, NULL, serve, NULL), 0);
	return e;
}

static void end(struct elsewhere *e, pthread_t server, bool loaded)
{
	e->end(e, loaded);
	pthread_join(server, NULL);
	elsewhere_free(e);
	close(ends[1]);
	assert_int_equal(was_loaded, loaded);
}

static void several_threads(void **state)
{
	pthread_t server, thread[THREADS];
	struct elsewhere *e = begin(&server, NONE);

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask_for_many, e), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *err;

		pthread_join(thread[i], &err);
		assert_null(err);
	}
	end(e, server, true);
}

static void wrong_answers(void **state)
{
	(void)state;
	for (enum fault what = SUM; what <= CUT; what++) {
		pthread_t server;
		struct elsewhere *e = begin(&server, what);

		assert_int_equal(ask(e, 1, 2, 3), -EPROTO);
		assert_non_null(strstr(report_message(), "wrong memory"));
		/* No more is asked for. */
		fault = NONE;
		assert_int_equal(ask(e, 1, 2, 3), -EPROTO);
		end(e, server, false);
	}
}

static void is_lost(void **state)
{
	pthread_t server;
	struct elsewhere *e = begin(&server, END);

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(ask(e, 0, 0, 1), -ECONNRESET);
	assert_non_null(strstr(report_message(), "is lost"));
	end(e, server, false);
	report_clear();
}

/* ---- both ---------------------------------------------------------------------------------- */

static struct deferred *deferred;

static bool add(void *arg, const struct context_chunk *chunk)
{
	(void)arg;
	assert_true(chunk->elsewhere);
	assert_int_equal(deferred_add(deferred, chunk), 0);
	return true;
}

static void are_found(void **state)
{
	int fd = make(CONTEXT_HAS_ELSEWHERE);
	struct context_reader *r;
	struct context *c;
	struct deferred_reader *chunks;
	pthread_t server;
	struct elsewhere *e = begin(&server, NONE);
	static uint8_t pages[CONTEXT_CHUNK_BYTES];
	const struct link_want want = { .number = 1 };
	size_t at;

	(void)state;
	assert_int_equal(context_reader_new_partial(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), 0);
	assert_int_equal(deferred_new(&deferred, r, "image", NULL, e), 0);
	assert_int_equal(chain_move(&(struct pages_flow){ .work = PAGES_DECODE, .defer = add }, r, NULL), 0);
	assert_int_equal(deferred_finish(deferred), 0);
	assert_int_equal(deferred_count(deferred), 2);
	assert_true(deferred_is_partial(deferred));
	assert_int_equal(deferred_try(deferred), 0);
	assert_int_equal(deferred_find(deferred, SAMPLE_PID, HEAP(2)), SIZE_MAX);
	assert_int_equal(deferred_find(deferred, SAMPLE_PID, HEAP(4)), 0);
	at = deferred_find(deferred, SAMPLE_PID, HEAP(7));
	assert_int_equal(at, 1);
	chunks = deferred_reader_new(deferred);
	assert_int_equal(deferred_load(chunks, deferred_at(deferred, at), pages), 0);
	assert_int_equal(pages[0], byte_of(&want, 0));
	assert_int_equal(pages[CONTEXT_PAGE], byte_of(&want, 1));
	deferred_reader_free(chunks);
	deferred_free(deferred);
	context_free(c);
	context_reader_free(r);
	close(fd);
	end(e, server, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_refused),
		cmocka_unit_test(is_read),
		cmocka_unit_test(must_be_deferred),
		cmocka_unit_test(are_cut),
		cmocka_unit_test(several_threads),
		cmocka_unit_test(wrong_answers),
		cmocka_unit_test(is_lost),
		cmocka_unit_test(are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
