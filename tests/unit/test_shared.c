// SPDX-License-Identifier: GPL-2.0
/*
 * Pages stored once for several processes: SHARED sections are read with the memory that
 * follows them, and refused wherever a restart could not do what they say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/pages.h"
#include "report/report.h"
#include "sample.h"

#define OTHER	SAMPLE_SHARING_PID	/* here with an address space of its own */
#define HEAP(n)	(SAMPLE_HEAP + CONTEXT_PAGE * (n))
#define PAGES	6

static struct sample sample;
static Kcr__Mm other_mm;
static Kcr__Vma other_heap;
static Kcr__Vma *other_vma[8];

/* What a file has after the metadata. */
struct section {
	enum context_section type;
	int32_t pid;
	struct kcr_run run[3];
};

static int write_section(struct context_writer *w, const struct section *s)
{
	static uint8_t data[PAGES * CONTEXT_PAGE];
	size_t n = 0, pages = 0;

	while (n < 3 && s->run[n].nr_pages)
		pages += s->run[n++].nr_pages;
	assert_true(pages <= PAGES);
	if (s->type == CONTEXT_SHARED)
		return context_write_sharer(w, &(struct context_sharer){ s->pid, s->run, n });
	return context_write_chunk(w, &(struct context_chunk) {
		.pid = s->pid, .runs = s->run, .nr_runs = n, .data = data,
		.length = pages * CONTEXT_PAGE, .sum = XXH64(data, pages * CONTEXT_PAGE, 0),
	});
}

/* A file with these sections, up to one of type 0. */
static int make(uint64_t features, const struct section *s)
{
	int fd = memfd_create("context", MFD_CLOEXEC);
	struct context_writer *w;

	assert_true(fd >= 0);
	assert_int_equal(context_writer_new(&w, fd, features), 0);
	assert_int_equal(sample_write_metadata(&sample, w), 0);
	for (; s->type; s++)
		assert_int_equal(write_section(w, s), 0);
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int result_of(uint64_t features, const struct section *s, size_t *nr_sharers)
{
	int fd = make(features, s);
	struct context_reader *r;
	struct context_item item;
	struct context *c;
	int result;

	*nr_sharers = 0;
	report_clear();
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	result = context_load(r, &c);
	if (!result) {
		while ((result = context_read(r, &item)) > 0)
			*nr_sharers += item.nr_sharers;
		context_free(c);
	}
	context_reader_free(r);
	close(fd);
	return result;
}

static void are_read(void **state)
{
	static const struct section good[] = {
		{ CONTEXT_SHARED, OTHER, { { HEAP(1), 1 }, { HEAP(8), 2 } } },
		{ CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 2 }, { HEAP(8), 4 } } },
		{ CONTEXT_SHARED, SAMPLE_PID, { { HEAP(3), 3 } } },
		{ CONTEXT_MEMORY, OTHER, { { HEAP(3), 1 }, { HEAP(4), 2 } } },
		{ CONTEXT_MEMORY, OTHER, { { SAMPLE_STACK, 1 } } },
		{ 0 },
	};
	size_t nr_sharers;

	(void)state;
	assert_int_equal(result_of(CONTEXT_HAS_SHARED, good, &nr_sharers), 0);
	assert_int_equal(nr_sharers, 2);
}

static void say_whose_pages(void **state)
{
	static const struct section good[] = {
		{ CONTEXT_SHARED, OTHER, { { HEAP(1), 1 }, { HEAP(8), 2 } } },
		{ CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 2 }, { HEAP(8), 4 } } },
		{ 0 },
	};
	int fd = make(CONTEXT_HAS_SHARED, good);
	struct context_reader *r;
	struct context_item item;
	struct context *c;

	(void)state;
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), 0);
	assert_int_equal(context_read(r, &item), 1);
	assert_int_equal(item.type, CONTEXT_MEMORY);
	assert_int_equal(item.pid, SAMPLE_PID);
	assert_int_equal(item.nr_sharers, 1);
	assert_int_equal(item.sharer->pid, OTHER);
	assert_int_equal(item.sharer->nr_runs, 2);
	assert_memory_equal(item.sharer->runs, good[0].run, 2 * sizeof(struct kcr_run));
	assert_int_equal(context_read(r, &item), 0);
	assert_int_equal(item.nr_sharers, 0);
	context_free(c);
	context_reader_free(r);
	close(fd);
}

