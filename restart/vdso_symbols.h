/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions of a vdso, read from its ELF image.  The image may come from a
 * context file, so nothing in it is trusted.
 */
#ifndef KCR_RESTART_VDSO_SYMBOLS_H
#define KCR_RESTART_VDSO_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define VDSO_SYMBOLS_MAX	32

struct vdso_symbol {
	const char *name;		/* points into the image */
	uint64_t value;			/* offset of its first instruction */
	uint64_t size;			/* bytes, all inside the image */
};

struct vdso_symbols {
	struct vdso_symbol at[VDSO_SYMBOLS_MAX];
	size_t count;
};

/* 0, or -EINVAL: not an ELF image with a dynamic symbol table. */
int vdso_symbols(struct vdso_symbols *out, const void *image, size_t length);

/* The symbol of this name, or NULL. */
const struct vdso_symbol *vdso_symbol(const struct vdso_symbols *symbols, const char *name);

#endif /* KCR_RESTART_VDSO_SYMBOLS_H */
