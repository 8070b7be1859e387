/* SPDX-License-Identifier: GPL-2.0 */
/* Hashes, in the way that suits this processor. */
#ifndef KCR_ARCH_HASH_H
#define KCR_ARCH_HASH_H

#include <stddef.h>
#include <xxhash.h>

/* The XXH3 of 128 bits, without a seed, of so many bytes. */
XXH128_hash_t arch_hash(const void *data, size_t length);

#endif /* KCR_ARCH_HASH_H */
