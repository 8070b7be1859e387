// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kcr_ calls that say something about the process: they write the record
 * (record.h).  It is created when the library is loaded, so that a process can
 * learn of its restart even if its first call comes afterwards.  cri.lock
 * guards it; so fork(2) copies it in a consistent state.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <kcr.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcr/record.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	8u		/* Linux 6.3 */
#endif

_Static_assert(KCR_MAX_RANGES == CRI_RECORD_RANGES && KCR_MAX_REGIONS == CRI_RECORD_REGIONS &&
		       KCR_MAX_NAME == CRI_RECORD_NAME - 1 && KCR_MAX_VALUES == CRI_RECORD_VALUES,
	       "record.h and kcr.h say the same");

static struct cri_record *record;

/* ---- the mapping ------------------------------------------------------------------- */

static int make_file(void)
{
	int fd = memfd_create(CRI_RECORD_FILE, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(CRI_RECORD_FILE, MFD_CLOEXEC) : fd;
}

/* cri.lock held, or no other thread exists yet.  False with errno: there is no record. */
static bool make_record(void)
{
	struct cri_record *map = MAP_FAILED;
	int fd;

	if (record)
		return true;
	fd = make_file();
	if (fd >= 0 && !ftruncate(fd, sizeof(*record)))
		map = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED) {
		errno = ENOMEM;
		return false;
	}
	map->head.size = sizeof(*map);
	map->head.magic = CRI_RECORD_MAGIC;
	record = map;
	return true;
}

void cri_record_begin(void)
{
	make_record();
}

void cri_record_end(void)
{
	/* Do not wait: a bare clone(2) may have created this child with the lock held. */
	if (pthread_mutex_trylock(&cri.lock))
		return;
	if (record)
		munmap(record, sizeof(*record));
	record = NULL;
	pthread_mutex_unlock(&cri.lock);
}

/* Takes the lock and makes sure that there is a record; else false with errno. */
static bool begin(void)
{
	cri_watch_forks();
	cri_lock();
	if (make_record())
		return true;
	cri_unlock();
	return false;
}

/* 0 or an errno: the result of the call. */
static int end(int err)
{
	cri_unlock();
	if (!err)
		return 0;
	errno = err;
	return -1;
}

/* The table that is not in use and may be changed; 0 or 1. */
static unsigned int other(uint32_t in_use)
{
	return in_use == 1;
}

/* Puts it into use. */
static void commit(uint32_t *in_use, unsigned int table)
{
	__atomic_store_n(in_use, table + 1, __ATOMIC_RELEASE);
}

/* ---- excluded ranges ------------------------------------------------------------------ */

static bool push(struct cri_record_ranges *to, uint64_t start, uint64_t end)
{
	if (start >= end)
		return true;
	if (to->count == CRI_RECORD_RANGES)
		return false;
	to->range[to->count++] = (struct cri_record_range){ start, end };
	return true;
}

/* *to: the ranges of `from` and [start, end), joined.  False: too many. */
static bool with(struct cri_record_ranges *to, const struct cri_record_ranges *from,
		 uint64_t start, uint64_t end)
{
	uint32_t i = 0;
	bool fits = true;

	for (; fits && i < from->count && from->range[i].end < start; i++)
		fits = push(to, from->range[i].start, from->range[i].end);
	for (; i < from->count && from->range[i].start <= end; i++) {
		if (from->range[i].start < start)
			start = from->range[i].start;
		if (from->range[i].end > end)
			end = from->range[i].end;
	}
	fits = fits && push(to, start, end);
	for (; fits && i < from->count; i++)
		fits = push(to, from->range[i].start, from->range[i].end);
	return fits;
}

/* *to: the ranges of `from` without [start, end).  False: too many. */
static bool without(struct cri_record_ranges *to, const struct cri_record_ranges *from,
		    uint64_t start, uint64_t end)
{
	bool fits = true;

	for (uint32_t i = 0; fits && i < from->count; i++) {
		const struct cri_record_range *r = &from->range[i];

		fits = push(to, r->start, r->end < start ? r->end : start) &&
		       push(to, r->start > end ? r->start : end, r->end);
	}
	return fits;
}

/* start and last are page-aligned. */
static int change_ranges(uint64_t start, uint64_t last, bool exclude)
{
	struct cri_record_ranges *from, *to;
	unsigned int table;
	bool fits;

	if (!begin())
		return -1;
	table = other(record->head.ranges);
	to = &record->ranges[table];
	from = &record->ranges[!table];
	if (!record->head.ranges)
		from->count = 0;
	to->count = 0;
	fits = (exclude ? with : without)(to, from, start, last);
	if (fits)
		commit(&record->head.ranges, table);
	return end(fits ? 0 : ENOSPC);
}

static bool is_range(const void *start, size_t length)
{
	errno = EINVAL;
	return (uintptr_t)start + length >= length &&
	       (uintptr_t)start + length <= UINTPTR_MAX - CRI_RECORD_PAGE;
}

int kcr_exclude(const void *start, size_t length)
{
	const uint64_t mask = CRI_RECORD_PAGE - 1;
	uint64_t first = ((uintptr_t)start + mask) & ~mask;
	uint64_t last = ((uintptr_t)start + length) & ~mask;

	if (!is_range(start, length))
		return -1;
	return first < last ? change_ranges(first, last, true) : 0;
}

