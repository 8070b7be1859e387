// SPDX-License-Identifier: GPL-2.0
/* Ranks' output from before.  See output.h. */
#include "launch/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

/* The first FOLDER.N that is free. */
static char *free_name(const char *folder, size_t length, unsigned int number)
{
	char *name = NULL;

	while (asprintf(&name, "%.*s.%u", (int)length, folder, number++) >= 0) {
		if (access(name, F_OK))
			return name;
		free(name);
	}
	return NULL;
}

int output_keep(struct command *c, unsigned int least)
{
	char **word = c->output ? &c->proxied[c->output] : NULL, *name, *value;
	size_t end = word ? strcspn(*word, ":") : 0, length = end;

	if (!word || c->major > 4)
		return 0;
	while (length > 1 && (*word)[length - 1] == '/')
		length--;
	name = free_name(*word, length, least ?: 1);
	if (!name || asprintf(&value, "%s%s", name, *word + end) < 0) {
		free(name);
		return report_fail(-ENOMEM, "no memory");
	}
	fprintf(stderr, "KCR: what the ranks write from now on is in %s: mpirun would empty the files in "
		"%.*s\n", name, (int)length, *word);
	free(name);
	free(*word);
	*word = value;
	return 0;
}
