/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bytes of a context file, all little-endian; documented in kcr-context(5).
 * Private to image/.
 *
 *	file head
 *	section:  head, meta               (PREAMBLE FILE PROCESS SHARED TABLE ELSEWHERE DUPLICATES
 *					    TRAILER)
 *	section:  head, meta, padding, data, tail  (CONTENT MEMORY)
 *
 * The data start at a multiple of CONTEXT_PAGE from the start of the file.
 * Every byte is checksummed: heads and tails by sums of their own (seeded with the
 * file's ID, so that no section of another file passes), meta and padding by
 * meta_sum, data by data_sum.
 */
#ifndef KCR_IMAGE_SECTION_H
#define KCR_IMAGE_SECTION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "codec.h"
#include "context.h"

#define CONTEXT_MAGIC		"KCR\x1a" "ctx\n"
#define CONTEXT_VERSION		1u
#define CONTEXT_SECTION_MAGIC	0x5352434bu	/* "KCRS" */

/* Required features that this reader knows. */
#define CONTEXT_REQUIRED_KNOWN	(CONTEXT_HAS_TABLES | CONTEXT_HAS_ANCESTORS | CONTEXT_HAS_ROOT | \
				 CONTEXT_HAS_OWN_THREADS | CONTEXT_HAS_SECCOMP | CONTEXT_HAS_KEYS | \
				 CONTEXT_HAS_SETTINGS | CONTEXT_HAS_PACKETS | CONTEXT_HAS_SHARED | \
				 CONTEXT_HAS_ASYNC | CONTEXT_HAS_USERFAULT | CONTEXT_HAS_RAW | \
				 CONTEXT_HAS_ELSEWHERE | CONTEXT_HAS_RINGS | CONTEXT_HAS_POLICIES | \
				 CONTEXT_HAS_DUPLICATES | CONTEXT_HAS_MORE_SETTINGS | \
				 CONTEXT_HAS_SYSV)

/* Limit of one message, in bytes; a process with 4,000 threads needs 12 MB. */
#define CONTEXT_MESSAGE_MAX	(256u << 20)
#define CONTEXT_FD_MAX		(1 << 30)	/* all file descriptors are below this */

struct context_head {
	char magic[8];
	uint32_t version;
	uint32_t page;		/* CONTEXT_PAGE */
	uint64_t required;	/* feature bits: refuse unknown ones */
	uint64_t optional;	/* feature bits: ignore unknown ones */
	uint64_t id;		/* chosen at random for every file */
	uint64_t reserved[2];	/* 0 */
	uint64_t sum;		/* XXH64, seed 0, of all above */
};

struct section_head {
	uint32_t magic;		/* CONTEXT_SECTION_MAGIC */
	uint32_t type;		/* enum context_section */
	uint64_t sequence;	/* sections before this one */
	uint64_t position;	/* bytes of the file before this head */
	uint32_t compression;	/* enum context_compression, of the data */
	uint32_t reserved;	/* 0 */
	uint64_t meta_length;
	uint64_t data_length;	/* as stored */
	uint64_t meta_sum;	/* XXH64, seed 0, of meta and padding */
	uint64_t sum;		/* XXH64, seed id, of all above */
};

struct section_tail {
	uint64_t data_sum;	/* XXH64, seed 0, of the data as stored */
	uint64_t sum;		/* XXH64, seed id + position of the head, of data_sum */
};

/* Meta of a CONTENT section. */
struct content_meta {
	uint32_t file_id;
	uint32_t reserved;	/* 0 */
	uint64_t offset;
};

/*
 * Meta of a MEMORY, SHARED, ELSEWHERE, DUPLICATES or TABLE section; struct kcr_run[nr_runs] follows,
 * in a TABLE also struct context_hash[nr_pages] and the owners, uint16_t[nr_pages], and in DUPLICATES
 * struct context_original[nr_pages].
 */
struct memory_meta {
	int32_t pid;
	uint32_t nr_runs;
	uint64_t nr_pages;
};

static_assert(sizeof(struct context_head) == 64, "on disk");
static_assert(sizeof(struct section_head) == 64, "on disk");
static_assert(sizeof(struct section_tail) == 16, "on disk");
static_assert(sizeof(struct content_meta) == 16, "on disk");
static_assert(sizeof(struct memory_meta) == 16, "on disk");
static_assert(sizeof(struct kcr_run) == 16, "on disk");
static_assert(sizeof(struct context_hash) == 16, "on disk");
static_assert(sizeof(struct context_original) == 16, "on disk");

/* Bytes of a TABLE's meta for each page. */
#define TABLE_PAGE_BYTES	(sizeof(struct context_hash) + sizeof(uint16_t))

static inline uint64_t context_head_sum(const struct context_head *head)
{
	return XXH64(head, offsetof(struct context_head, sum), 0);
}

static inline uint64_t section_head_sum(const struct section_head *head, uint64_t id)
{
	return XXH64(head, offsetof(struct section_head, sum), id);
}

static inline uint64_t section_tail_sum(const struct section_tail *tail, uint64_t id,
					uint64_t position)
{
	return XXH64(&tail->data_sum, sizeof(tail->data_sum), id + position);
}

/* Zero bytes between a section's meta, which ends at `position`, and its data. */
static inline size_t section_padding(uint64_t position)
{
	return -position & (CONTEXT_PAGE - 1);
}

static inline int section_has_data(uint32_t type)
{
	return type == CONTEXT_CONTENT || type == CONTEXT_MEMORY;
}

/* ---- load.c --------------------------------------------------------------- */

/* Index of this process in c->by_pid; SIZE_MAX: none. */
size_t context_find(const struct context *c, int32_t pid);

/* ---- check.c, check_file.c: validation, after the checksums -------------------------------- */

/* Each returns NULL or the reason for refusing the file, valid until the next call. */
const char *check_process(const Kcr__Process *process, const Kcr__Preamble *preamble,
			  size_t nr_files);
const char *check_file(const Kcr__File *file);
/* Filters, and the threads that have them (check_seccomp.c). */
const char *check_filter(const Kcr__Filter *filter);
const char *check_seccomp(const Kcr__Thread *thread, const Kcr__Preamble *preamble);
const char *check_clocks(const Kcr__Clocks *clocks);
const char *check_xstate_part(const Kcr__XstatePart *part);
/* Relations between files. */
const char *check_references(const struct context *c);
/* Semaphores and message queues (check_sysv.c). */
const char *check_sysv(const struct context *c);
/* Relations between processes, and all of the above that spans sections. */
const char *check_context(const struct context *c);
/* Of MEMORY (ELSEWHERE, TABLE, DUPLICATES) and CONTENT sections … */
const char *check_memory(const struct context *c, const struct context_item *item);
const char *check_content(const struct context *c, const struct context_item *item);
/* … of what is said before a MEMORY section, and of what the pages of a DUPLICATES section are equal to. */
const char *check_sharers(const struct context *c, const struct context_item *item);
const char *check_originals(const struct context *c, const struct context_item *item);

#endif /* KCR_IMAGE_SECTION_H */
