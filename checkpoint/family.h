/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages that several of the processes have in common since a fork, because none of them has
 * written to them (--dedup): the image has them once, and a restart makes them common again.
 *
 * The kernel tells which pages a process does not have for itself, and to those who may
 * know physical addresses, who else has them.  Others have such pages compared.  Either way
 * what is called common is equal, so a wrong guess costs only space.
 */
#ifndef KCR_CHECKPOINT_FAMILY_H
#define KCR_CHECKPOINT_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

struct address_space;
struct checkpoint;
struct context_chunk;
struct family;

/*
 * Looks for such pages of the stopped processes, before they are copied for a snapshot:
 * c->attempt.family, NULL if there are none.  0 or -errno with a message.
 */
int family_find(struct checkpoint *c);
void family_free(struct family *f);

/*
 * The next chunk of them, with its sharers, valid until family_free(): 1, 0: there are no
 * more, or -errno.  snapshot: they are read from the copies.
 */
int family_next(struct checkpoint *c, bool snapshot, struct context_chunk *chunk);

/*
 * Once all chunks were passed on: leaves out of [*start, *end) the first pages that are in
 * them, and all from the next such page on; nothing may be left.
 */
void family_leave_out(const struct address_space *space, uint64_t *start, uint64_t *end);

#endif /* KCR_CHECKPOINT_FAMILY_H */
