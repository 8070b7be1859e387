// SPDX-License-Identifier: GPL-2.0
/*
 * Pages stored as others that they are equal to: they are found whatever their number and place,
 * their sections are read, and refused wherever a restart could not do what they say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "checkpoint/duplicates.h"
#include "image/originals.h"
#include "image/section.h"
#include "report/report.h"
#include "restart/duplicates.h"
#include "sample.h"

#define HEAP(n)	(SAMPLE_HEAP + CONTEXT_PAGE * (n))
#define CHUNKS	40u		/* more pages than the first table has room for */

static struct sample sample;

/* ---- finding them ------------------------------------------------------------------------ */

static uint8_t pages[CONTEXT_CHUNK_BYTES];

/* Page i of the chunk is of this kind. */
static void fill(uint64_t i, uint64_t kind)
{
	uint64_t *word = (uint64_t *)(pages + i * CONTEXT_PAGE);

	for (size_t k = 0; k < CONTEXT_PAGE / sizeof(*word); k++)
		word[k] = kind * 3 + k;
}

/* Of a full chunk at this address; how many are kept. */
static uint64_t sift(struct duplicates *d, int32_t pid, uint64_t address)
{
	static struct page_table table;
	struct page_sieve *sieve = duplicates_sieve(d);
	const struct kcr_run run[] = {
		{ address, 1000 }, { address + 2000 * CONTEXT_PAGE, CONTEXT_CHUNK_PAGES - 1000 },
	};
	const struct context_chunk chunk = {
		.pid = pid, .runs = run, .nr_runs = 2, .nr_pages = CONTEXT_CHUNK_PAGES, .data = pages,
	};
	bool keep[CONTEXT_CHUNK_PAGES];
	uint64_t kept = 0;

	memset(keep, true, sizeof(keep));
	assert_int_equal(sieve->ops->sift(sieve, &chunk, keep, &table), 0);
	assert_int_equal(table.table.nr_pages, 0);
	for (size_t i = 0; i < CONTEXT_CHUNK_PAGES; i++)
		kept += keep[i];
	return kept;
}

