// SPDX-License-Identifier: GPL-2.0
/*
 * What cr_restart and then cr_mpirun do with a job's snapshot before they start anything: the
 * manifest of one of so many ranks, whose files are empty, is read by their own code.
 */
#include "scale.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/folder.h"
#include "job/manifest.h"
#include "job/snapshot.h"

static void write_snapshot(const char *folder, uint32_t ranks)
{
	struct snapshot s = { .interval = 1, .openmpi = "4.1.4", .kcr = "0", .cwd = "/",
			      .options = (char *[]){ NULL }, .program = (char *[]){ "job", NULL },
			      .environment = (char *[]){ NULL }, .nr_ranks = ranks,
			      .rank = calloc(ranks, sizeof(*s.rank)) };
	char *path = folder_path("%s/" SNAPSHOT_MANIFEST, folder), *file;
	int fd;

	for (uint32_t i = 0; i < ranks; i++) {
		s.rank[i] = (struct snapshot_rank){ .node = "node1000", .file.id = scale_sent(i, i) };
		file = snapshot_rank_path(folder, i);
		fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			scale_fail(file);
		close(fd);
		free(file);
	}
	if (manifest_write(path, &s))
		scale_fail(path);
	free(path);
	free(s.rank);
}

/* One of them; `checks`: are all files there? */
static void load(const char *folder, bool checks)
{
	struct snapshot *s = NULL;
	uint32_t elsewhere;
	char *found = NULL;

	errno = EBADMSG;
	if (snapshot_load(folder, &s, &found) || (checks && snapshot_check(found, s, NULL, &elsewhere)))
		scale_fail(folder);
	snapshot_free(s);
	free(found);
}

double scale_read(uint32_t ranks)
{
	char folder[] = "/tmp/kcr-scale.XXXXXX";
	double used;

	if (!mkdtemp(folder))
		scale_fail("a folder");
	write_snapshot(folder, ranks);
	used = scale_used(getpid());
	load(folder, true);		/* cr_restart, … */
	load(folder, false);		/* … cr_mpirun */
	used = scale_used(getpid()) - used;
	folder_remove(folder);
	return used;
}
