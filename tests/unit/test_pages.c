// SPDX-License-Identifier: GPL-2.0
/*
 * The page pipeline between a source and a sink in memory and a context file: what
 * arrives, by which route, and what is said when an end fails or data are damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/chooser.h"
#include "image/pages.h"
#include "report/report.h"

#define NR_CHUNKS	23u	/* more than the pipeline has slots */
#define PAGES		64u	/* of a chunk, in two runs */
#define BASE		0x10000000ull
#define PID		77

static bool no_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		dlsym(RTLD_NEXT, "pthread_create");

	return no_threads ? EAGAIN : next(thread, attr, run, arg);
}

/* ---- both ends in memory --------------------------------------------------------- */

struct memory {
	struct page_source source;
	struct page_sink sink;
	unsigned char *page;		/* NR_CHUNKS * PAGES of them */
	unsigned int next;		/* chunk to be given or stored */
	unsigned int fail_at;		/* this one fails; NR_CHUNKS: none */
	unsigned int loaded, sent, stored, filled;
	bool buffers_only, unordered, concurrent;
	struct kcr_run run[2];
};

static unsigned char *pages_of(const struct memory *m, unsigned int chunk)
{
	return m->page + (size_t)chunk * PAGES * CONTEXT_PAGE;
}

/* Odd chunks cannot be compressed. */
static void make_pages(struct memory *m)
{
	uint64_t x = 1;

	for (unsigned int chunk = 0; chunk < NR_CHUNKS; chunk++) {
		unsigned char *p = pages_of(m, chunk);

		for (size_t i = 0; i < PAGES * CONTEXT_PAGE; i++) {
			x = x * 6364136223846793005ull + 1442695040888963407ull;
			p[i] = chunk % 2 ? x >> 56 : i / 512 + chunk;
		}
	}
}

static void memory_new(struct memory *m)
{
	*m = (struct memory){ .fail_at = NR_CHUNKS };
	m->page = calloc(NR_CHUNKS * PAGES, CONTEXT_PAGE);
	assert_non_null(m->page);
}

static struct memory *of_source(struct page_source *source)
{
	return (struct memory *)((char *)source - offsetof(struct memory, source));
}

static struct memory *of_sink(struct page_sink *sink)
{
	return (struct memory *)((char *)sink - offsetof(struct memory, sink));
}

static int give(struct page_source *source, struct context_chunk *chunk)
{
	struct memory *m = of_source(source);

	if (m->next == NR_CHUNKS)
		return 0;
	if (m->next == m->fail_at && !m->concurrent)
		return report_fail(-EIO, "the source failed");
	m->run[0] = (struct kcr_run){ BASE + m->next * 0x1000000ull, PAGES / 2 };
	m->run[1] = (struct kcr_run){ m->run[0].address + 0x800000, PAGES / 2 };
	chunk->pid = PID;
	chunk->runs = m->run;
	chunk->nr_runs = 2;
	chunk->nr_pages = PAGES;
	chunk->length = PAGES * CONTEXT_PAGE;
	m->next++;
	return 1;
}

/* A chunk, or some of its pages. */
static int load(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		uint64_t *sum)
{
	struct memory *m = of_source(source);
	unsigned int number = (chunk->runs[0].address - BASE) / 0x1000000;
	unsigned char *to = buffer;

	(void)sum;
	if (m->concurrent && number == m->fail_at)
		return report_fail(-EIO, "the source failed");
	for (size_t i = 0; i < chunk->nr_runs; i++) {
		uint64_t offset = (chunk->runs[i].address - BASE) % 0x1000000, length;

		offset = offset % 0x800000 + offset / 0x800000 * (PAGES / 2 * CONTEXT_PAGE);
		length = chunk->runs[i].nr_pages * CONTEXT_PAGE;
		assert_true(offset + length <= PAGES * CONTEXT_PAGE);
		memcpy(to, pages_of(m, number) + offset, length);
		to += length;
	}
	assert_int_equal(to - (unsigned char *)buffer, chunk->length);
	__atomic_fetch_add(&m->loaded, 1, __ATOMIC_RELAXED);
	return 0;
}

static int send(struct page_source *source, const struct context_chunk *chunk, int fd,
		uint64_t *sum)
{
	struct memory *m = of_source(source);

	m->sent++;
	assert_int_equal(write(fd, pages_of(m, m->next - 1), chunk->length), chunk->length);
	*sum = XXH64(pages_of(m, m->next - 1), chunk->length, 0);
	return 0;
}

/* Where the chunk with these runs belongs. */
static unsigned char *place(const struct memory *m, const struct context_chunk *chunk)
{
	assert_int_equal(chunk->pid, PID);
	assert_int_equal(chunk->nr_runs, 2);
	assert_int_equal(chunk->nr_pages, PAGES);
	return pages_of(m, (chunk->runs[0].address - BASE) / 0x1000000);
}

