// SPDX-License-Identifier: GPL-2.0
/*
 * What cr_checkpoint has warned of while it saved a rank, for the one who asked for the
 * checkpoint.
 */
#include <stdio.h>
#include <string.h>

#include "job/coordinator/root_internal.h"

#define LENGTH	1000	/* bytes of one; with the others it must fit into an answer */

static void add(struct job_answer *answer, ptrdiff_t rank, const char *text, size_t length)
{
	int shown = length < LENGTH ? length : LENGTH;
	size_t i = 0;

	while (i < JOB_MAX_WARNINGS && answer->warning[i])
		i++;
	if (i < JOB_MAX_WARNINGS &&
	    asprintf(&answer->warning[i], "rank %td: %.*s", rank, shown, text) < 0)
		answer->warning[i] = NULL;
}

void warnings_take(struct root *root, const struct root_rank *r, const struct wire_header *h,
		   const uint8_t *data)
{
	const char *line = (const char *)data, *last = line + h->length, *end;

	for (; line < last && (end = memchr(line, '\n', last - line)); line = end + 1)
		add(&root->answer, r - root->rank, line, end - line);
}
