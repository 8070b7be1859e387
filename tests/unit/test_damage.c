// SPDX-License-Identifier: GPL-2.0
/*
 * Damaged context files: cut off anywhere, any bit flipped, or made by someone
 * who knows how to make checksums.  Refused with a message, or, where a byte
 * does not matter, read as if nothing had happened.
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

#include "image/section.h"
#include "report/report.h"
#include "sample.h"

static struct sample sample;
static int fd;			/* the sample's context file … */
static uint8_t *image;		/* … and its bytes, which a test may change */
static uint8_t *whole;		/* as they were */
static size_t size;
static uint64_t digest;

/* Reads the file; a refusal has to come with a message. */
static int result(uint64_t *got)
{
	int err;

	report_clear();
	lseek(fd, 0, SEEK_SET);
	err = sample_read(fd, false, got);
	if (err) {
		assert_int_equal(err, -EINVAL);
		assert_non_null(report_message());
	}
	return err;
}

static void expect_refused(const char *why)
{
	uint64_t got;

	assert_int_equal(result(&got), -EINVAL);
	if (!strstr(report_message(), why))
		fail_msg("%s instead of %s", report_message(), why);
}

static void cut_anywhere(void **state)
{
	uint64_t got;
	size_t length;

	(void)state;
	for (length = 0; length < size; length++) {
		assert_int_equal(ftruncate(fd, length), 0);
		assert_int_equal(result(&got), -EINVAL);
		assert_non_null(strstr(report_message(), "truncated"));
		/* Put back what was cut off. */
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(pwrite(fd, whole + length, size - length, length),
				 size - length);
	}
}

/* Where pages are taken past the reader, as the module does. */
static void cut_anywhere_in_taken_pages(void **state)
{
	uint64_t got;
	size_t length;

	(void)state;
	for (length = size - size % 61; length; length -= 61) {
		assert_int_equal(ftruncate(fd, length), 0);
		report_clear();
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(sample_read(fd, true, &got), -EINVAL);
		assert_non_null(strstr(report_message(), "truncated"));
	}
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, whole, size, 0), size);
}

static void bit_flipped_anywhere(void **state)
{
	uint64_t got;
	size_t at;

	(void)state;
	for (at = 0; at < size; at++) {
		image[at] ^= 1 << at % 8;
		assert_int_equal(result(&got), -EINVAL);
		image[at] = whole[at];
	}
	assert_int_equal(result(&got), 0);
	assert_int_equal(got, digest);
}

static void byte_changed_anywhere(void **state)
{
	uint64_t got;
	size_t at;

	(void)state;
	for (at = 0; at < size; at += 31) {
		image[at] = ~whole[at];
		assert_int_equal(result(&got), -EINVAL);
		image[at] = whole[at];
	}
}

static void page_zeroed_anywhere(void **state)
{
	uint64_t got;
	size_t at;

	(void)state;
	for (at = 0; at < size; at += CONTEXT_PAGE) {
		size_t length = size - at < CONTEXT_PAGE ? size - at : CONTEXT_PAGE;

		memset(image + at, 0, length);
		assert_int_equal(result(&got), -EINVAL);
		memcpy(image + at, whole + at, length);
	}
}

/* ---- well-made heads ------------------------------------------------------------- */

static struct context_head *head(void)
{
	return (struct context_head *)image;
}

static void seal_head(void)
{
	head()->sum = context_head_sum(head());
}

static void file_heads(void **state)
{
	(void)state;
	image[0] = 'X';
	expect_refused("not a context file");
	memcpy(image, whole, size);

	head()->version = CONTEXT_VERSION + 1;
	seal_head();
	expect_refused("version 2");
	memcpy(image, whole, size);

	head()->required = 1ull << 40;
	seal_head();
	expect_refused("0x10000000000");
	memcpy(image, whole, size);

	head()->page = 65536;
	seal_head();
	expect_refused("pages of 65536 bytes");
	memcpy(image, whole, size);

	head()->reserved[0] = 1;
	seal_head();
	expect_refused("reserved");
	memcpy(image, whole, size);
}

static void optional_features_are_ignored(void **state)
{
	uint64_t got;

	(void)state;
	head()->optional = ~0ull;
	seal_head();
	assert_int_equal(result(&got), 0);
	assert_int_equal(got, digest);
	memcpy(image, whole, size);
}

/* Sections start anywhere. */
typedef struct section_head section_head __attribute__((aligned(1)));
typedef struct memory_meta memory_meta __attribute__((aligned(1)));
typedef struct content_meta content_meta __attribute__((aligned(1)));
typedef struct kcr_run kcr_run __attribute__((aligned(1)));

/* The first section of a type, and its meta. */
static section_head *find(uint32_t type)
{
	size_t at = sizeof(struct context_head);

	for (;;) {
		section_head *h = (section_head *)(image + at);

		assert_true(at < size);
		if (h->type == type)
			return h;
		at += sizeof(*h) + h->meta_length;
		if (section_has_data(h->type))
			at += section_padding(at) + h->data_length + sizeof(struct section_tail);
	}
}

/* Makes the sums of a section's head and meta right again. */
static void seal(section_head *h)
{
	size_t length = h->meta_length;

	if (section_has_data(h->type))
		length += section_padding((uint8_t *)(h + 1) - image + length);
	if ((uint8_t *)(h + 1) + length <= image + size)
		h->meta_sum = XXH64(h + 1, length, 0);
	h->sum = XXH64(h, offsetof(struct section_head, sum), head()->id);
}

static void expect_section_refused(section_head *h, const char *why)
{
	seal(h);
	expect_refused(why);
	memcpy(image, whole, size);
}

