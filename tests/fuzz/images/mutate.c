// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a context file section by section and writes it again, with changed messages,
 * contents or memory, or with sections dropped, duplicated or moved; its checksums are
 * correct nevertheless.  A few files are also damaged after writing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/context.h"
#include "images.h"
#include "tests/memory_section.h"

#define SECTIONS 4096

struct section {
	struct context_item item;
	struct kcr_run *runs;
	void *data;
	struct context_sharer *sharer;	/* item.nr_sharers of them */
	struct context_original *original;	/* of each duplicate */
};

static struct section sections[SECTIONS];
static size_t nr_sections;

static void *copy_of(const void *data, size_t length)
{
	void *copy = malloc(length + 1);

	if (copy && length)
		memcpy(copy, data, length);
	return copy;
}

/* Of memory that several processes have in common. */
static int keep_sharers(struct section *section, const struct context_item *item)
{
	section->sharer = copy_of(item->sharer, item->nr_sharers * sizeof(*item->sharer));
	for (size_t i = 0; section->sharer && i < item->nr_sharers; i++)
		section->sharer[i].runs = copy_of(item->sharer[i].runs, item->sharer[i].nr_runs *
						  sizeof(*item->sharer[i].runs));
	return section->sharer ? 0 : -ENOMEM;
}

static int keep(struct context_reader *reader, const struct context_item *item)
{
	struct section *section = &sections[nr_sections++];

	section->item = *item;
	if (item->type == CONTEXT_CONTENT)
		section->data = copy_of(item->data, item->length);
	if (item->type != CONTEXT_MEMORY && item->type != CONTEXT_DUPLICATES)
		return 0;
	section->runs = copy_of(item->runs, item->nr_runs * sizeof(*item->runs));
	if (item->type == CONTEXT_DUPLICATES) {
		section->original = copy_of(item->original, item->nr_pages * sizeof(*item->original));
		return section->original ? 0 : -ENOMEM;
	}
	section->data = malloc(item->nr_pages * CONTEXT_PAGE);
	if (keep_sharers(section, item))
		return -ENOMEM;
	return section->data ? context_memory_read(reader, section->data) : -ENOMEM;
}

static int load(const char *path)
{
	struct context_reader *reader;
	struct context_item item;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = context_reader_new(&reader, fd, path);
	if (err)
		return err;
	while (nr_sections < SECTIONS) {
		memset(&item, 0, sizeof(item));
		err = context_read(reader, &item);
		if (err <= 0)
			break;
		err = keep(reader, &item);
		if (err)
			break;
	}
	context_reader_free(reader);
	close(fd);
	return err;
}

static void discard(void)
{
	size_t i;

	/* Messages may share parts now: the exit of this process frees them. */
	for (i = 0; i < nr_sections; i++) {
		for (size_t k = 0; sections[i].sharer && k < sections[i].item.nr_sharers; k++)
			free((void *)sections[i].sharer[k].runs);
		free(sections[i].sharer);
		free(sections[i].original);
		free(sections[i].runs);
		free(sections[i].data);
	}
	memset(sections, 0, sizeof(sections));
	nr_sections = 0;
}

/* ---- changes --------------------------------------------------------------------- */

static void change_order(struct random *random, char *what, size_t size)
{
	size_t a = below(random, nr_sections), b = below(random, nr_sections);
	struct section spare = sections[a];

	snprintf(what + strlen(what), size - strlen(what), " sections %zu %zu", a, b);
	if (chance(random, 50)) {
		sections[a] = sections[b];
		sections[b] = spare;
	} else {		/* dropped: an empty slot */
		sections[a].item.type = 0;
	}
}

static void change_sharers(struct section *section, struct random *random)
{
	struct context_sharer *s = &section->sharer[below(random, section->item.nr_sharers)];
	struct kcr_run *run = (struct kcr_run *)&s->runs[below(random, s->nr_runs)];

	switch (below(random, 4)) {
	case 0:
		s->pid += (int)below(random, 5) - 2;
		break;
	case 1:
		run->address += ((int64_t)below(random, 33) - 16) * CONTEXT_PAGE;
		break;
	case 2:
		run->nr_pages += (int)below(random, 5) - 2;
		break;
	default:		/* more than once */
		s->nr_runs = 1 + below(random, s->nr_runs);
		section->sharer[0].pid = s->pid;
	}
}

/* The number of pages stays: so many originals there are. */
static void change_duplicates(struct section *section, struct random *random)
{
	struct context_original *o = &section->original[below(random, section->item.nr_pages)];

	switch (below(random, 5)) {
	case 0:
		section->item.pid += (int)below(random, 5) - 2;
		break;
	case 1:
		section->runs->address += ((int64_t)below(random, 33) - 16) * CONTEXT_PAGE;
		break;
	case 2:
		o->pid += (int)below(random, 5) - 2;
		break;
	case 3:
		o->address = random_next(random) & ~0xfffull;
		break;
	default:
		o->address += ((int64_t)below(random, 33) - 16) * CONTEXT_PAGE;
	}
}

