// SPDX-License-Identifier: GPL-2.0
/*
 * The XSAVE area: 512 bytes of FXSAVE, 64 of header, then components.  XRSTOR faults on
 * anything that the processor does not know.  See arch/xstate.h.
 */
#include "arch/xstate.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>

#define MAX_LENGTH		(64u << 10)
#define MXCSR			24		/* offsets in the area */
#define MXCSR_MASK		28
#define XCR0			464		/* where debuggers look for it */
#define HEADER			512
#define HEADER_LENGTH		64
#define MIN_LENGTH		(HEADER + HEADER_LENGTH)
#define MXCSR_DEFAULT_MASK	0xffbfu
#define FEATURES_SSE		3ull		/* in the part before the header */
#define FEATURES_AVX		7ull
#define AVX_LENGTH		832
#define FIRST_PART		2		/* the first component behind the header */
#define LAST_PART		62		/* 63 says that the area is a compact one */
#define PKRU			9		/* component, two bits for each key */
#define PKRU_KEY_0		3u

bool arch_xstate_has_length(size_t length)
{
	return length >= MIN_LENGTH && length <= MAX_LENGTH && length % 8 == 0;
}

bool arch_xstate_has_form(const void *state)
{
	static const uint8_t zero[HEADER_LENGTH - 8];

	return !memcmp((const uint8_t *)state + HEADER + 8, zero, sizeof(zero));
}

bool arch_xstate_has_part(uint32_t bit, uint32_t offset, uint32_t length)
{
	return bit >= FIRST_PART && bit <= LAST_PART && offset >= MIN_LENGTH && length &&
	       offset <= MAX_LENGTH && length <= MAX_LENGTH - offset;
}

uint64_t arch_xstate_features(const void *state, size_t length)
{
	uint64_t features = 0;

	if (length >= HEADER + sizeof(features))
		memcpy(&features, (const uint8_t *)state + HEADER, sizeof(features));
	return features;
}

char *arch_xstate_names(uint64_t features, char *out, size_t size)
{
	static const struct {
		uint64_t features;
		const char *name;
	} known[] = {
		{ 0x1, "x87" }, { 0x2, "SSE" }, { 0x4, "AVX" }, { 0x18, "MPX" }, { 0xe0, "AVX-512" },
		{ 0x200, "PKRU" }, { 0x60000, "AMX" }, { 0x80000, "APX" },
	};
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < sizeof(known) / sizeof(*known) && used < size; i++) {
		if (features & known[i].features)
			used += snprintf(out + used, size - used, "%s%s", used ? " " : "", known[i].name);
		features &= ~known[i].features;
	}
	for (unsigned int bit = 0; bit < 64 && used < size; bit++)
		if (features >> bit & 1)
			used += snprintf(out + used, size - used, "%s%u", used ? " " : "", bit);
	return out;
}

uint64_t arch_xstate_enabled(void)
{
	uint32_t low, high, a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

uint32_t arch_xstate_size(void)
{
	uint32_t a, b = 0, c, d;

	__get_cpuid_count(0xd, 0, &a, &b, &c, &d);
	return b;
}

void arch_xstate_layout(struct arch_xstate_layout *out)
{
	uint64_t enabled = arch_xstate_enabled();
	uint32_t size, offset, c, d;

	memset(out, 0, sizeof(*out));
	for (unsigned int bit = FIRST_PART; bit <= LAST_PART; bit++)
		if (enabled >> bit & 1 && __get_cpuid_count(0xd, bit, &size, &offset, &c, &d) &&
		    arch_xstate_has_part(bit, offset, size))
			out->part[bit] = (struct arch_xstate_part){ offset, size };
}

/* AVX is at the same place everywhere; PKRU may be read as zero, which forbids nothing. */
static bool may_have_layout(uint64_t features, size_t length)
{
	if (length <= MIN_LENGTH || features <= FEATURES_SSE || length == arch_xstate_size())
		return true;
	return length < arch_xstate_size() && !(features & ~(FEATURES_AVX | 1ull << PKRU));
}

bool arch_xstate_has_layout(const void *state, size_t length, const struct arch_xstate_layout *from)
{
	uint64_t features = arch_xstate_features(state, length);
	struct arch_xstate_layout here;

	if (!from)
		return may_have_layout(features, length);
	arch_xstate_layout(&here);
	for (unsigned int bit = FIRST_PART; bit <= LAST_PART; bit++) {
		const struct arch_xstate_part *part = &from->part[bit];

		if (features >> bit & 1 && (!part->length || part->length != here.part[bit].length ||
					    (uint64_t)part->offset + part->length > length))
			return false;
	}
	return true;
}

static uint32_t own_mxcsr_mask(void)
{
	uint8_t area[HEADER] __attribute__((aligned(16))) = { 0 };
	uint32_t mask;

	__asm__ volatile("fxsave (%0)" : : "r"(area) : "memory");
	memcpy(&mask, area + MXCSR_MASK, sizeof(mask));
	return mask ? mask : MXCSR_DEFAULT_MASK;
}

/* What is not in use is not read when the state is loaded. */
static void move_parts(uint8_t *area, const uint8_t *state, uint64_t features,
		       const struct arch_xstate_layout *from)
{
	struct arch_xstate_layout here;

	arch_xstate_layout(&here);
	for (unsigned int bit = FIRST_PART; bit <= LAST_PART; bit++)
		if (features >> bit & 1)
			memcpy(area + here.part[bit].offset, state + from->part[bit].offset,
			       here.part[bit].length);
}

void arch_xstate_put(void *at, const void *state, size_t length,
		     const struct arch_xstate_layout *from)
{
	uint32_t size = from ? MIN_LENGTH : arch_xstate_size(), mxcsr;
	uint8_t *area = at;

	memcpy(area, state, length < size ? length : size);
	if (from)
		move_parts(area, state, arch_xstate_features(state, length), from);
	memcpy(&mxcsr, area + MXCSR, sizeof(mxcsr));
	mxcsr &= own_mxcsr_mask();
	memcpy(area + MXCSR, &mxcsr, sizeof(mxcsr));
	memset(area + HEADER + 8, 0, HEADER_LENGTH - 8);
}

bool arch_xstate_locks_memory(const void *state, size_t length)
{
	uint32_t size, offset, c, d, pkru;

	if (!(arch_xstate_features(state, length) >> PKRU & 1) ||
	    !__get_cpuid_count(0xd, PKRU, &size, &offset, &c, &d) || offset + sizeof(pkru) > length)
		return false;
	memcpy(&pkru, (const uint8_t *)state + offset, sizeof(pkru));
	return pkru & PKRU_KEY_0;
}

void arch_xstate_note(void *state, size_t length, uint64_t features)
{
	features |= length >= AVX_LENGTH ? FEATURES_AVX : FEATURES_SSE;
	memcpy((uint8_t *)state + XCR0, &features, sizeof(features));
}
