// SPDX-License-Identifier: GPL-2.0
/*
 * Chains of increments: the memory of a made-up process changes at random from one file
 * to the next, and is read back from each; and chains and tables that are not what they
 * should be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/merge.h"
#include "report/report.h"
#include "sample.h"
#include "tests/memory_section.h"

#define PAGES		16u		/* of SAMPLE_HEAP */
#define FILES		9u

/* One file of the chain, and what it stands for. */
struct state {
	uint32_t page[PAGES];		/* what it is filled with; 0: absent */
	uint16_t owner[PAGES];
	Kcr__Ancestor name;
};

static struct state states[FILES];
static char folder[] = "/tmp/kcr-test-chain-XXXXXX";
static uint16_t lie;			/* added to the owner of the first page that has one */
static bool twice;			/* tables are written twice */

static void path_of(char *path, size_t size, unsigned int file)
{
	snprintf(path, size, "%s/member.%u", folder, file);
}

static void fill_page(char *page, uint32_t with)
{
	for (size_t i = 0; i < CONTEXT_PAGE; i += sizeof(with))
		memcpy(page + i, &with, sizeof(with));
}

/* ---- writing ------------------------------------------------------------------------- */

static void write_table(struct context_writer *w, const struct state *s)
{
	struct context_hash hash[PAGES];
	struct kcr_run run[PAGES];
	uint16_t owner[PAGES];
	char page[CONTEXT_PAGE];
	size_t count = 0;

	for (size_t i = 0; i < PAGES; i++) {
		XXH128_hash_t h;

		if (!s->page[i])
			continue;
		fill_page(page, s->page[i]);
		h = XXH3_128bits(page, CONTEXT_PAGE);
		hash[count] = (struct context_hash){ h.low64, h.high64 };
		owner[count] = s->owner[i] + (count ? 0 : lie);
		run[count++] = (struct kcr_run){ SAMPLE_HEAP + i * CONTEXT_PAGE, 1 };
	}
	assert_int_equal(context_write_table(w, &(struct context_table) {
		.pid = SAMPLE_PID, .runs = run, .nr_runs = count, .hash = hash, .owner = owner,
	}), 0);
}

static void write_pages(struct context_writer *w, unsigned int file)
{
	const struct state *s = &states[file];
	static char data[PAGES * CONTEXT_PAGE];
	struct kcr_run run[PAGES];
	size_t count = 0;

	for (size_t i = 0; i < PAGES; i++) {
		if (!s->page[i] || s->owner[i] != file)
			continue;
		fill_page(data + count * CONTEXT_PAGE, s->page[i]);
		run[count++] = (struct kcr_run){ SAMPLE_HEAP + i * CONTEXT_PAGE, 1 };
	}
	if (count)
		assert_int_equal(section_write(w, SAMPLE_PID, run, count, data, file % 3), 0);
}

static void write_file(unsigned int file)
{
	Kcr__Ancestor *ancestor[FILES];
	struct context_writer *w;
	struct sample sample;
	char path[64];
	int fd;

	for (unsigned int i = 0; i < file; i++)
		ancestor[i] = &states[i].name;
	sample_make(&sample);
	sample.preamble.n_ancestor = file;
	sample.preamble.ancestor = ancestor;
	path_of(path, sizeof(path), file);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(context_writer_new(&w, fd, CONTEXT_HAS_TABLES |
					    (file ? CONTEXT_HAS_ANCESTORS : 0)), 0);
	assert_int_equal(sample_write_metadata(&sample, w), 0);
	for (int i = 0; i < 1 + twice; i++)
		write_table(w, &states[file]);
	write_pages(w, file);
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
	sample_free(&sample);
	close(fd);
}

/* What a child will say of it. */
static void identify(unsigned int file)
{
	struct context_reader *r;
	struct context_item item;
	char path[64];
	int fd, more;

	path_of(path, sizeof(path), file);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(context_reader_new(&r, fd, path), 0);
	context_reader_skim(r, CONTEXT_SKIM_TABLES);
	while ((more = context_read(r, &item)) > 0)
		assert_true(item.type == CONTEXT_MEMORY || item.type == CONTEXT_TABLE);
	assert_int_equal(more, 0);
	kcr__ancestor__init(&states[file].name);
	context_reader_identity(r, &states[file].name);
	assert_true(asprintf(&states[file].name.name, "member.%u", file) > 0);
	context_reader_free(r);
	close(fd);
}

