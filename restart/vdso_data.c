// SPDX-License-Identifier: GPL-2.0
/*
 * Zeros in the place of the kernel's data: since Linux 5.10 at least, another sequence number makes the
 * old code read a clock anew, and clock mode 0 makes it ask the kernel.  Only a coarse clock, time(2)
 * or clock_getres(2) tells 0 then.
 *
 * The old getrandom() (since 6.11) would take the zeros for its keys, as its own state is not saved:
 * it notices that only by a generation other than that state's, which is 0, too.  So that number is not
 * 0 here.  The function refers to it, and clock_gettime() does not.  Where it has no page of its own
 * (until 6.14), time namespaces have its page elsewhere among the data.  Where it is not found there is
 * nothing in the place of the data: the thread ends, rather than draw numbers that somebody knows.
 * See vdso_data.h.
 */
#include "restart/vdso_data.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/vdso.h"
#include "rebuild/blob.h"
#include "restart/vdso_symbols.h"

#define PAGE		4096ull
#define NOWHERE		UINT64_MAX
#define OTHER		(~0ull)		/* a generation that there will not be */
#define READY		8u		/* bytes behind it: whether there are keys at all */

struct vdso_code {
	const uint8_t *text;
	uint64_t address;
};

/* What the four bytes at `at` refer to, if an instruction ends with them as a distance. */
static uint64_t referred(const struct vdso_code *code, uint64_t at)
{
	return arch_far_target(code->text + at - 1, code->address + at - 1);
}

/* Does it to something of these `size` bytes? */
static bool refers(const struct vdso_code *code, const struct vdso_symbol *function, uint64_t place,
		   uint64_t size)
{
	for (uint64_t at = 1; function && at + 4 <= function->size; at++)
		if (referred(code, function->value + at) - place < size)
			return true;
	return false;
}

uint64_t vdso_data_generation(const uint8_t *text, size_t length, uint64_t address, uint64_t low,
			      uint64_t high, bool *everywhere)
{
	const struct vdso_code code = { text, address };
	const struct vdso_symbol *random, *clock;
	struct vdso_symbols symbols;
	uint64_t first = NOWHERE, last = 0;

	if (vdso_symbols(&symbols, text, length))
		return NOWHERE;
	random = vdso_symbol(&symbols, "__vdso_getrandom");
	clock = vdso_symbol(&symbols, "__vdso_clock_gettime");
	if (!random)
		return 0;
	for (uint64_t at = 1; at + 4 <= random->size; at++) {
		uint64_t place = referred(&code, random->value + at);

		if (place % 8 || place < low || place >= high || refers(&code, clock, place, 1))
			continue;
		first = place < first ? place : first;
		last = place > last ? place : last;
	}
	*everywhere = refers(&code, clock, first & -PAGE, PAGE);
	return first == last || first + READY == last ? first : NOWHERE;
}

static uint64_t find_generation(const struct vdso *v, const Kcr__Mm *mm, bool *everywhere)
{
	const struct range *text = vdso_text(&v->saved);
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < v->saved.count; i++) {
		const struct range *data = &v->saved.at[i];

		if (data->text)
			continue;
		low = data->start < low ? data->start : low;
		high = data->end > high ? data->end : high;
	}
	return vdso_data_generation(mm->vdso_text.data, mm->vdso_text.len, text->start, low, high,
				    everywhere);
}

static void map_data(const struct range *data, uint64_t generation, bool everywhere, struct script *s)
{
	uint64_t length = data->end - data->start, other = OTHER;
	uint64_t bytes = script_data(s, &other, sizeof(other));

	script_call_expect(s, "the data of the old vdso", data->start, SYS_mmap, data->start, length,
			   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			   (uint64_t)-1, 0);
	for (uint64_t page = data->start; generation && page < data->end; page += PAGE)
		if (everywhere || page == (generation & -PAGE))
			script_copy(s, "the data of the old vdso", page + generation % PAGE, bytes,
				    sizeof(other));
	script_call(s, "the data of the old vdso", SYS_mprotect, data->start, length, PROT_READ, 0, 0, 0);
}

void vdso_data_script(const struct vdso *v, const Kcr__Mm *mm, struct script *s)
{
	bool everywhere = false;
	uint64_t generation = find_generation(v, mm, &everywhere);

	for (size_t i = 0; i < v->saved.count && generation != NOWHERE; i++)
		if (!v->saved.at[i].text)
			map_data(&v->saved.at[i], generation, everywhere, s);
}
