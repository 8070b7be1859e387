// SPDX-License-Identifier: GPL-2.0
/*
 * The reader of context files against made-up ones.  The first byte of an
 * input chooses: read the rest as it is, or make all its checksums and section
 * heads right first, so that what lies behind them is reached, too.
 * The first inputs, context_fuzz.corpus, are made by tests/unit/test_corpus.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/section.h"
#include "image/view.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct section_head loose_head __attribute__((aligned(1)));
typedef struct section_tail loose_tail __attribute__((aligned(1)));

static void seal_file_head(struct context_head *head)
{
	memcpy(head->magic, CONTEXT_MAGIC, sizeof(head->magic));
	head->version = CONTEXT_VERSION;
	head->page = CONTEXT_PAGE;
	head->required = 0;
	memset(head->reserved, 0, sizeof(head->reserved));
	head->sum = context_head_sum(head);
}

/* Makes one section right as far as the input reaches; returns where the next starts. */
static size_t seal_section(uint8_t *image, size_t size, size_t at, uint64_t sequence, uint64_t id)
{
	loose_head *head = (loose_head *)(image + at);
	size_t meta = at + sizeof(*head), data = meta, next;
	loose_tail *tail;

	head->magic = CONTEXT_SECTION_MAGIC;
	head->sequence = sequence;
	head->position = at;
	head->reserved = 0;
	if (head->meta_length > size - meta)
		head->meta_length = size - meta;
	data += head->meta_length;
	next = data;
	if (section_has_data(head->type)) {
		next += section_padding(data);
		if (next > size)
			next = size;
		memset(image + data, 0, next - data);
	}
	head->meta_sum = XXH64(image + meta, next - meta, 0);
	if (section_has_data(head->type) && size - next >= sizeof(*tail)) {
		if (head->data_length > size - next - sizeof(*tail))
			head->data_length = size - next - sizeof(*tail);
		data = next;
		next += head->data_length;
		tail = (loose_tail *)(image + next);
		tail->data_sum = XXH64(image + data, head->data_length, 0);
		tail->sum = XXH64(&tail->data_sum, sizeof(tail->data_sum), id + at);
		next += sizeof(*tail);
	}
	head->sum = XXH64(head, offsetof(struct section_head, sum), id);
	return next;
}

static void seal(uint8_t *image, size_t size)
{
	struct context_head *head = (struct context_head *)image;
	size_t at = sizeof(*head);
	uint64_t sequence;

	if (size < sizeof(*head))
		return;
	seal_file_head(head);
	for (sequence = 0; at + sizeof(loose_head) <= size; sequence++)
		at = seal_section(image, size, at, sequence, head->id);
}

/* Uses whatever a file that was accepted holds. */
static void show(const struct context *c)
{
	static FILE *out;
	size_t i, length;
	void *notes;

	if (!out)
		out = fopen("/dev/null", "w");
	text_write(out, c, NULL, true);
	json_write(out, c, NULL);
	for (i = 0; i < c->nr_processes; i++)
		if (c->process[i]->n_thread && c->process[i]->mm &&
		    !core_notes(c, c->process[i], c->process[i]->mm, &notes, &length))
			free(notes);
}

static void read_all(struct context_reader *r)
{
	static uint8_t pages[CONTEXT_CHUNK_PAGES * CONTEXT_PAGE];
	struct context *c = NULL;
	struct context_item item;
	int err = context_load(r, &c);

	if (!err)
		show(c);
	while (!err && (err = context_read(r, &item)) > 0)
		err = item.type == CONTEXT_MEMORY ? context_memory_read(r, pages) : 0;
	/* Every refusal says why. */
	if (err && !report_message())
		abort();
	context_reader_free(r);
	context_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct context_reader *r;
	uint8_t *image;
	int fd;

	if (!size)
		return 0;
	image = malloc(size);
	fd = memfd_create("context", MFD_CLOEXEC);
	if (!image || fd < 0)
		abort();
	memcpy(image, data + 1, size - 1);
	if (data[0] & 1)
		seal(image, size - 1);
	report_clear();
	if (write(fd, image, size - 1) == (ssize_t)(size - 1) && !lseek(fd, 0, SEEK_SET) &&
	    !context_reader_new(&r, fd, "fuzz"))
		read_all(r);
	close(fd);
	free(image);
	return 0;
}
