// SPDX-License-Identifier: GPL-2.0
/* restart/vdso_data.c finds the number by which getrandom() in a vdso notices new keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "restart/vdso_data.h"
#include "restart/vdso_symbols.h"

/* The range of that name in this process, or of none. */
static void find_range(const char *name, uint64_t range[2])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t start, end;
	char line[256];

	assert_non_null(maps);
	range[0] = UINT64_MAX;
	range[1] = 0;
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, name) && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			range[0] = start < range[0] ? start : range[0];
			range[1] = end > range[1] ? end : range[1];
		}
	fclose(maps);
}

/* In that of this kernel it is not 0, and behind it is said that there are keys. */
static void of_this_kernel(void **state)
{
	uint64_t text[2], data[2], place, generation;
	struct vdso_symbols symbols;
	bool everywhere;

	(void)state;
	find_range("[vdso]", text);
	find_range("[vvar", data);
	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	place = vdso_data_generation((const void *)(uintptr_t)text[0], text[1] - text[0], text[0],
				     data[0], data[1], &everywhere);
	assert_int_equal(vdso_symbols(&symbols, (const void *)(uintptr_t)text[0], text[1] - text[0]), 0);
	if (!vdso_symbol(&symbols, "__vdso_getrandom")) {
		assert_int_equal(place, 0);
		return;
	}
	assert_in_range(place, data[0], data[1] - 9);
	memcpy(&generation, (const void *)(uintptr_t)place, sizeof(generation));
	assert_int_not_equal(generation, 0);
	assert_int_equal(*(const uint8_t *)(uintptr_t)(place + 8), 1);
}

/* No image, or data elsewhere. */
static void unknown(void **state)
{
	uint8_t nothing[4096] = "no vdso";
	uint64_t text[2];
	bool everywhere;

	(void)state;
	assert_true(vdso_data_generation(nothing, sizeof(nothing), 1 << 20, 0, 1 << 20, &everywhere) == UINT64_MAX);
	find_range("[vdso]", text);
	if (text[1] && vdso_data_generation((const void *)(uintptr_t)text[0], text[1] - text[0], text[0],
					    1, 2, &everywhere))
		assert_true(vdso_data_generation((const void *)(uintptr_t)text[0], text[1] - text[0],
						 text[0], 1, 2, &everywhere) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_this_kernel),
		cmocka_unit_test(unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
