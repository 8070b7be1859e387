/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The record: what a process tells the tools about itself, in a mapping of
 * its own that is recognised by its name in the memory map.  So it needs neither
 * the module nor a descriptor, fork(2) copies it, and a restart restores it.
 * libcr/record.c writes it, checkpoint/record.c reads it, restart/record.c
 * fills in the restart.
 *
 * Tables are double-buffered: a change is made in the one that is not in use,
 * and one store switches to it.  So a reader that stops the program at any
 * moment finds consistent tables.  Readers must not trust anything in it.
 */
#ifndef LIBCR_RECORD_H
#define LIBCR_RECORD_H

#include <stdint.h>
#include <linux/kcr.h>

#define CRI_RECORD_FILE		"kcr-record"	/* a memfd, mapped privately */
#define CRI_RECORD_MAGIC	0x31643163526b4b21ull
#define CRI_RECORD_PAGE		4096

#define CRI_RECORD_RANGES	1024
#define CRI_RECORD_REGIONS	256
#define CRI_RECORD_NAME		64		/* bytes of a name or key, with its NUL */
#define CRI_RECORD_VALUES	(64u << 10)	/* bytes of all keys and values, with heads */

/* Page 0.  An index is 0: no table, else 1 or 2: that table. */
struct cri_record_head {
	uint64_t magic;
	uint32_t size;			/* of struct cri_record */
	uint32_t omit;			/* leave out this process and its children */
	uint32_t ranges, regions, values;
} __attribute__((aligned(CRI_RECORD_PAGE)));

/* Written by cr_restart(1) alone, whole pages. */
struct cri_record_restart {
	uint32_t count;
	uint32_t nsec;
	int64_t sec;			/* CLOCK_REALTIME of the last restart */
	char source[KCR_PATH_MAX];	/* absolute; "": it has no name */
	int32_t requester;		/* a program's PID; 0: cr_restart's own, the module says */
} __attribute__((aligned(CRI_RECORD_PAGE)));

/* Not to be saved: whole pages, sorted, not adjacent. */
struct cri_record_ranges {
	uint32_t count;
	struct cri_record_range {
		uint64_t start, end;
	} range[CRI_RECORD_RANGES];
} __attribute__((aligned(CRI_RECORD_PAGE)));

struct cri_record_regions {
	uint32_t count;
	struct cri_record_region {
		uint64_t start, length;		/* bytes */
		char name[CRI_RECORD_NAME];
	} region[CRI_RECORD_REGIONS];
} __attribute__((aligned(CRI_RECORD_PAGE)));

/* Each value: this head, then its bytes; the next one follows at once. */
struct cri_record_value {
	char key[CRI_RECORD_NAME];
	uint32_t length;		/* of the value */
} __attribute__((packed));

struct cri_record_values {
	uint32_t length;		/* of data in use */
	char data[CRI_RECORD_VALUES];
} __attribute__((aligned(CRI_RECORD_PAGE)));

struct cri_record {
	struct cri_record_head head;
	struct cri_record_restart restart;
	struct cri_record_ranges ranges[2];
	struct cri_record_regions regions[2];
	struct cri_record_values values[2];
};

/*
 * The tools' end of the socket of each request has a name in the abstract namespace:
 * this and 16 random hexadecimal digits.  By it the other end, in the program, is
 * recognised where the kernel tells nothing of peers (no unix_diag).
 */
#define CRI_TOOL_NAME		"kcr-tool-"

/*
 * The writer is part of a saved program and may be of another release than the
 * reader.  New members come at the end, or in the head where it was 0 so far,
 * and existing ones keep their offsets; a reader goes by head.size.
 */
#define CRI_RECORD_FIRST_SIZE	241664	/* bytes, in the first release */

_Static_assert(sizeof(struct cri_record_restart) == 2 * CRI_RECORD_PAGE, "whole pages");
_Static_assert(sizeof(struct cri_record) == CRI_RECORD_FIRST_SIZE, "readers know which parts "
	       "are newer than the first release");

#endif /* LIBCR_RECORD_H */