int kcr_include(const void *start, size_t length)
{
	const uint64_t mask = CRI_RECORD_PAGE - 1;
	uint64_t first = (uintptr_t)start & ~mask;
	uint64_t last = ((uintptr_t)start + length + mask) & ~mask;

	if (!is_range(start, length))
		return -1;
	return length ? change_ranges(first, last, false) : 0;
}

/* ---- named regions ----------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	size_t length = name ? strnlen(name, CRI_RECORD_NAME) : 0;

	errno = EINVAL;
	return length && length < CRI_RECORD_NAME;
}

/* 0 or an errno.  length 0: removes it. */
static int change_regions(const char *name, uint64_t start, uint64_t length)
{
	unsigned int table = other(record->head.regions);
	struct cri_record_regions *to = &record->regions[table];
	struct cri_record_region *region = NULL;

	if (record->head.regions)
		*to = record->regions[!table];
	else
		to->count = 0;
	for (uint32_t i = 0; i < to->count; i++)
		if (!strcmp(to->region[i].name, name))
			region = &to->region[i];
	if (!length && !region)
		return ENOENT;
	if (!region && to->count == CRI_RECORD_REGIONS)
		return ENOSPC;
	if (!region)
		region = &to->region[to->count++];
	if (!length) {
		*region = to->region[--to->count];
	} else {
		*region = (struct cri_record_region){ .start = start, .length = length };
		strcpy(region->name, name);
	}
	commit(&record->head.regions, table);
	return 0;
}

int kcr_name_region(const char *name, const void *start, size_t length)
{
	if (!is_name(name) || !is_range(start, length) || !begin())
		return -1;
	return end(change_regions(name, (uintptr_t)start, length));
}

/* ---- values --------------------------------------------------------------------------------- */

static size_t value_size(const struct cri_record_value *value)
{
	return sizeof(*value) + value->length;
}

/* The entry of `key` in `values`, or NULL. */
static struct cri_record_value *find_value(struct cri_record_values *values, const char *key)
{
	uint32_t at = 0;

	while (at < values->length) {
		struct cri_record_value *value = (void *)&values->data[at];

		if (!strcmp(value->key, key))
			return value;
		at += value_size(value);
	}
	return NULL;
}

static void remove_value(struct cri_record_values *values, struct cri_record_value *value)
{
	size_t size = value_size(value), at = (char *)value - values->data;

	values->length -= size;
	memmove(value, (char *)value + size, values->length - at);
}

/* 0 or an errno.  data NULL: removes it. */
static int change_values(const char *key, const void *data, size_t length)
{
	unsigned int table = other(record->head.values);
	struct cri_record_values *to = &record->values[table];
	struct cri_record_value *value;

	to->length = 0;
	if (record->head.values) {
		to->length = record->values[!table].length;
		memcpy(to->data, record->values[!table].data, to->length);
	}
	value = find_value(to, key);
	if (!data && !value)
		return ENOENT;
	if (value)
		remove_value(to, value);
	if (data) {
		if (length > CRI_RECORD_VALUES ||
		    sizeof(*value) + length > CRI_RECORD_VALUES - to->length)
			return ENOSPC;
		value = (void *)&to->data[to->length];
		*value = (struct cri_record_value){ .length = length };
		strcpy(value->key, key);
		memcpy(value + 1, data, length);
		to->length += value_size(value);
	}
	commit(&record->head.values, table);
	return 0;
}

int kcr_set_value(const char *key, const void *value, size_t length)
{
	if (!is_name(key) || !begin())
		return -1;
	return end(change_values(key, value, length));
}

ssize_t kcr_get_value(const char *key, void *buffer, size_t size)
{
	struct cri_record_value *value = NULL;
	ssize_t length = -1;

	if (!is_name(key) || !begin())
		return -1;
	if (record->head.values)
		value = find_value(&record->values[record->head.values - 1], key);
	if (value) {
		length = value->length;
		if (size)
			memcpy(buffer, value + 1, value->length < size ? value->length : size);
	}
	return end(value ? 0 : ENOENT) ? -1 : length;
}

/* ---- restarts, omission ------------------------------------------------------------------------ */

int kcr_restarted(struct timespec *when, char *source, size_t size)
{
	const struct cri_record_restart *restart;
	int count, err = 0;

	if (!begin())
		return -1;
	restart = &record->restart;
	count = restart->count;
	if (count && source && strlen(restart->source) >= size)
		err = ERANGE;
	if (count && source && !err)
		strcpy(source, restart->source);
	if (count && when && !err)
		*when = (struct timespec){ restart->sec, restart->nsec };
	return end(err) ? -1 : count;
}

pid_t cri_record_requester(void)
{
	return record ? record->restart.requester : 0;
}

static int omit(void *unused)
{
	(void)unused;
	cr_checkpoint(CR_CHECKPOINT_OMIT);
	return 0;
}

static int register_omit(void)
{
	return cr_init() < 0 || cr_register_callback(omit, NULL, CR_THREAD_CONTEXT) < 0 ? -1 : 0;
}

void cri_omit_child(void)
{
	int err = errno;

	if (record && record->head.omit)
		register_omit();
	errno = err;
}

static bool set_omit(uint32_t to)
{
	bool before;

	if (!begin())
		return false;
	before = record->head.omit == to;
	record->head.omit = to;
	end(0);
	return before;
}

int kcr_omit(void)
{
	int err;

	if (set_omit(1) || !register_omit())
		return 0;
	err = errno;
	set_omit(0);
	errno = err;
	return -1;
}
