// SPDX-License-Identifier: GPL-2.0
/*
 * The list of mappings in /proc/self/maps is the same, line by line, and so are
 * the executable, command line, environment and auxiliary vector of /proc/self.
 */
#include "check.h"

static char before[4][1 << 16], after[4][1 << 16];
static const char *const files[4] = {
	"/proc/self/maps", "/proc/self/cmdline", "/proc/self/environ", "/proc/self/auxv",
};

/* Says which lines differ. */
static void compare(char *a, char *b)
{
	while (*a || *b) {
		size_t x = strcspn(a, "\n"), y = strcspn(b, "\n");

		if (x != y || memcmp(a, b, x))
			fprintf(stderr, "# was %.*s\n# is  %.*s\n", (int)x, a, (int)y, b);
		a += x + (a[x] != '\0');
		b += y + (b[y] != '\0');
	}
}

int main(int argc, char **argv)
{
	char exe[2][256] = { "", "" };

	check_begin(argc, argv);
	for (int i = 0; i < 4; i++)
		check_slurp(files[i], before[i], sizeof(before[i]));
	NEED(readlink("/proc/self/exe", exe[0], 255) > 0);
	check_ready();
	check_wait();
	for (int i = 0; i < 4; i++)
		check_slurp(files[i], after[i], sizeof(after[i]));
	for (int i = 0; i < 4; i++)
		CHECK(!memcmp(before[i], after[i], sizeof(before[i])));
	compare(before[0], after[0]);
	CHECK(readlink("/proc/self/exe", exe[1], 255) > 0 && !strcmp(exe[0], exe[1]));
	return check_end();
}