static int store(struct page_sink *sink, const struct context_chunk *chunk)
{
	struct memory *m = of_sink(sink);

	if (m->stored + m->filled == m->fail_at)
		return report_fail(-ENOSPC, "the sink failed");
	assert_int_equal(chunk->compression, CONTEXT_RAW);
	assert_int_equal(chunk->length, PAGES * CONTEXT_PAGE);
	memcpy(place(m, chunk), chunk->data, chunk->length);
	m->stored++;
	return 0;
}

static int fill(struct page_sink *sink, const struct context_chunk *chunk, int fd, uint64_t *sum)
{
	struct memory *m = of_sink(sink);
	unsigned char *to = place(m, chunk);

	if (m->stored + m->filled == m->fail_at)
		return report_fail(-ENOSPC, "the sink failed");
	if (read(fd, to, chunk->length) != (ssize_t)chunk->length)
		return report_fail(-ENODATA, "it ended");
	*sum = XXH64(to, chunk->length, 0);
	m->filled++;
	return 0;
}

static const struct page_source_ops source_ops = { .next = give, .load = load, .send = send };
static const struct page_sink_ops sink_ops = { .store = store, .fill = fill };
static const struct page_sink_ops unordered_ops = {
	.unordered = true, .store = store, .fill = fill,
};
static const struct page_source_ops concurrent_ops = {
	.concurrent = true, .next = give, .load = load, .send = send,
};
/* Ends that have no way around the buffers. */
static const struct page_source_ops loading_ops = { .next = give, .load = load };
static const struct page_sink_ops storing_ops = { .store = store };

/* ---- to a file and back ------------------------------------------------------------ */

static uint64_t seen_pages;

static void count(void *arg, const struct context_chunk *chunk)
{
	assert_ptr_equal(arg, &seen_pages);
	seen_pages += chunk->nr_pages;
}

static struct compression_count counts[CONTEXT_COMPRESSIONS];

static int save_as(struct memory *m, int fd, struct compression how)
{
	struct chooser *chooser = NULL;
	Kcr__Preamble preamble = KCR__PREAMBLE__INIT;
	struct context_page_sink sink;
	struct context_writer *w;
	int err;

	m->source.ops = m->buffers_only ? &loading_ops : m->concurrent ? &concurrent_ops : &source_ops;
	assert_int_equal(context_writer_new(&w, fd, 0), 0);
	assert_int_equal(context_write_message(w, CONTEXT_PREAMBLE, &preamble.base), 0);
	context_page_sink(&sink, w);
	seen_pages = 0;
	memset(counts, 0, sizeof(counts));
	if (how.adaptive)
		assert_int_equal(chooser_new(&chooser, fd, pages_processors()), 0);
	err = pages_move(&(struct pages_flow) {
		.source = &m->source, .sink = &sink.sink, .work = PAGES_ENCODE,
		.compression = how, .chooser = chooser, .count = counts, .progress = count,
		.progress_arg = &seen_pages,
	});
	if (!err)
		err = context_writer_finish(w);
	context_writer_free(w);
	chooser_free(chooser);
	return err;
}

static int save(struct memory *m, int fd, enum context_compression how)
{
	return save_as(m, fd, (struct compression){ .kind = how });
}

static int restore(struct memory *m, int fd)
{
	struct context_page_source source;
	struct context_reader *r;
	struct context_item item;
	int err;

	m->sink.ops = m->buffers_only ? &storing_ops : m->unordered ? &unordered_ops : &sink_ops;
	assert_int_equal(context_reader_new(&r, fd, "test"), 0);
	assert_int_equal(context_read(r, &item), 1);
	protobuf_c_message_free_unpacked(item.message, NULL);
	/* As a restart does, which sees the first one while it looks for contents. */
	if (context_read(r, &item) >= 0)
		context_unread(r);
	context_page_source(&source, r);
	err = pages_move(&(struct pages_flow) {
		.source = &source.source, .sink = &m->sink, .work = PAGES_DECODE,
	});
	context_reader_free(r);
	return err;
}

static int memory_file(void)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void round_trip(enum context_compression how, bool unordered)
{
	struct memory from, to;
	int fd = memory_file();

	memory_new(&from);
	memory_new(&to);
	to.unordered = from.concurrent = unordered;
	make_pages(&from);
	assert_int_equal(save(&from, fd, how), 0);
	assert_int_equal(seen_pages, NR_CHUNKS * PAGES);
	assert_int_equal(from.sent, how == CONTEXT_RAW ? NR_CHUNKS : 0);
	assert_int_equal(from.loaded, how == CONTEXT_RAW ? 0 : NR_CHUNKS);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(restore(&to, fd), 0);
	/* What could not be compressed is stored raw, and comes straight from the file. */
	assert_int_equal(to.filled, how == CONTEXT_RAW ? NR_CHUNKS : NR_CHUNKS / 2);
	assert_int_equal(to.stored, NR_CHUNKS - to.filled);
	assert_memory_equal(from.page, to.page, NR_CHUNKS * PAGES * CONTEXT_PAGE);
	close(fd);
	free(from.page);
	free(to.page);
}

