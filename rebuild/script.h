/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A script: the system calls that a rebuilt thread makes after its old address
 * space is unmapped, executed by rebuild/restorer.c.  Data they point to is
 * copied into the blob; addresses are final.
 */
#ifndef KCR_REBUILD_SCRIPT_H
#define KCR_REBUILD_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

struct script;

/*
 * Appends a call that must not fail (label names it in messages).  A failure
 * to allocate is remembered and reported when the script is finished.
 */
void script_call(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* The result must be `expected`. */
void script_call_expect(struct script *s, const char *label, uint64_t expected, long nr,
			uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			uint64_t a5);
/* The result does not matter. */
void script_call_try(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		     uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* If it succeeds, the next operation, which stands for it, is left out. */
void script_call_or_next(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
			 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* Likewise; else it is noted that the process with this saved ID has lost something. */
void script_call_or_noted(struct script *s, const char *label, int32_t pid, long nr, uint64_t a0,
			  uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/*
 * timer_create(clock, event) until the timer's id is `id`; event is the final
 * address of a struct sigevent.
 */
void script_timer_create(struct script *s, const char *label, int32_t clock, uint64_t event,
			 int32_t id);

/* Copies data beside the script (16-byte aligned); returns its final address. */
uint64_t script_data(struct script *s, const void *data, size_t length);

#endif /* KCR_REBUILD_SCRIPT_H */
