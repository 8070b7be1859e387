// SPDX-License-Identifier: GPL-2.0
/*
 * The shadow of an image: its description and its identity, whatever the pieces in which
 * the image passes by, and none of its pages.
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
#include <sys/stat.h>
#include <unistd.h>

#include "image/shadow.h"
#include "report/report.h"
#include "sample.h"

static char *image;
static size_t image_length;

static int make_image(void **state)
{
	int fd = memfd_create("image", 0);
	struct sample sample;
	struct stat st;

	(void)state;
	sample_make(&sample);
	if (sample_write(&sample, fd) || fstat(fd, &st))
		return -1;
	sample_free(&sample);
	image_length = st.st_size;
	image = malloc(image_length);
	if (pread(fd, image, image_length, 0) != (ssize_t)image_length)
		return -1;
	close(fd);
	return 0;
}

static int free_image(void **state)
{
	(void)state;
	free(image);
	return 0;
}

/* In pieces of at most so many bytes. */
static int make_shadow(size_t piece, bool *complete)
{
	int err = 0, fd = memfd_create("shadow", 0);
	struct context_shadow *s = context_shadow_new(fd);

	for (size_t at = 0; at < image_length && !err; at += piece) {
		assert_false(context_shadow_is_complete(s));
		err = context_shadow_add(s, image + at,
					 at + piece < image_length ? piece : image_length - at);
	}
	assert_int_equal(err, 0);
	*complete = context_shadow_is_complete(s);
	assert_int_equal(context_shadow_add(s, "x", 1), -EINVAL);
	context_shadow_free(s);
	return fd;
}

static void identify(int fd, Kcr__Ancestor *out, size_t *nr_processes)
{
	struct context_reader *r;
	struct context *c;
	struct context_item item;
	int more;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(context_reader_new(&r, fd, "image"), 0);
	assert_int_equal(context_load(r, &c), 0);
	context_reader_skim(r, CONTEXT_SKIM_TABLES);
	while ((more = context_read(r, &item)) > 0)
		;
	assert_int_equal(more, 0);
	context_reader_identity(r, out);
	*nr_processes = c->nr_processes;
	context_free(c);
	context_reader_free(r);
}

static void is_a_parent(void **state)
{
	const size_t piece[] = { 1, 7, 64, 4096, 100000, 1 << 30 };
	int whole = memfd_create("image", 0);
	size_t processes, found;
	Kcr__Ancestor good;

	(void)state;
	assert_int_equal(write(whole, image, image_length), image_length);
	kcr__ancestor__init(&good);
	identify(whole, &good, &processes);
	for (size_t i = 0; i < sizeof(piece) / sizeof(*piece); i++) {
		Kcr__Ancestor a = KCR__ANCESTOR__INIT;
		bool complete;
		int fd = make_shadow(piece[i], &complete);

		assert_true(complete);
		identify(fd, &a, &found);
		assert_int_equal(found, processes);
		assert_true(a.id == good.id && a.trailer_position == good.trailer_position &&
			    a.trailer_sum == good.trailer_sum);
		close(fd);
	}
	close(whole);
}

/* Whoever takes the shadow for the image is told. */
static void has_no_pages(void **state)
{
	uint64_t digest;
	bool complete;
	int fd = make_shadow(4096, &complete);

	(void)state;
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(sample_read(fd, true, &digest), -EINVAL);
	report_clear();
	close(fd);
}

static void is_no_image(void **state)
{
	char text[4096] = "this is something else";
	int fd = memfd_create("shadow", 0);
	struct context_shadow *s = context_shadow_new(fd);

	(void)state;
	assert_int_equal(context_shadow_add(s, text, sizeof(text)), -EINVAL);
	context_shadow_free(s);
	s = context_shadow_new(fd);
	memcpy(text, image, 64);
	assert_int_equal(context_shadow_add(s, text, 128), -EINVAL);
	assert_false(context_shadow_is_complete(s));
	context_shadow_free(s);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_a_parent), cmocka_unit_test(has_no_pages),
		cmocka_unit_test(is_no_image),
	};

	return cmocka_run_group_tests(tests, make_image, free_image);
}