static void make_chain(void)
{
	srandom(3);
	lie = twice = 0;
	assert_non_null(mkdtemp(strcpy(folder, "/tmp/kcr-test-chain-XXXXXX")));
	for (unsigned int file = 0; file < FILES; file++) {
		struct state *s = &states[file];

		*s = (struct state){ 0 };
		if (file)
			*s = states[file - 1];
		for (size_t i = 0; i < PAGES; i++) {
			if (file && random() % 4)
				continue;
			s->page[i] = random() % 5 ? random() : 0;
			s->owner[i] = file;
		}
		s->page[2] = s->page[2] ?: 7;	/* something is always there */
		write_file(file);
		identify(file);
	}
}

static void remove_chain(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	for (unsigned int file = 0; file < FILES; file++)
		free(states[file].name.name);
}

/* ---- reading ------------------------------------------------------------------------- */

struct memory {
	struct page_sink sink;
	char page[PAGES][CONTEXT_PAGE];
	uint64_t count;			/* of pages, each once */
};

static unsigned int superseded;		/* chunks with such pages */

static void copy(struct memory *m, const struct context_chunk *chunk, const char *data)
{
	for (size_t i = 0; i < chunk->nr_runs; i++) {
		size_t length = chunk->runs[i].nr_pages * CONTEXT_PAGE;

		memcpy((char *)m->page + (chunk->runs[i].address - SAMPLE_HEAP), data, length);
		data += length;
	}
	m->count += chunk->nr_pages - chunk->nr_superseded;
	superseded += chunk->nr_superseded > 0;
}

static int store(struct page_sink *sink, const struct context_chunk *chunk)
{
	copy((struct memory *)sink, chunk, chunk->data);
	return 0;
}

/* As the module does: straight from the file. */
static int fill(struct page_sink *sink, const struct context_chunk *chunk, int fd, uint64_t *sum)
{
	char data[PAGES * CONTEXT_PAGE];
	ssize_t length = chunk->nr_pages * CONTEXT_PAGE;

	if (read(fd, data, length) != length)
		return -ENODATA;
	*sum = XXH64(data, length, 0);
	copy((struct memory *)sink, chunk, data);
	return 0;
}

static int read_memory(struct context_reader *r, const struct chain *chain, struct memory *m)
{
	static const struct page_sink_ops ops = { .unordered = true, .store = store, .fill = fill };

	memset(m, 0, sizeof(*m));
	m->sink.ops = &ops;
	return chain_move(&(struct pages_flow){ .sink = &m->sink, .work = PAGES_DECODE }, r, chain);
}

static void check_pages(const struct memory *m, const struct state *s)
{
	uint64_t count = 0;

	for (size_t i = 0; i < PAGES; i++) {
		char page[CONTEXT_PAGE];

		fill_page(page, s->page[i]);
		assert_memory_equal(m->page[i], page, CONTEXT_PAGE);
		count += s->page[i] != 0;
	}
	assert_int_equal(m->count, count);
}

/* A file, its description, and the chain behind it. */
struct opened {
	int fd;
	struct context_reader *r;
	struct context *c;
	struct chain *chain;
};

static int open_fd(struct opened *o, int fd, const char *other_folder)
{
	int err;

	*o = (struct opened){ .fd = fd };
	assert_true(fd >= 0);
	err = context_reader_new(&o->r, o->fd, "last");
	if (!err)
		err = context_load(o->r, &o->c);
	if (!err && o->c->preamble->n_ancestor)
		err = chain_open(&o->chain, o->c->preamble, "last", o->fd, other_folder);
	return err;
}

static int open_file(struct opened *o, unsigned int file, const char *other_folder)
{
	char path[64];

	path_of(path, sizeof(path), file);
	return open_fd(o, open(path, O_RDONLY), other_folder);
}

static void close_file(struct opened *o)
{
	chain_free(o->chain);
	context_free(o->c);
	context_reader_free(o->r);
	close(o->fd);
	report_clear();
}

static void each_file(void **state)
{
	struct memory m;
	struct opened o;

	(void)state;
	make_chain();
	for (unsigned int file = 0; file < FILES; file++) {
		assert_int_equal(open_file(&o, file, NULL), 0);
		assert_int_equal(read_memory(o.r, o.chain, &m), 0);
		check_pages(&m, &states[file]);
		if (o.chain)
			assert_int_equal(chain_verify(o.chain), 0);
		close_file(&o);
	}
	assert_true(superseded);
	remove_chain();
}

