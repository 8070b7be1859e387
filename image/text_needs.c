// SPDX-License-Identifier: GPL-2.0
/* As text: the files and folders that must exist where the context file is restarted. */
#include <stdlib.h>
#include <string.h>

#include "view.h"

struct need {
	const char *path;
	bool unchanged;		/* it is mapped: the restart refuses another version */
};

static struct need need_of(const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;

	if (file->kind_case == KCR__FILE__KIND_DIRECTORY)
		return (struct need){ file->directory->deleted ? NULL : file->directory->path, false };
	if (file->kind_case != KCR__FILE__KIND_REGULAR || regular->deleted ||
	    regular->shared_memory)
		return (struct need){};
	return (struct need){ regular->path, regular->must_match };
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct need *)a)->path, ((const struct need *)b)->path);
}

/* All of them, sorted, perhaps several times; NULL: no memory. */
static struct need *list_needs(const struct context *c, size_t *count)
{
	struct need *need = malloc((c->nr_files + 2 * c->nr_processes + 1) * sizeof(*need));
	size_t n = 0, i;

	for (i = 0; need && i < c->nr_files; i++) {
		need[n] = need_of(c->file[i]);
		n += need[n].path && need[n].path[0] == '/' &&
		     strncmp(need[n].path, "/proc/", 6) != 0;
	}
	for (i = 0; need && i < c->nr_processes; i++) {
		const Kcr__Process *p = c->process[i];

		if (p->cwd && !p->cwd_removed)
			need[n++] = (struct need){ p->cwd, false };
		if (p->root && strcmp(p->root, "/"))
			need[n++] = (struct need){ p->root, false };
	}
	if (need)
		qsort(need, n, sizeof(*need), compare);
	*count = n;
	return need;
}

void text_needs(FILE *out, const struct context *c)
{
	size_t count, i;
	struct need *need = list_needs(c, &count);
	bool unchanged = false;

	fputs("\nFiles and folders that a restart needs (*: the very same version):\n", out);
	for (i = 0; need && i < count; i++) {
		unchanged |= need[i].unchanged;
		if (i + 1 < count && !strcmp(need[i].path, need[i + 1].path))
			continue;
		fputs(unchanged ? "  * " : "    ", out);
		text_put(out, need[i].path);
		putc('\n', out);
		unchanged = false;
	}
	free(need);
}
