// SPDX-License-Identifier: GPL-2.0
/*
 * What a process has declared by libcr's kcr_ calls: the record that libcr
 * keeps in its memory (libcr/record.h), found by its name in the memory map.
 * Any program may have made it: one that libcr would not write is left out,
 * with a warning.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "libcr/record.h"
#include "report/report.h"

#define MAX_RECORDS	8		/* one per copy of libcr in the process */
#define WRONG		(-EBADMSG)	/* within this file: the record is malformed */

static const char path_of_record[] = "/memfd:" CRI_RECORD_FILE " (deleted)";

struct reader {
	int job;
	pid_t pid;
	uint64_t address, length;	/* of the mapping */
	Kcr__Record *out;
};

/* `size` bytes (whole pages) from `offset` of the record. */
static int read_part(const struct reader *r, size_t offset, void *to, size_t size)
{
	struct kcr_run run = {
		.address = r->address + offset, .nr_pages = size / CRI_RECORD_PAGE,
	};
	int err = device_read(r->job, r->pid, 0, to, &run, 1, NULL);

	if (err == -EFAULT)
		report_clear();
	return err == -EFAULT ? WRONG : err;
}

/* A malloc'ed copy of table 1 or 2 of a kind; table 1 is at `offset`. */
static int read_table(const struct reader *r, uint32_t table, size_t offset, size_t size,
		      void **out)
{
	int err;

	if (table > 2)
		return WRONG;
	*out = malloc(size);
	if (!*out)
		return -ENOMEM;
	err = read_part(r, offset + (table - 1) * size, *out, size);
	if (err)
		free(*out);
	return err;
}

/* A string that must end within `size` bytes. */
static int copy_text(char **to, const char *from, size_t size)
{
	if (!memchr(from, '\0', size))
		return WRONG;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

/* ---- parts of a record --------------------------------------------------------------- */

static int save_restart(const struct reader *r)
{
	struct cri_record_restart *restart = aligned_alloc(CRI_RECORD_PAGE, sizeof(*restart));
	int err = restart ? 0 : -ENOMEM;

	if (!err)
		err = read_part(r, offsetof(struct cri_record, restart), restart,
				sizeof(*restart));
	if (!err && restart->count) {
		r->out->has_restarts = r->out->has_restart_sec = r->out->has_restart_nsec = true;
		r->out->restarts = restart->count;
		r->out->restart_sec = restart->sec;
		r->out->restart_nsec = restart->nsec;
		err = copy_text(&r->out->restart_source, restart->source,
				sizeof(restart->source));
	}
	free(restart);
	return err;
}

static int add_range(Kcr__Record *out, const struct cri_record_range *from)
{
	uint64_t after = out->n_excluded ? out->excluded[out->n_excluded - 1]->end : 0;
	Kcr__Range *range;

	if (from->start < after || from->start >= from->end || from->start % CONTEXT_PAGE ||
	    from->end % CONTEXT_PAGE)
		return WRONG;
	range = malloc(sizeof(*range));
	if (!range)
		return -ENOMEM;
	kcr__range__init(range);
	range->start = from->start;
	range->end = from->end;
	out->excluded[out->n_excluded++] = range;
	return 0;
}

static int save_ranges(const struct reader *r, uint32_t table)
{
	struct cri_record_ranges *ranges;
	int err;

	if (!table)
		return 0;
	err = read_table(r, table, offsetof(struct cri_record, ranges), sizeof(*ranges),
			 (void **)&ranges);
	if (err)
		return err;
	if (ranges->count > CRI_RECORD_RANGES)
		err = WRONG;
	else
		r->out->excluded = calloc(ranges->count + 1, sizeof(*r->out->excluded));
	if (!err && !r->out->excluded)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < ranges->count; i++)
		err = add_range(r->out, &ranges->range[i]);
	free(ranges);
	return err;
}

static int add_region(Kcr__Record *out, const struct cri_record_region *from)
{
	Kcr__Region *region = malloc(sizeof(*region));

	if (!region)
		return -ENOMEM;
	kcr__region__init(region);
	out->region[out->n_region++] = region;
	region->start = from->start;
	region->length = from->length;
	return copy_text(&region->name, from->name, sizeof(from->name));
}

static int save_regions(const struct reader *r, uint32_t table)
{
	struct cri_record_regions *regions;
	int err;

	if (!table)
		return 0;
	err = read_table(r, table, offsetof(struct cri_record, regions), sizeof(*regions),
			 (void **)&regions);
	if (err)
		return err;
	if (regions->count > CRI_RECORD_REGIONS)
		err = WRONG;
	else
		r->out->region = calloc(regions->count + 1, sizeof(*r->out->region));
	if (!err && !r->out->region)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < regions->count; i++)
		err = add_region(r->out, &regions->region[i]);
	free(regions);
	return err;
}