/* The file that a merge writes needs no other, and has no features. */
static void merged(void **state)
{
	struct memory m;
	struct opened o;

	(void)state;
	make_chain();
	for (unsigned int how = CONTEXT_RAW; how <= CONTEXT_ZSTD; how++) {
		int fd = memfd_create("merged", MFD_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(open_file(&o, FILES - 1, NULL), 0);
		assert_int_equal(merge_write(o.r, o.c, o.chain, how, fd), 0);
		close_file(&o);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(open_fd(&o, fd, NULL), 0);
		assert_null(o.chain);
		assert_int_equal(context_reader_features(o.r), 0);
		assert_int_equal(read_memory(o.r, NULL, &m), 0);
		check_pages(&m, &states[FILES - 1]);
		close_file(&o);
	}
	remove_chain();
}

static void refused(unsigned int file, int err, const char *text)
{
	struct memory m;
	struct opened o;
	int got = open_file(&o, file, NULL);

	if (!got)
		got = read_memory(o.r, o.chain, &m);
	assert_int_equal(got, err);
	assert_non_null(strstr(report_message(), text));
	close_file(&o);
}

static void missing_and_renamed(void **state)
{
	char from[64], to[64], other[80];
	struct memory m;
	struct opened o;

	(void)state;
	make_chain();
	path_of(from, sizeof(from), 3);
	snprintf(to, sizeof(to), "%s/any", folder);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(open_file(&o, FILES - 1, NULL), 0);
	assert_int_equal(read_memory(o.r, o.chain, &m), 0);
	check_pages(&m, &states[FILES - 1]);
	close_file(&o);

	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(mkdir(other, 0700), 0);
	snprintf(other, sizeof(other), "%s/other/any", folder);
	assert_int_equal(rename(to, other), 0);
	refused(FILES - 1, -ENOENT, "needs the older file member.3 (id ");
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(open_file(&o, FILES - 1, other), 0);
	close_file(&o);

	/* Another file under its name; a link is not followed. */
	write_file(3);
	refused(FILES - 1, -EINVAL, "member.3 is not the file that it continues");
	assert_int_equal(unlink(from), 0);
	assert_int_equal(symlink("other/any", from), 0);
	refused(FILES - 1, -EINVAL, "member.3 is not the file that it continues");
	remove_chain();
}

static void truncated(void **state)
{
	char path[64];

	(void)state;
	make_chain();
	path_of(path, sizeof(path), 0);
	assert_int_equal(truncate(path, states[0].name.trailer_position + 64), 0);
	refused(1, -EINVAL, "member.0 is truncated or damaged");
	assert_int_equal(truncate(path, 4096), 0);
	refused(FILES - 1, -EINVAL, "member.0 is truncated or damaged");
	remove_chain();
}

/* One bit of any member, wherever it is: noticed before the end, or of no consequence. */
static void flipped(void **state)
{
	const unsigned int last = FILES - 1;
	struct memory m;
	struct opened o;

	(void)state;
	make_chain();
	for (unsigned int file = 0; file < FILES; file++) {
		off_t length = states[file].name.trailer_position;
		char path[64], byte;
		int fd;

		path_of(path, sizeof(path), file);
		fd = open(path, O_RDWR);
		assert_true(fd >= 0);
		for (off_t at = file; at < length; at += length / 97) {
			assert_int_equal(pread(fd, &byte, 1, at), 1);
			byte ^= 8;
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
			if (!open_file(&o, last, NULL) && !read_memory(o.r, o.chain, &m))
				check_pages(&m, &states[last]);
			else
				assert_non_null(report_message());
			assert_true(file == last || !o.chain || chain_verify(o.chain));
			close_file(&o);
			byte ^= 8;
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		close(fd);
	}
	remove_chain();
}

/* Tables that are well-formed and wrong. */
static void wrong_tables(void **state)
{
	const unsigned int last = FILES - 1;
	struct state before;

	(void)state;
	make_chain();
	before = states[last];
	lie = 1 + last;
	write_file(last);
	refused(last, -EINVAL, "pages of an unknown ancestor");
	lie = 0;
	twice = true;
	write_file(last);
	refused(last, -EINVAL, "its tables describe a page twice");
	twice = false;
	/* A page that nobody has written. */
	for (unsigned int i = 0; i < PAGES; i++) {
		if (states[0].page[i])
			continue;
		states[last].page[i] = 1;
		states[last].owner[i] = 0;
	}
	write_file(last);
	refused(last, -EINVAL, "pages that are needed");
	states[last] = before;
	remove_chain();
}

/* Some pages of two processes, in tables that come in any order. */
static void add_some(struct page_map *m, int32_t pid, uint64_t first)
{
	const struct kcr_run run[] = { { first * CONTEXT_PAGE, 3 }, { (first + 3) * CONTEXT_PAGE, 1 },
				       { (first + 6) * CONTEXT_PAGE, 2 } };
	const struct context_hash hash[6] = { { first, 0 } };
	const uint16_t owner[6] = { 0, 1, 2, 3, 4, 5 };

	assert_int_equal(page_map_add(m, &(struct context_item) {
		.type = CONTEXT_TABLE, .pid = pid, .runs = run, .nr_runs = 3, .nr_pages = 6,
		.hash = hash, .owner = owner,
	}), 0);
}

/* A span says the same as its pages one by one. */
static void spans(void **state)
{
	struct page_map *m = page_map_new();

	(void)state;
	assert_non_null(m);
	add_some(m, 7, 20);
	add_some(m, 7, 2);
	add_some(m, 5, 10);
	assert_int_equal(page_map_finish(m, "spans"), 0);
	for (int32_t pid = 4; pid <= 8; pid++)
		for (uint64_t first = 0; first < 40; first++) {
			page_cursor cursor = 0, other = 0;
			size_t page;
			uint64_t n = page_map_span(m, &cursor, pid, first * CONTEXT_PAGE, 30, &page);

			assert_in_range(n, 1, 30);
			for (uint64_t i = 0; i < n; i++) {
				size_t one = page_map_find(m, &other, pid, (first + i) * CONTEXT_PAGE);

				assert_int_equal(one, page == SIZE_MAX ? SIZE_MAX : page + i);
				if (one != SIZE_MAX)
					assert_int_equal(page_map_owners(m, page)[i], page_map_owner(m, one));
			}
			if (page == SIZE_MAX && n < 30)
				assert_int_not_equal(page_map_find(m, &other, pid, (first + n) *
								   CONTEXT_PAGE), SIZE_MAX);
		}
	page_map_free(m);
	m = page_map_new();
	assert_non_null(m);
	for (size_t page = 0; page != SIZE_MAX;)
		assert_int_equal(page_map_span(m, &(page_cursor){ 0 }, 1, 0, 9, &page), 9);
	page_map_free(m);
}

/* Tables that nobody wants are jumped over, and what comes behind them is found. */
static void skimmed(void **state)
{
	const unsigned int file = FILES - 1;
	Kcr__Ancestor self = KCR__ANCESTOR__INIT;
	struct context_reader *r;
	struct context_item item;
	size_t count = 0;
	char path[64];
	int fd, more;

	(void)state;
	make_chain();
	path_of(path, sizeof(path), file);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(context_reader_new(&r, fd, path), 0);
	context_reader_skim(r, CONTEXT_SKIM_PAGES);
	for (; (more = context_read(r, &item)) > 0; count++)
		assert_int_equal(item.type, CONTEXT_MEMORY);
	assert_int_equal(more, 0);
	assert_int_equal(count, 1);
	context_reader_identity(r, &self);
	assert_int_equal(self.trailer_position, states[file].name.trailer_position);
	assert_int_equal(self.trailer_sum, states[file].name.trailer_sum);
	context_reader_free(r);
	close(fd);
	remove_chain();
}

/* Features and what the file has must agree. */
static void features(void **state)
{
	static const uint64_t wrong[] = {
		0, CONTEXT_HAS_ANCESTORS, CONTEXT_HAS_TABLES | CONTEXT_HAS_ANCESTORS, 4,
	};

	(void)state;
	make_chain();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		int fd = memfd_create("wrong", MFD_CLOEXEC), err;
		struct context_writer *w;
		struct sample sample;
		struct memory m;
		struct opened o;

		sample_make(&sample);
		assert_int_equal(context_writer_new(&w, fd, wrong[i]), 0);
		assert_int_equal(sample_write_metadata(&sample, w), 0);
		write_table(w, &states[0]);
		assert_int_equal(context_writer_finish(w), 0);
		context_writer_free(w);
		sample_free(&sample);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		err = open_fd(&o, fd, NULL);
		if (!err)
			err = read_memory(o.r, o.chain, &m);
		assert_int_equal(err, -EINVAL);
		assert_non_null(report_message());
		close_file(&o);
	}
	remove_chain();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_file), cmocka_unit_test(merged),
		cmocka_unit_test(missing_and_renamed), cmocka_unit_test(truncated),
		cmocka_unit_test(flipped), cmocka_unit_test(wrong_tables),
		cmocka_unit_test(features), cmocka_unit_test(spans), cmocka_unit_test(skimmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
