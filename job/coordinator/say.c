// SPDX-License-Identifier: GPL-2.0
/*
 * What the coordinator's thread tells the user.  It never waits for whoever reads that, as all that goes
 * on in the job passes through it: where launch/ is there, that prints it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/root_internal.h"
#include "report/format.h"

static struct wire *launch;

void say_begin(struct wire *to)
{
	launch = to;
}

void say_line(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	if (text && launch && launch->fd >= 0)
		wire_send(launch, WIRE_SAY, WIRE_ALL, 0, text, strlen(text) + 1);
	else if (text)
		fprintf(stderr, "KCR: %s\n", text);
	free(text);
}