static void raw(void **state)
{
	(void)state;
	round_trip(CONTEXT_RAW, false);
	round_trip(CONTEXT_RAW, true);
}

static void lz4(void **state)
{
	(void)state;
	round_trip(CONTEXT_LZ4, false);
	round_trip(CONTEXT_LZ4, true);
}

static void zstd(void **state)
{
	(void)state;
	round_trip(CONTEXT_ZSTD, false);
	round_trip(CONTEXT_ZSTD, true);
}

/* At the limit of threads it takes longer, and works. */
static void without_threads(void **state)
{
	(void)state;
	no_threads = true;
	round_trip(CONTEXT_LZ4, false);
	round_trip(CONTEXT_LZ4, true);
	no_threads = false;
}

static void buffers_only(void **state)
{
	struct memory from, to;
	int fd = memory_file();

	(void)state;
	memory_new(&from);
	memory_new(&to);
	from.buffers_only = to.buffers_only = true;
	make_pages(&from);
	assert_int_equal(save(&from, fd, CONTEXT_RAW), 0);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(restore(&to, fd), 0);
	assert_int_equal(from.loaded, NR_CHUNKS);
	assert_int_equal(to.stored, NR_CHUNKS);
	assert_memory_equal(from.page, to.page, NR_CHUNKS * PAGES * CONTEXT_PAGE);
	close(fd);
	free(from.page);
	free(to.page);
}

struct feeder {
	int fd, pipe;
};

static void *feed(void *arg)
{
	const struct feeder *f = arg;
	char buffer[65536];
	ssize_t n;

	while ((n = read(f->fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t done = 0, put; done < n; done += put) {
			put = write(f->pipe, buffer + done, n - done);
			if (put <= 0)
				return NULL;
		}
	close(f->pipe);
	return NULL;
}

/* Nothing can be read from a pipe by the module: all goes through workers. */
static void through_pipe(void **state)
{
	struct memory from, to;
	struct feeder f;
	pthread_t thread;
	int ends[2];

	(void)state;
	memory_new(&from);
	memory_new(&to);
	make_pages(&from);
	f.fd = memory_file();
	assert_int_equal(save(&from, f.fd, CONTEXT_LZ4), 0);
	lseek(f.fd, 0, SEEK_SET);
	assert_int_equal(pipe(ends), 0);
	f.pipe = ends[1];
	assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
	assert_int_equal(restore(&to, ends[0]), 0);
	pthread_join(thread, NULL);
	assert_int_equal(to.stored, NR_CHUNKS);
	assert_memory_equal(from.page, to.page, NR_CHUNKS * PAGES * CONTEXT_PAGE);
	close(ends[0]);
	close(f.fd);
	free(from.page);
	free(to.page);
}

/* ---- adaptive compression ---------------------------------------------------------- */

struct slow {
	int fd, file;
};

/* Takes 16 MB/s, and keeps them. */
static void *take_slowly(void *arg)
{
	const struct slow *s = arg;
	char buffer[65536];
	ssize_t n;

	while ((n = read(s->fd, buffer, sizeof(buffer))) > 0) {
		assert_int_equal(write(s->file, buffer, n), n);
		usleep((unsigned int)n / 16);
	}
	return NULL;
}

static uint64_t chunks(void)
{
	uint64_t sum = 0, bytes = 0;

	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++) {
		sum += counts[i].chunks;
		bytes += counts[i].bytes;
	}
	assert_int_equal(bytes, NR_CHUNKS * PAGES * CONTEXT_PAGE);
	assert_int_equal(counts[CONTEXT_RAW].stored, counts[CONTEXT_RAW].bytes);
	return sum;
}

/*
 * A slow pipe gets what can be compressed in that form, after the first chunks, by which it
 * is seen to be slow; what it gets is read as any image.
 */
static void adaptive_to_pipe(bool buffers_only)
{
	struct memory from, to;
	struct slow slow;
	pthread_t thread;
	int ends[2];

	memory_new(&from);
	memory_new(&to);
	from.buffers_only = buffers_only;
	make_pages(&from);
	assert_int_equal(pipe(ends), 0);
	slow = (struct slow){ .fd = ends[0], .file = memory_file() };
	assert_int_equal(pthread_create(&thread, NULL, take_slowly, &slow), 0);
	assert_int_equal(save_as(&from, ends[1], (struct compression){ .adaptive = true }), 0);
	close(ends[1]);
	pthread_join(thread, NULL);
	assert_int_equal(chunks(), NR_CHUNKS);
	assert_in_range(counts[CONTEXT_LZ4].chunks + counts[CONTEXT_ZSTD].chunks, 5, NR_CHUNKS / 2 + 1);
	lseek(slow.file, 0, SEEK_SET);
	assert_int_equal(restore(&to, slow.file), 0);
	assert_memory_equal(from.page, to.page, NR_CHUNKS * PAGES * CONTEXT_PAGE);
	close(ends[0]);
	close(slow.file);
	free(from.page);
	free(to.page);
}

static void adaptive(void **state)
{
	(void)state;
	adaptive_to_pipe(false);
	adaptive_to_pipe(true);
}

/* To memory, whatever is chosen. */
static void adaptive_to_file(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct memory from, to;
		int fd = memory_file();

		memory_new(&from);
		memory_new(&to);
		make_pages(&from);
		no_threads = i;
		assert_int_equal(save_as(&from, fd, (struct compression){ .adaptive = true }), 0);
		assert_int_equal(chunks(), NR_CHUNKS);
		assert_int_equal(seen_pages, NR_CHUNKS * PAGES);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(restore(&to, fd), 0);
		assert_memory_equal(from.page, to.page, NR_CHUNKS * PAGES * CONTEXT_PAGE);
		no_threads = false;
		close(fd);
		free(from.page);
		free(to.page);
	}
}