static void section_heads(void **state)
{
	section_head *h = find(CONTEXT_FILE);

	(void)state;
	h->type = 99;
	expect_section_refused(h, "wrong place");
	h->sequence++;
	expect_section_refused(h, "wrong place");
	h->position += 8;
	expect_section_refused(h, "wrong place");
	h->type = CONTEXT_PREAMBLE;
	expect_section_refused(h, "wrong place");
	h->reserved = 1;
	expect_section_refused(h, "unknown kind");
	h->compression = CONTEXT_LZ4;
	expect_section_refused(h, "unknown kind");
	h->data_length = 1;
	expect_section_refused(h, "impossible length");
	h = find(CONTEXT_MEMORY);
	h->compression = 3;
	expect_section_refused(h, "unknown kind");
}

static void huge_lengths(void **state)
{
	section_head *h = find(CONTEXT_PROCESS);

	(void)state;
	h->meta_length = UINT64_MAX;
	expect_section_refused(h, "impossible length");
	h->meta_length = CONTEXT_MESSAGE_MAX;
	expect_section_refused(h, "truncated");
	h = find(CONTEXT_MEMORY);
	h->meta_length = UINT64_MAX;
	expect_section_refused(h, "impossible length");
	h->data_length = UINT64_MAX & ~4095ull;
	expect_section_refused(h, "impossible length");
	h->data_length -= CONTEXT_PAGE;
	expect_section_refused(h, "impossible length");
	h = find(CONTEXT_CONTENT);
	h->data_length = CONTEXT_CONTENT_MAX + 1;
	expect_section_refused(h, "impossible length");
	h->data_length = 0;
	expect_section_refused(h, "impossible length");
}

static void runs(void **state)
{
	section_head *h = find(CONTEXT_MEMORY);
	memory_meta *meta = (memory_meta *)(h + 1);
	kcr_run *run = (kcr_run *)(meta + 1);

	(void)state;
	run->address++;
	expect_section_refused(h, "malformed memory runs");
	run->nr_pages = 0;
	expect_section_refused(h, "malformed memory runs");
	run->nr_pages = UINT64_MAX / 2048;
	expect_section_refused(h, "malformed memory runs");
	meta->nr_pages++;
	expect_section_refused(h, "malformed memory runs");
	meta->nr_runs = UINT32_MAX;
	expect_section_refused(h, "malformed memory runs");
	run->address += 16 * CONTEXT_PAGE;
	expect_section_refused(h, "outside");
	run->address = UINT64_MAX & ~4095ull;
	expect_section_refused(h, "malformed memory runs");
	meta->pid = SAMPLE_SHARING_PID;
	expect_section_refused(h, "unknown process");
	meta->pid = -1;
	expect_section_refused(h, "unknown process");
}

static void contents(void **state)
{
	section_head *h = find(CONTEXT_CONTENT);
	content_meta *meta = (content_meta *)(h + 1);

	(void)state;
	meta->file_id = 0;
	expect_section_refused(h, "unknown file");
	meta->file_id = SAMPLE_FILES + 1;
	expect_section_refused(h, "unknown file");
	meta->offset = UINT64_MAX;
	expect_section_refused(h, "malformed contents");
	meta->reserved = 1;
	expect_section_refused(h, "malformed contents");
}

static void padding_must_be_zero(void **state)
{
	section_head *h = find(CONTEXT_MEMORY);

	(void)state;
	((uint8_t *)(h + 1))[h->meta_length] = 1;
	expect_section_refused(h, "padding");
}

static void messages(void **state)
{
	section_head *h = find(CONTEXT_PROCESS);

	(void)state;
	memset(h + 1, 0xff, h->meta_length);
	expect_section_refused(h, "malformed message");
	memset(h + 1, 0, h->meta_length);
	expect_section_refused(h, "malformed message");
}

/* A valid section of another file in the place of the same one here. */
static void section_of_another_file(void **state)
{
	section_head *h = find(CONTEXT_MEMORY);
	int other = memfd_create("other", 0);
	size_t from = (uint8_t *)h - image;

	(void)state;
	assert_int_equal(sample_write(&sample, other), 0);
	assert_int_equal(pread(other, image + from, size - from, from), size - from);
	expect_refused("wrong checksum of a section's head");
	memcpy(image, whole, size);
	close(other);
}

static int setup(void **state)
{
	(void)state;
	sample_make(&sample);
	fd = memfd_create("context", MFD_CLOEXEC);
	if (fd < 0 || sample_write(&sample, fd))
		return -1;
	size = lseek(fd, 0, SEEK_CUR);
	image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	whole = malloc(size);
	if (image == MAP_FAILED || !whole)
		return -1;
	memcpy(whole, image, size);
	lseek(fd, 0, SEEK_SET);
	return sample_read(fd, false, &digest);
}

static int teardown(void **state)
{
	(void)state;
	free(whole);
	munmap(image, size);
	close(fd);
	sample_free(&sample);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(cut_anywhere_in_taken_pages),
		cmocka_unit_test(bit_flipped_anywhere),
		cmocka_unit_test(byte_changed_anywhere),
		cmocka_unit_test(page_zeroed_anywhere),
		cmocka_unit_test(file_heads),
		cmocka_unit_test(optional_features_are_ignored),
		cmocka_unit_test(section_heads),
		cmocka_unit_test(huge_lengths),
		cmocka_unit_test(runs),
		cmocka_unit_test(contents),
		cmocka_unit_test(padding_must_be_zero),
		cmocka_unit_test(messages),
		cmocka_unit_test(section_of_another_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
