// SPDX-License-Identifier: GPL-2.0
/* Lengths of time; see duration.h. */
#include "proc/duration.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE		60
#define HOUR		(60 * MINUTE)
#define DAY		(24 * HOUR)
#define LONGEST		(100ll * 365 * DAY)

/* Reads a number without sign at *text, and moves behind it; -1: there is none. */
static int64_t take_number(const char **text)
{
	int64_t number = 0;

	if (!isdigit((unsigned char)**text))
		return -1;
	for (; isdigit((unsigned char)**text); ++*text) {
		number = number * 10 + (**text - '0');
		if (number > LONGEST)
			return -1;
	}
	return number;
}

static int64_t unit_of(char letter)
{
	switch (letter) {
	case 's': return 1;
	case 'm': return MINUTE;
	case 'h': return HOUR;
	case 'd': return DAY;
	default: return -1;
	}
}

/* [HH:]MM:SS, of which the first number has been read. */
static int64_t take_clock(int64_t first, const char **text)
{
	int64_t total = first;

	for (int parts = 1; **text == ':' && parts < 3; parts++) {
		int64_t next;

		++*text;
		next = take_number(text);
		if (next < 0 || next >= 60)
			return -1;
		total = total * 60 + next;
	}
	return total;
}

static bool is_sane(int64_t seconds, const char *rest)
{
	return seconds >= 0 && seconds <= LONGEST && !*rest;
}

int64_t duration_parse(const char *text)
{
	int64_t total = take_number(&text), days = 0, hours;

	if (total < 0)
		return -1;
	if (*text && unit_of(*text) > 0) {
		total *= unit_of(*text);
		return is_sane(total, text + 1) ? total : -1;
	}
	if (*text == '-') {
		days = total;
		text++;
		hours = take_number(&text);
		if (hours < 0 || hours > 23 || *text != ':')
			return -1;
		total = hours;
	}
	total = take_clock(total, &text);
	if (total < 0 || days > LONGEST / DAY)
		return -1;
	total += days * DAY;
	return is_sane(total, text) ? total : -1;
}

char *duration_format(char *out, size_t size, int64_t seconds)
{
	long long s = seconds;

	if (s < MINUTE)
		snprintf(out, size, "%lld s", s);
	else if (s < HOUR)
		snprintf(out, size, "%lld min %lld s", s / MINUTE, s % MINUTE);
	else if (s < DAY)
		snprintf(out, size, "%lld h %lld min", s / HOUR, s % HOUR / MINUTE);
	else
		snprintf(out, size, "%lld d %lld h", s / DAY, s % DAY / HOUR);
	return out;
}
