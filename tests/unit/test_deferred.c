// SPDX-License-Identifier: GPL-2.0
/*
 * Chunks that are left in their file: several threads read them in any order, from one descriptor,
 * of a file that begins somewhere in it; and which mappings they are left for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/deferred.h"
#include "image/pages.h"
#include "report/report.h"
#include "sample.h"

#define BASE	100
#define THREADS	4
#define ROUNDS	200u

static int fd;
static struct context_reader *reader;
static struct context *context;
static struct deferred *deferred;

static bool add(void *arg, const struct context_chunk *chunk)
{
	(void)arg;
	assert_int_equal(deferred_add(deferred, chunk), 0);
	return true;
}

/* The sample, with all its memory deferred. */
static int setup(void **state)
{
	struct context_item item;
	struct sample sample;

	(void)state;
	fd = memfd_create("sample", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, BASE), 0);
	assert_int_equal(lseek(fd, BASE, SEEK_SET), BASE);
	sample_make(&sample);
	assert_int_equal(sample_write(&sample, fd), 0);
	sample_free(&sample);
	assert_int_equal(lseek(fd, BASE, SEEK_SET), BASE);
	assert_int_equal(context_reader_new(&reader, fd, "sample"), 0);
	assert_int_equal(context_load(reader, &context), 0);
	do
		assert_int_equal(context_read(reader, &item), 1);
	while (item.type == CONTEXT_CONTENT);
	context_unread(reader);
	context_reader_skim(reader, CONTEXT_SKIM_TABLES);
	assert_int_equal(deferred_new(&deferred, reader, "sample", NULL, NULL), 0);
	assert_int_equal(chain_move(&(struct pages_flow){ .work = PAGES_DECODE, .defer = add }, reader,
				    NULL), 0);
	assert_int_equal(deferred_finish(deferred), 0);
	assert_true(deferred_count(deferred) > 2);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	deferred_free(deferred);
	context_free(context);
	context_reader_free(reader);
	close(fd);
	report_clear();
	return 0;
}

static void check_chunk(struct deferred_reader *r, size_t index, char *buffer)
{
	const struct deferred_chunk *chunk = deferred_at(deferred, index);
	const char *page = buffer;

	assert_int_equal(deferred_load(r, chunk, buffer), 0);
	for (size_t i = 0; i < chunk->nr_runs; i++)
		for (uint64_t k = 0; k < chunk->runs[i].nr_pages; k++, page += CONTEXT_PAGE) {
			uint64_t address = chunk->runs[i].address + k * CONTEXT_PAGE;

			assert_int_equal(deferred_find(deferred, chunk->pid, address), index);
			for (size_t at = 0; at < CONTEXT_PAGE; at += 61)
				assert_int_equal((uint8_t)page[at], sample_byte(address, at));
		}
}

static void *read_all(void *arg)
{
	struct deferred_reader *r = deferred_reader_new(deferred);
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	char *buffer = malloc(CONTEXT_CHUNK_BYTES);

	assert_true(r && buffer);
	for (unsigned int i = 0; i < ROUNDS; i++)
		check_chunk(r, rand_r(&seed) % deferred_count(deferred), buffer);
	free(buffer);
	deferred_reader_free(r);
	return NULL;
}

static void several_threads(void **state)
{
	off_t position = lseek(fd, 0, SEEK_CUR);
	pthread_t thread[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, (void *)i), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), position);
}

static void nobody_has_it(void **state)
{
	(void)state;
	assert_true(deferred_find(deferred, SAMPLE_PID, SAMPLE_TEXT) == SIZE_MAX);
	assert_true(deferred_find(deferred, SAMPLE_ZOMBIE_PID, SAMPLE_HEAP) == SIZE_MAX);
	assert_true(deferred_find(deferred, SAMPLE_PID, UINT64_MAX - CONTEXT_PAGE) == SIZE_MAX);
}

/* A bit is wrong: only that chunk is. */
static void damaged(void **state)
{
	const struct deferred_chunk *last = deferred_at(deferred, deferred_count(deferred) - 1);
	struct deferred_reader *r = deferred_reader_new(deferred);
	char *buffer = malloc(CONTEXT_CHUNK_BYTES), byte;
	off_t at = BASE + (off_t)last->position + 64 + 3;

	(void)state;
	assert_true(r && buffer);
	check_chunk(r, 0, buffer);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	check_chunk(r, 0, buffer);
	assert_int_equal(deferred_load(r, last, buffer), -EINVAL);
	assert_non_null(report_message());
	free(buffer);
	deferred_reader_free(r);
}

static void which_suit(void **state)
{
	const uint64_t flags = KCR_VMA_READ | KCR_VMA_WRITE, length = 2 * CONTEXT_CHUNK_BYTES;

	(void)state;
	assert_true(deferred_suits(flags, length));
	assert_true(deferred_suits(KCR_VMA_READ, 1ull << 40));
	assert_false(deferred_suits(flags, length - CONTEXT_PAGE));
	assert_false(deferred_suits(flags | KCR_VMA_LOCKED, length));
	assert_false(deferred_suits(flags | KCR_VMA_LOCKONFAULT, length));
	assert_false(deferred_suits(flags | KCR_VMA_SHARED, length));
	assert_false(deferred_suits(flags | KCR_VMA_HUGETLB, length));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(several_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_has_it, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test(which_suit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
