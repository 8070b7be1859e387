// SPDX-License-Identifier: GPL-2.0
/* Signal names; see signal_name.h. */
#include "proc/signal_name.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int plain_number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return end != text && !*end && n >= 0 && n <= 64 ? (int)n : -1;
}

/* RTMIN, RTMIN+n, RTMAX, RTMAX-n */
static int realtime_number(const char *text)
{
	int base, n = 0;

	if (!strncmp(text, "RTMIN", 5))
		base = SIGRTMIN;
	else if (!strncmp(text, "RTMAX", 5))
		base = SIGRTMAX;
	else
		return -1;
	text += 5;
	if (*text) {
		if (*text != (base == SIGRTMIN ? '+' : '-'))
			return -1;
		n = plain_number(text + 1);
		if (n < 0)
			return -1;
	}
	n = base == SIGRTMIN ? base + n : base - n;
	return n >= SIGRTMIN && n <= SIGRTMAX ? n : -1;
}

int signal_number(const char *text)
{
	if (plain_number(text) >= 0)
		return plain_number(text);
	if (!strncmp(text, "SIG", 3))
		text += 3;
	for (int n = 1; n < 32; n++) {
		const char *name = sigabbrev_np(n);

		if (name && !strcmp(name, text))
			return n;
	}
	return realtime_number(text);
}