static int written(struct duplicates *d)
{
	int fd = memfd_create("context", MFD_CLOEXEC);
	struct context_writer *w;

	assert_true(fd >= 0);
	assert_int_equal(context_writer_new(&w, fd, CONTEXT_HAS_DUPLICATES), 0);
	assert_int_equal(sample_write_metadata(&sample, w), 0);
	assert_int_equal(duplicates_write(d, w), 0);
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static uint64_t address_of(uint64_t page)
{
	return (1ull << 32) + page * CONTEXT_PAGE * 4;
}

/* Each page of the second process is the one of the first that is as far from its beginning. */
static void check_section(const struct context_item *item, uint64_t *count)
{
	const struct context_original *o = item->original;

	assert_int_equal(item->type, CONTEXT_DUPLICATES);
	assert_int_equal(item->pid, 2);
	for (size_t i = 0; i < item->nr_runs; i++)
		for (uint64_t k = 0; k < item->runs[i].nr_pages; k++, o++) {
			assert_int_equal(o->pid, 1);
			assert_int_equal(o->reserved, 0);
			assert_int_equal(o->address + CONTEXT_PAGE,
					 item->runs[i].address + k * CONTEXT_PAGE);
		}
	*count += item->nr_pages;
}

static void are_found(void **state)
{
	struct duplicates *d = duplicates_new();
	struct context_reader *r;
	struct context_item item;
	uint64_t count = 0;
	int fd, more;

	(void)state;
	assert_non_null(d);
	for (uint64_t c = 0; c < 2 * CHUNKS; c++) {
		uint64_t place = address_of(c % CHUNKS * CONTEXT_CHUNK_PAGES);
		bool second = c >= CHUNKS;

		for (uint64_t i = 0; i < CONTEXT_CHUNK_PAGES; i++)
			fill(i, c % CHUNKS * CONTEXT_CHUNK_PAGES + i);
		assert_int_equal(sift(d, second ? 2 : 1, place + (second ? CONTEXT_PAGE : 0)),
				 second ? 0 : CONTEXT_CHUNK_PAGES);
	}
	assert_int_equal(duplicates_count(d), CHUNKS * CONTEXT_CHUNK_PAGES);
	fd = written(d);
	duplicates_free(d);
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	while ((more = context_read(r, &item)) > 0)
		if (item.message)
			protobuf_c_message_free_unpacked(item.message, NULL);
		else
			check_section(&item, &count);
	assert_int_equal(more, 0);
	assert_int_equal(count, CHUNKS * CONTEXT_CHUNK_PAGES);
	context_reader_free(r);
	close(fd);
}

static void are_found_in_a_chunk(void **state)
{
	struct duplicates *d = duplicates_new();

	(void)state;
	assert_non_null(d);
	for (uint64_t i = 0; i < CONTEXT_CHUNK_PAGES; i++)
		fill(i, i % 7);
	assert_int_equal(sift(d, 1, address_of(0)), 7);
	assert_int_equal(sift(d, 1, address_of(9000)), 0);
	duplicates_free(d);
}

/* A page at address 0 is one like others. */
static void are_found_at_the_beginning(void **state)
{
	struct duplicates *d = duplicates_new();
	struct context_reader *r;
	struct context_item item;
	int fd;

	(void)state;
	assert_non_null(d);
	for (uint64_t i = 0; i < CONTEXT_CHUNK_PAGES; i++)
		fill(i, i);
	assert_int_equal(sift(d, 1, address_of(0)), CONTEXT_CHUNK_PAGES);
	assert_int_equal(sift(d, 2, 0), 0);
	fd = written(d);
	duplicates_free(d);
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	while (context_read(r, &item) > 0 && item.message)
		protobuf_c_message_free_unpacked(item.message, NULL);
	assert_int_equal(item.type, CONTEXT_DUPLICATES);
	assert_int_equal(item.nr_runs, 2);
	assert_int_equal(item.runs[0].address, 0);
	assert_int_equal(item.runs[0].nr_pages, 1000);
	context_reader_free(r);
	close(fd);
}

static void are_not_looked_for(void **state)
{
	(void)state;
	assert_null(duplicates_sieve(NULL));
	assert_int_equal(duplicates_count(NULL), 0);
	assert_int_equal(duplicates_write(NULL, NULL), 0);
	duplicates_free(NULL);
}

/* ---- reading them ------------------------------------------------------------------------- */

/* What a file has after the metadata: of type 0 nothing more. */
struct section {
	enum context_section type;
	struct kcr_run run;
	struct context_original original[2];
};

static int write_section(struct context_writer *w, const struct section *s)
{
	static uint8_t data[4 * CONTEXT_PAGE];

	assert_true(s->run.nr_pages <= 4);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = s->run.address / CONTEXT_PAGE + i / CONTEXT_PAGE;
	if (s->type == CONTEXT_DUPLICATES)
		return context_write_duplicates(w, SAMPLE_PID, &s->run, 1, s->original);
	return context_write_chunk(w, &(struct context_chunk) {
		.pid = SAMPLE_PID, .runs = &s->run, .nr_runs = 1, .data = data,
		.length = s->run.nr_pages * CONTEXT_PAGE,
		.sum = XXH64(data, s->run.nr_pages * CONTEXT_PAGE, 0),
	});
}

static struct context_reader *begin(uint64_t features, const struct section *s, struct context **c,
				    int *result)
{
	int fd = memfd_create("context", MFD_CLOEXEC);
	struct context_reader *r = NULL;
	struct context_writer *w;

	assert_true(fd >= 0);
	assert_int_equal(context_writer_new(&w, fd, features), 0);
	assert_int_equal(sample_write_metadata(&sample, w), 0);
	for (; s->type; s++)
		assert_int_equal(write_section(w, s), 0);
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
	lseek(fd, 0, SEEK_SET);
	report_clear();
	*c = NULL;
	*result = context_reader_new(&r, fd, "image");
	if (!*result)
		*result = context_load(r, c);
	if (*result)
		close(fd);
	return r;
}

static void end(struct context_reader *r, struct context *c)
{
	close(context_reader_fd(r));
	context_free(c);
	context_reader_free(r);
}

static const struct section good[] = {
	{ CONTEXT_MEMORY, { HEAP(0), 3 }, { { 0 } } },
	{ CONTEXT_MEMORY, { SAMPLE_STACK, 1 }, { { 0 } } },
	{ CONTEXT_DUPLICATES, { HEAP(4), 2 }, { { HEAP(2), SAMPLE_PID, 0 },
						{ SAMPLE_STACK, SAMPLE_PID, 0 } } },
	{ CONTEXT_DUPLICATES, { HEAP(6), 1 }, { { HEAP(2), SAMPLE_PID, 0 } } },
	{ 0 },
};

/* Notes what arrives. */
static int put(void *arg, uint64_t address, const void *page)
{
	uint8_t *got = arg;

	got[(address - SAMPLE_HEAP) / CONTEXT_PAGE] = *(const uint8_t *)page;
	return 0;
}

static int read_to_end(struct context_reader *r, struct originals *o)
{
	struct context_item item;
	int more;

	while ((more = context_read(r, &item)) > 0)
		if (item.type == CONTEXT_DUPLICATES)
			assert_int_equal(originals_note(o, &item), 0);
	return more;
}

static void are_read(void **state)
{
	struct originals o = { 0 };
	uint8_t got[16] = { 0 };
	struct context *c;
	int result;
	struct context_reader *r = begin(CONTEXT_HAS_DUPLICATES, good, &c, &result);

	(void)state;
	assert_int_equal(result, 0);
	assert_int_equal(read_to_end(r, &o), 0);
	assert_int_equal(originals_read(&o, r, put, got), 0);
	assert_int_equal(got[4], (uint8_t)(HEAP(2) / CONTEXT_PAGE));
	assert_int_equal(got[5], (uint8_t)(SAMPLE_STACK / CONTEXT_PAGE));
	assert_int_equal(got[6], got[4]);
	assert_int_equal(got[7], 0);
	originals_free(&o);
	end(r, c);
}

static void need_their_originals(void **state)
{
	static const struct section missing[] = {
		{ CONTEXT_MEMORY, { HEAP(0), 2 }, { { 0 } } },
		{ CONTEXT_DUPLICATES, { HEAP(6), 1 }, { { HEAP(2), SAMPLE_PID, 0 } } },
		{ 0 },
	};
	struct originals o = { 0 };
	uint8_t got[16];
	struct context *c;
	int result;
	struct context_reader *r = begin(CONTEXT_HAS_DUPLICATES, missing, &c, &result);

	(void)state;
	assert_int_equal(result, 0);
	assert_int_equal(read_to_end(r, &o), 0);
	assert_int_equal(originals_read(&o, r, put, got), -EINVAL);
	assert_non_null(strstr(report_message(), "not there"));
	originals_free(&o);
	end(r, c);
}

/* They end the pages of the file, and are left to who asks for them. */
static void are_no_chunks(void **state)
{
	struct context_page_source source;
	struct context_chunk chunk;
	struct context_item item;
	struct context *c;
	int result;
	struct context_reader *r = begin(CONTEXT_HAS_DUPLICATES, good, &c, &result);

	(void)state;
	assert_int_equal(result, 0);
	context_page_source(&source, r);
	assert_int_equal(source.source.ops->next(&source.source, &chunk), 1);
	assert_int_equal(source.source.ops->next(&source.source, &chunk), 1);
	assert_int_equal(source.source.ops->next(&source.source, &chunk), 0);
	assert_int_equal(context_read(r, &item), 1);
	assert_int_equal(item.type, CONTEXT_DUPLICATES);
	assert_int_equal(item.nr_pages, 2);
	end(r, c);
}

static int result_of(uint64_t features, const struct section *s)
{
	struct originals o = { 0 };
	struct context *c;
	int result;
	struct context_reader *r = begin(features, s, &c, &result);

	if (!result)
		result = read_to_end(r, &o);
	originals_free(&o);
	if (c)
		end(r, c);
	else
		context_reader_free(r);
	return result;
}

static void are_refused(void **state)
{
	static const struct {
		const char *why;
		uint64_t features;
		struct section section[3];
	} bad[] = {
		{ "wrong place", 0, { { CONTEXT_DUPLICATES, { HEAP(0), 1 }, { { HEAP(1), SAMPLE_PID, 0 } } } } },
		{ "wrong place", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_DUPLICATES, { HEAP(0), 1 }, { { HEAP(1), SAMPLE_PID, 0 } } },
		    { CONTEXT_MEMORY, { HEAP(1), 1 }, { { 0 } } } } },
		{ "of other files", CONTEXT_HAS_DUPLICATES | CONTEXT_HAS_TABLES, { { 0 } } },
		{ "cannot be", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_DUPLICATES, { HEAP(0), 1 }, { { HEAP(1), SAMPLE_ZOMBIE_PID, 0 } } } } },
		{ "cannot be", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_MEMORY, { HEAP(1), 1 }, { { 0 } } },
		    { CONTEXT_DUPLICATES, { HEAP(0), 1 }, { { HEAP(1), 1, 0 } } } } },
		{ "cannot be", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_DUPLICATES, { HEAP(0), 1 }, { { HEAP(1), SAMPLE_PID, 1 } } } } },
		{ "cannot be", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_DUPLICATES, { HEAP(0), 1 }, { { HEAP(1) + 8, SAMPLE_PID, 0 } } } } },
		{ "cannot be", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_DUPLICATES, { HEAP(0), 2 }, { { HEAP(3), SAMPLE_PID, 0 },
							    { HEAP(16), SAMPLE_PID, 0 } } } } },
		{ "outside", CONTEXT_HAS_DUPLICATES,
		  { { CONTEXT_DUPLICATES, { HEAP(15), 2 }, { { HEAP(3), SAMPLE_PID, 0 },
							     { HEAP(4), SAMPLE_PID, 0 } } } } },
	};

	(void)state;
	assert_int_equal(result_of(CONTEXT_HAS_DUPLICATES, good), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(result_of(bad[i].features, bad[i].section), -EINVAL);
		if (!strstr(report_message(), bad[i].why))
			fail_msg("%zu: %s instead of %s", i, report_message(), bad[i].why);
	}
}

