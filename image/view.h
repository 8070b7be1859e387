/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cr_info shows of a context file: text for people, JSON for programs, an
 * ELF core for debuggers.
 */
#ifndef KCR_IMAGE_VIEW_H
#define KCR_IMAGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "context.h"
#include "summary.h"

/*
 * `summary` may be NULL; `bytes`: of the file, 0: not known; `all`: also every thread with
 * its registers, memory area and descriptor.
 */
void text_write(FILE *out, const struct context *c, const struct summary *summary, uint64_t bytes,
		bool all);
/* A part of it: the files that must exist. */
void text_needs(FILE *out, const struct context *c);
/* A part of it: what a process has declared through libcr. */
void text_record(FILE *out, const Kcr__Record *record, bool all);
/* Prints a string from an untrusted file. */
void text_put(FILE *out, const char *text);
/* One object with all metadata; see cr_info(1). */
void json_write(FILE *out, const struct context *c, const struct summary *summary);

/* The kind of `file`: "regular", "pipe" … */
const char *view_file_kind(const Kcr__File *file);
/* Its path or other name; "" if it has none. */
const char *view_file_name(const Kcr__File *file);

/*
 * Writes process `pid` as an ELF core to `path`, which is replaced; the context
 * file is read to its trailer.  Memory that the context file leaves to the mapped
 * files is copied from these if they are unchanged.
 */
int core_write(struct context_reader *r, const struct context *c, int32_t pid,
	       const char *path);

/* The notes of the core, in one allocation. */
int core_notes(const struct context *c, const Kcr__Process *p, const Kcr__Mm *mm, void **out,
	       size_t *length);

#endif /* KCR_IMAGE_VIEW_H */
