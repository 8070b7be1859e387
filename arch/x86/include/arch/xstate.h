/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Floating point, vectors and all else that a processor saves and loads with them, as
 * read by the module and held in context files: on x86 an XSAVE area in its standard
 * form (Intel SDM volume 1, 13.4).  "Features" are bits for its components.
 */
#ifndef KCR_ARCH_XSTATE_H
#define KCR_ARCH_XSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_XSTATE_ALIGN	64	/* bytes, for arch_xstate_put() */
#define ARCH_XSTATE_BITS	64	/* for features */
#define ARCH_XSTATE_FPREGS	512	/* bytes at its start: a note of their own for debuggers */

/*
 * Where the states of one machine have each feature that lies behind the header, by its bit.
 * Processors differ: AMD's have AVX-512 elsewhere than Intel's.
 */
struct arch_xstate_part {
	uint32_t offset;
	uint32_t length;	/* 0: there is none */
};

struct arch_xstate_layout {
	struct arch_xstate_part part[ARCH_XSTATE_BITS];
};

/* Is this a valid length, in bytes? */
bool arch_xstate_has_length(size_t length);

/* Is it in the form we know?  For a state of a valid length. */
bool arch_xstate_has_form(const void *state);

/* Can a feature with this bit lie there? */
bool arch_xstate_has_part(uint32_t bit, uint32_t offset, uint32_t length);

/* The features that are in use in it; 0: it is too short to contain them. */
uint64_t arch_xstate_features(const void *state, size_t length);

/* Their names, with spaces between them, those without one as numbers; returns `out`. */
char *arch_xstate_names(uint64_t features, char *out, size_t size);

/* ---- this machine's processor ------------------------------------------------------ */

/* The features that programs may use here. */
uint64_t arch_xstate_enabled(void);

/* Bytes that loading a state may read here. */
uint32_t arch_xstate_size(void);

/* That of this machine. */
void arch_xstate_layout(struct arch_xstate_layout *out);

/*
 * Can a state be put into the layout of this machine?  All of its features are enabled.
 * from: its own layout, NULL: unknown.
 */
bool arch_xstate_has_layout(const void *state, size_t length, const struct arch_xstate_layout *from);

/*
 * Copies a state to `at`, aligned and of arch_xstate_size() zeroed bytes, in the layout of this
 * machine, without bits that would fault when loaded and that the kernel never sets.
 */
void arch_xstate_put(void *at, const void *state, size_t length,
		     const struct arch_xstate_layout *from);

/* Does it keep a thread from memory under no protection key?  A state of this machine. */
bool arch_xstate_locks_memory(const void *state, size_t length);

/* ---- in ELF cores ------------------------------------------------------------------ */

/* Writes into a note's copy what debuggers need; features: enabled, 0: unknown. */
void arch_xstate_note(void *state, size_t length, uint64_t features);

#endif /* KCR_ARCH_XSTATE_H */
