// SPDX-License-Identifier: GPL-2.0
/* Built for processors with AVX2 (arch.mk), which the header of xxhash then makes use of. */
#include "arch/x86/hash_avx2.h"

XXH128_hash_t hash_avx2(const void *data, size_t length)
{
	return XXH3_128bits(data, length);
}