static void are_refused(void **state)
{
	static const struct {
		const char *why;
		struct section section[4];
	} bad[] = {
		{ "impossible process", { { CONTEXT_SHARED, SAMPLE_PID, { { HEAP(0), 1 } } },
					  { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 } } } } },
		{ "unknown process", { { CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } },
				       { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 } } },
				       { CONTEXT_SHARED, SAMPLE_ZOMBIE_PID, { { HEAP(3), 1 } } } } },
		{ "not in order", { { CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } },
				    { CONTEXT_SHARED, SAMPLE_PID, { { HEAP(0), 1 } } } } },
		{ "not in order", { { CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } },
				    { CONTEXT_SHARED, OTHER, { { HEAP(1), 1 } } } } },
		{ "not there", { { CONTEXT_SHARED, OTHER, { { HEAP(1), 2 } } },
				 { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 2 } } } } },
		{ "not there", { { CONTEXT_SHARED, OTHER, { { HEAP(0), 1 }, { HEAP(2), 1 } } },
				 { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 }, { HEAP(3), 1 } } } } },
		{ "without their memory", { { CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } } } },
		{ "after others", { { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 } } },
				    { CONTEXT_SHARED, OTHER, { { HEAP(3), 1 } } },
				    { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(3), 1 } } } } },
		/* A stack. */
		{ "can be shared", { { CONTEXT_SHARED, OTHER, { { SAMPLE_STACK, 1 } } },
				     { CONTEXT_MEMORY, SAMPLE_PID, { { SAMPLE_STACK, 1 } } } } },
		/* The page after it is not in the same kind of mapping. */
		{ "can be shared", { { CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } },
				     { CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 },
								     { SAMPLE_STACK, 1 } } } } },
		{ "malformed memory runs", { { CONTEXT_SHARED, OTHER, { { HEAP(0) + 1, 1 } } } } },
	};
	size_t nr_sharers;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(result_of(CONTEXT_HAS_SHARED, bad[i].section, &nr_sharers), -EINVAL);
		if (!strstr(report_message(), bad[i].why))
			fail_msg("%zu: %s instead of %s", i, report_message(), bad[i].why);
	}
}

/* MAP_NORESERVE cannot be given to memory later. */
static void of_another_kind_are_refused(void **state)
{
	static const struct section shared[] = {
		{ CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } },
		{ CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 } } },
		{ 0 },
	};
	size_t nr_sharers;

	(void)state;
	other_heap.flags |= KCR_VMA_NORESERVE;
	assert_int_equal(result_of(CONTEXT_HAS_SHARED, shared, &nr_sharers), -EINVAL);
	assert_non_null(strstr(report_message(), "can be shared"));
	other_heap.flags &= ~KCR_VMA_NORESERVE;
	assert_int_equal(result_of(CONTEXT_HAS_SHARED, shared, &nr_sharers), 0);
	/* Older releases would not know of it. */
	assert_int_equal(result_of(0, shared, &nr_sharers), -EINVAL);
	assert_non_null(strstr(report_message(), "wrong place"));
}

/* Where each process gets its own pages they can't be. */
static void are_no_chunks(void **state)
{
	static const struct section shared[] = {
		{ CONTEXT_SHARED, OTHER, { { HEAP(0), 1 } } },
		{ CONTEXT_MEMORY, SAMPLE_PID, { { HEAP(0), 1 } } },
		{ 0 },
	};
	int fd = make(CONTEXT_HAS_SHARED, shared);
	struct context_page_source source;
	struct context_chunk chunk;
	struct context_reader *r;
	struct context *c;

	(void)state;
	report_clear();
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), 0);
	context_page_source(&source, r);
	assert_int_equal(source.source.ops->next(&source.source, &chunk), -EINVAL);
	assert_non_null(strstr(report_message(), "where none can be"));
	context_free(c);
	context_reader_free(r);
	close(fd);
}

static int setup(void **state)
{
	Kcr__Mm *mm;

	(void)state;
	sample_make(&sample);
	mm = sample.process[0].mm;
	other_mm = *mm;
	other_mm.id = mm->id + 1;
	other_mm.pid = OTHER;
	other_mm.vma = other_vma;
	memcpy(other_vma, mm->vma, mm->n_vma * sizeof(*other_vma));
	for (size_t i = 0; i < mm->n_vma; i++)
		if (other_vma[i]->start == SAMPLE_HEAP) {
			other_heap = *other_vma[i];
			other_vma[i] = &other_heap;
		}
	sample.process[1].mm = &other_mm;
	sample.process[1].mm_id = other_mm.id;
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
		cmocka_unit_test(are_read),
		cmocka_unit_test(say_whose_pages),
		cmocka_unit_test(are_refused),
		cmocka_unit_test(of_another_kind_are_refused),
		cmocka_unit_test(are_no_chunks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
