/* SPDX-License-Identifier: GPL-2.0 */
/* For processors that have AVX2. */
#ifndef KCR_ARCH_HASH_AVX2_H
#define KCR_ARCH_HASH_AVX2_H

#include "arch/hash.h"

/* As arch_hash(). */
XXH128_hash_t hash_avx2(const void *data, size_t length);

#endif /* KCR_ARCH_HASH_AVX2_H */