/* Adds the value at data[*at] and advances *at past it. */
static int add_value(Kcr__Record *out, const struct cri_record_values *from, uint32_t *at)
{
	struct cri_record_value head;
	Kcr__Value *value;
	int err;

	if (from->length - *at < sizeof(head))
		return WRONG;
	memcpy(&head, &from->data[*at], sizeof(head));
	*at += sizeof(head);
	if (from->length - *at < head.length)
		return WRONG;
	value = malloc(sizeof(*value));
	if (!value)
		return -ENOMEM;
	kcr__value__init(value);
	out->value[out->n_value++] = value;
	err = copy_text(&value->key, head.key, sizeof(head.key));
	if (err)
		return err;
	value->value.data = malloc(head.length + 1);
	if (!value->value.data)
		return -ENOMEM;
	value->value.len = head.length;
	memcpy(value->value.data, &from->data[*at], head.length);
	*at += head.length;
	return 0;
}

static int save_values(const struct reader *r, uint32_t table)
{
	struct cri_record_values *values;
	uint32_t at = 0;
	int err;

	if (!table)
		return 0;
	err = read_table(r, table, offsetof(struct cri_record, values), sizeof(*values),
			 (void **)&values);
	if (err)
		return err;
	if (values->length > CRI_RECORD_VALUES)
		err = WRONG;
	else
		r->out->value = calloc(values->length / sizeof(struct cri_record_value) + 1,
				       sizeof(*r->out->value));
	if (!err && !r->out->value)
		err = -ENOMEM;
	while (!err && at < values->length)
		err = add_value(r->out, values, &at);
	free(values);
	return err;
}

/* ---- records --------------------------------------------------------------------------- */

static int save_record(const struct reader *r)
{
	struct cri_record_head *head = aligned_alloc(CRI_RECORD_PAGE, sizeof(*head));
	int err = head ? read_part(r, 0, head, sizeof(*head)) : -ENOMEM;

	if (!err && (head->magic != CRI_RECORD_MAGIC || head->size < CRI_RECORD_FIRST_SIZE ||
		     head->size > r->length))
		err = WRONG;
	if (!err)
		err = save_restart(r);
	if (!err)
		err = save_ranges(r, head->ranges);
	if (!err)
		err = save_regions(r, head->regions);
	if (!err)
		err = save_values(r, head->values);
	free(head);
	return err;
}

static bool is_record(const struct kcr_vma *v, const char *strings)
{
	const uint64_t must = KCR_VMA_SHMEM | KCR_VMA_READ | KCR_VMA_WRITE;

	return (v->flags & (must | KCR_VMA_SHARED)) == must && v->path && !v->offset &&
	       v->end - v->start >= CRI_RECORD_FIRST_SIZE &&
	       !strcmp(strings + v->path, path_of_record);
}

static int add_record(struct checkpoint *c, pid_t pid, const struct kcr_vma *vma, Kcr__Mm *mm)
{
	Kcr__Record *record = malloc(sizeof(*record)), **larger;
	struct reader r = {
		.job = c->attempt.job, .pid = pid, .address = vma->start,
		.length = vma->end - vma->start, .out = record,
	};
	int err;

	larger = realloc(mm->record, (mm->n_record + 1) * sizeof(*larger));
	if (larger)
		mm->record = larger;
	if (!record || !larger) {
		free(record);
		return report_errno(-ENOMEM, "process %d", pid);
	}
	kcr__record__init(record);
	record->address = r.address;
	err = save_record(&r);
	if (!err) {
		mm->record[mm->n_record++] = record;
		return 0;
	}
	kcr__record__free_unpacked(record, NULL);
	if (err != WRONG)
		return report_errno(err, "process %d: its record", pid);
	report_warn("process %d: what libcr keeps in its memory makes no sense, and is taken for "
		    "ordinary memory", pid);
	return 0;
}

int record_save(struct checkpoint *c, pid_t pid, const struct kcr_vma *vma, size_t count,
		const char *strings, Kcr__Mm *mm)
{
	int err = 0;

	for (size_t i = 0; !err && i < count && mm->n_record < MAX_RECORDS; i++)
		if (is_record(&vma[i], strings))
			err = add_record(c, pid, &vma[i], mm);
	return err;
}

size_t record_ranges(const Kcr__Mm *mm)
{
	size_t count = 0;

	for (size_t i = 0; i < mm->n_record; i++)
		count += mm->record[i]->n_excluded;
	return count;
}

bool record_excluded(const Kcr__Mm *mm, uint64_t start, uint64_t end, uint64_t page_size,
		     uint64_t *from, uint64_t *to)
{
	uint64_t mask = page_size > CONTEXT_PAGE ? page_size - 1 : CONTEXT_PAGE - 1;
	bool found = false;

	for (size_t i = 0; i < mm->n_record; i++) {
		for (size_t k = 0; k < mm->record[i]->n_excluded; k++) {
			const Kcr__Range *range = mm->record[i]->excluded[k];
			uint64_t first = range->start > start ? range->start : start;
			uint64_t last = range->end < end ? range->end : end;

			first = (first + mask) & ~mask;
			last &= ~mask;
			if (first < last && (!found || first < *from)) {
				*from = first;
				*to = last;
				found = true;
			}
		}
	}
	return found;
}
