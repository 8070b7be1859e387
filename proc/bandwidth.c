// SPDX-License-Identifier: GPL-2.0
/* See bandwidth.h. */
#include "proc/bandwidth.h"

#include <stdlib.h>
#include <string.h>

#define MOST	1e15

uint64_t bandwidth_parse(const char *text)
{
	static const char units[] = "KMG";
	const char *unit;
	double rate;
	char *end;

	if (*text < '0' || *text > '9')		/* strtod() also takes signs, "inf" and the like */
		return 0;
	rate = strtod(text, &end);
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *each = units; unit && each <= unit; each++)
		rate *= 1000;
	end += unit != NULL;
	return *end || !(rate >= BANDWIDTH_LEAST && rate <= MOST) ? 0 : (uint64_t)rate;
}
