/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that a vdso offers, read from its bytes.  The bytes may come
 * from a file: nothing in them is trusted.
 */
#ifndef KCR_RESTART_VDSO_SYMBOLS_H
#define KCR_RESTART_VDSO_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define VDSO_SYMBOLS_MAX	32

struct vdso_symbol {
	const char *name;		/* in the bytes given */
	uint64_t value;			/* offset of its first instruction */
	uint64_t size;			/* within the bytes given */
};

struct vdso_symbols {
	struct vdso_symbol at[VDSO_SYMBOLS_MAX];
	size_t count;
};

/* 0, or -EINVAL: not an ELF image with a dynamic symbol table. */
int vdso_symbols(struct vdso_symbols *out, const void *image, size_t length);

/* The one of this name, or NULL. */
const struct vdso_symbol *vdso_symbol(const struct vdso_symbols *symbols, const char *name);

#endif /* KCR_RESTART_VDSO_SYMBOLS_H */
