/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The blob: the address range in a half-restored process that survives the
 * exchange of its memory: the restorer's code, scripts, their data, stacks.
 * It is mapped at its final address from the start, so addresses in it are
 * final; KCR_IOC_ENTER unmaps it.  script.h is the part that resources see.
 */
#ifndef KCR_REBUILD_BLOB_H
#define KCR_REBUILD_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "rebuild/restorer.h"
#include "rebuild/script.h"

struct blob {
	uint64_t base;
	uint64_t length;
	uint64_t used;			/* bytes, from base */
	uint64_t status;		/* address of the status page in the blob */
	uint64_t run;			/* address of restorer_run() in the blob */
	int error;			/* first failure of an allocation */
};

/*
 * Maps a blob at base: the code, a second view of the shared status page, and
 * room for the rest.  -errno, reported.
 */
int blob_map(struct blob *blob, uint64_t base, uint64_t length, struct restorer_status *status);

/* Zeroed bytes; 0 (and blob->error) if it is full. align: a power of two. */
uint64_t blob_reserve(struct blob *blob, uint64_t length, uint64_t align);

/* A new, empty script; NULL: no memory. */
struct script *script_new(struct blob *blob);
void script_free(struct script *s);

/* Copies the operations into the blob; address of a struct restorer_script, or 0. */
uint64_t script_finish(struct script *s);

/* What only the restart itself uses. */
void script_copy(struct script *s, const char *label, uint64_t to, uint64_t from, uint64_t length);
/* A call that creates this thread; exact: with its saved thread ID. */
void script_clone(struct script *s, int32_t saved_tid, bool exact, long nr,
		  uint64_t a0, uint64_t a1, uint64_t a2);
void script_enter(struct script *s, const char *label, int job, uint64_t request, uint64_t xsave);
uint64_t script_data_aligned(struct script *s, const void *data, size_t length, size_t align);

/* Runs a finished script on a stack in the blob. Does not return. */
void blob_run(const struct blob *blob, uint64_t script, uint64_t stack_top)
	__attribute__((noreturn));

#endif /* KCR_REBUILD_BLOB_H */