/* ---- failures ------------------------------------------------------------------------ */

/* An error of either end comes back as it is, whichever chunk it is about. */
static void failing_ends(void **state)
{
	static const enum context_compression ways[] = { CONTEXT_RAW, CONTEXT_LZ4 };

	(void)state;
	for (unsigned int i = 0; i < 2 * NR_CHUNKS; i++) {
		struct memory from, to;
		int fd = memory_file();

		memory_new(&from);
		memory_new(&to);
		make_pages(&from);
		from.fail_at = i / 2;
		/* In every other chunk that is compressed it is a worker that finds it. */
		from.concurrent = i % 4 == 3;
		assert_int_equal(save(&from, fd, ways[i % 2]), -EIO);
		assert_string_equal(report_message(), "the source failed");
		report_clear();
		from.fail_at = NR_CHUNKS;
		from.next = 0;
		assert_int_equal(ftruncate(fd, 0), 0);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(save(&from, fd, ways[i % 2]), 0);
		lseek(fd, 0, SEEK_SET);
		to.fail_at = i / 2;
		to.unordered = i / 2 % 2;
		assert_int_equal(restore(&to, fd), -ENOSPC);
		assert_string_equal(report_message(), "the sink failed");
		report_clear();
		close(fd);
		free(from.page);
		free(to.page);
	}
}

/* One wrong bit anywhere in the file: refused, by name, at the section where it is. */
static void damaged(void **state)
{
	struct memory from;
	int good = memory_file();
	off_t length;
	char *bytes;

	(void)state;
	memory_new(&from);
	make_pages(&from);
	assert_int_equal(save(&from, good, CONTEXT_LZ4), 0);
	length = lseek(good, 0, SEEK_END);
	bytes = malloc(length);
	assert_int_equal(pread(good, bytes, length, 0), length);
	for (off_t at = 4096; at < length; at += length / 61) {
		struct memory to;
		int fd = memory_file();

		memory_new(&to);
		to.unordered = at % 2;
		bytes[at] ^= 4;
		assert_int_equal(pwrite(fd, bytes, length, 0), length);
		bytes[at] ^= 4;
		assert_int_equal(restore(&to, fd), -EINVAL);
		assert_non_null(strstr(report_message(), "test: damaged context file: "));
		report_clear();
		close(fd);
		free(to.page);
	}
	close(good);
	free(bytes);
	free(from.page);
}

/* A file that ends too early, by either route. */
static void truncated(void **state)
{
	static const enum context_compression ways[] = { CONTEXT_RAW, CONTEXT_ZSTD };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct memory from, to;
		int fd = memory_file();

		memory_new(&from);
		memory_new(&to);
		make_pages(&from);
		assert_int_equal(save(&from, fd, ways[i]), 0);
		assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) / 2), 0);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(restore(&to, fd), -EINVAL);
		assert_non_null(strstr(report_message(), "test: truncated context file"));
		report_clear();
		close(fd);
		free(from.page);
		free(to.page);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw), cmocka_unit_test(lz4), cmocka_unit_test(zstd),
		cmocka_unit_test(without_threads), cmocka_unit_test(buffers_only),
		cmocka_unit_test(through_pipe), cmocka_unit_test(adaptive),
		cmocka_unit_test(adaptive_to_file), cmocka_unit_test(failing_ends),
		cmocka_unit_test(damaged), cmocka_unit_test(truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