/* What a program's userfaultfd has to give cannot be read back. */
static void of_userfaultfds_are_refused(void **state)
{
	Kcr__UserFaultRange range = KCR__USER_FAULT_RANGE__INIT, *ranges = &range;
	struct context_item item = { .pid = SAMPLE_PID, .nr_pages = 1, .original = good[3].original };
	Kcr__Mm *mm;
	struct context_reader *r;
	struct context *c;
	int result;

	(void)state;
	r = begin(CONTEXT_HAS_DUPLICATES, good, &c, &result);
	assert_int_equal(result, 0);
	assert_null(check_originals(c, &item));
	mm = context_process(c, SAMPLE_PID)->mm;
	mm->n_user_fault = 1;
	mm->user_fault = &ranges;
	assert_non_null(check_originals(c, &item));
	mm->n_user_fault = 0;
	mm->user_fault = NULL;
	end(r, c);
}

static void need_a_module_that_copies_them(void **state)
{
	static const struct section none[] = { { 0 } };
	const struct kcr_info old = { .features = KCR_FEATURE_READ_BACK - 1 };
	const struct kcr_info now = { .features = KCR_FEATURE_READ_BACK };
	struct context *c;
	int result;
	struct context_reader *r = begin(CONTEXT_HAS_DUPLICATES, good, &c, &result);

	(void)state;
	assert_int_equal(duplicates_check(r, &old), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), "older"));
	assert_int_equal(duplicates_check(r, &now), 0);
	end(r, c);
	r = begin(0, none, &c, &result);
	assert_int_equal(duplicates_check(r, &old), 0);
	end(r, c);
}

static int set_up(void **state)
{
	(void)state;
	sample_make(&sample);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sample_free(&sample);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_found),
		cmocka_unit_test(are_found_in_a_chunk),
		cmocka_unit_test(are_found_at_the_beginning),
		cmocka_unit_test(are_not_looked_for),
		cmocka_unit_test(are_read),
		cmocka_unit_test(need_their_originals),
		cmocka_unit_test(are_no_chunks),
		cmocka_unit_test(are_refused),
		cmocka_unit_test(of_userfaultfds_are_refused),
		cmocka_unit_test(need_a_module_that_copies_them),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