static void change_memory(struct section *section, struct random *random)
{
	struct kcr_run *run = &section->runs[below(random, section->item.nr_runs)];

	if (section->item.type == CONTEXT_DUPLICATES) {
		change_duplicates(section, random);
		return;
	}
	if (section->item.nr_sharers && chance(random, 60)) {
		change_sharers(section, random);
		return;
	}
	switch (below(random, 4)) {
	case 0:
		section->item.pid += (int)below(random, 5) - 2;
		break;
	case 1:
		run->address += ((int64_t)below(random, 33) - 16) * CONTEXT_PAGE;
		break;
	case 2:
		run->address = random_next(random) & ~0xfffull;
		break;
	default:
		((uint64_t *)section->data)[below(random, section->item.nr_pages * 512)] =
			random_next(random);
	}
}

static void change_one(struct random *random, char *what, size_t size)
{
	struct section *section = &sections[below(random, nr_sections)];

	/* Most sections are memory, which is the least interesting. */
	if (section->item.type == CONTEXT_MEMORY && chance(random, 80))
		section = &sections[below(random, nr_sections)];
	if (chance(random, 6)) {
		change_order(random, what, size);
	} else if (section->item.message) {
		value_mutate(section->item.message, random, what, size);
	} else if (section->item.nr_runs) {
		snprintf(what + strlen(what), size - strlen(what), " memory");
		change_memory(section, random);
	} else if (section->item.type == CONTEXT_CONTENT) {
		snprintf(what + strlen(what), size - strlen(what), " content");
		section->item.offset += chance(random, 50) ? 4096 : random_next(random);
		section->item.file_id += below(random, 3);
	}
}

/* ---- writing ---------------------------------------------------------------------- */

static int write_sharers(struct context_writer *writer, const struct section *section)
{
	int err = 0;

	for (size_t i = 0; !err && i < section->item.nr_sharers; i++)
		err = context_write_sharer(writer, &section->sharer[i]);
	return err;
}

static int write_section(struct context_writer *writer, const struct section *section)
{
	const struct context_item *item = &section->item;

	switch (item->type) {
	case CONTEXT_PREAMBLE:
	case CONTEXT_FILE:
	case CONTEXT_PROCESS:
		return context_write_message(writer, item->type, item->message);
	case CONTEXT_CONTENT:
		return context_write_content(writer, item->file_id, item->offset, section->data,
					     item->length);
	case CONTEXT_MEMORY:
		return write_sharers(writer, section) ?:
		       section_write(writer, item->pid, section->runs, item->nr_runs,
				     section->data, item->compression);
	case CONTEXT_DUPLICATES:
		return context_write_duplicates(writer, item->pid, section->runs, item->nr_runs,
						section->original);
	default:
		return 0;
	}
}

static int write_all(int fd)
{
	struct context_writer *writer;
	uint64_t features = 0;
	size_t i;
	int err;

	for (i = 0; i < nr_sections; i++) {
		features |= sections[i].item.nr_sharers ? CONTEXT_HAS_SHARED : 0;
		features |= sections[i].original ? CONTEXT_HAS_DUPLICATES : 0;
	}
	err = context_writer_new(&writer, fd, features);

	if (err)
		return err;
	for (i = 0; i < nr_sections && !err; i++)
		err = write_section(writer, &sections[i]);
	if (!err)
		err = context_writer_finish(writer);
	context_writer_free(writer);
	return err;
}

/* Changes a few bytes, as a bad disk would. */
static void spoil(int fd, struct random *random)
{
	struct stat status;
	uint8_t byte;
	int i;

	if (fstat(fd, &status) || !status.st_size)
		return;
	if (chance(random, 30) && ftruncate(fd, below(random, status.st_size)))
		return;
	for (i = below(random, 4); i >= 0; i--) {
		byte = random_next(random);
		if (pwrite(fd, &byte, 1, below(random, status.st_size)) != 1)
			return;
	}
}

int mutate(const char *from, int to, struct random *random, char *what, size_t size)
{
	uint32_t i, times = chance(random, 40) ? 1 : 1 + below(random, 5);
	int err = load(from);

	*what = 0;
	for (i = 0; i < times && !err; i++)
		change_one(random, what, size);
	if (!err)
		err = write_all(to);
	if (!err && chance(random, 5)) {
		snprintf(what + strlen(what), size - strlen(what), " and spoiled bytes");
		spoil(to, random);
	}
	discard();
	return err;
}
