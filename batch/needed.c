// SPDX-License-Identifier: GPL-2.0
/*
 * Which checkpoints need which: an increment names its ancestors by their ids, so files are
 * compared, not names.  The folder of an MPI job's snapshot has links of all that it needs.
 */
#include "batch/needed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/chain.h"
#include "image/context.h"
#include "report/report.h"

static void mark_file(const struct folder *f, const struct folder_checkpoint *all, ssize_t count,
		      const struct stat *file, bool *needed)
{
	char path[PATH_MAX];
	struct stat st;

	for (ssize_t i = 0; i < count; i++)
		needed[i] |= !all[i].mpi &&
			     !lstat(folder_checkpoint_path(f, &all[i], path), &st) &&
			     st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Of one checkpoint, open at `fd`. */
static int open_older(int fd, const char *path, struct chain **out)
{
	struct context_reader *reader = NULL;
	struct context *context = NULL;
	int err = context_reader_new(&reader, fd, path);

	if (!err)
		err = context_load(reader, &context);
	if (!err)
		err = chain_open(out, context->preamble, path, fd, NULL);
	context_free(context);
	context_reader_free(reader);
	return err;
}

static int mark_older(const struct folder *f, const struct folder_checkpoint *all, ssize_t count,
		      const struct folder_checkpoint *one, bool *needed)
{
	struct chain *chain = NULL;
	char path[PATH_MAX];
	int fd, err;

	fd = open(folder_checkpoint_path(f, one, path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return report_errno(-errno, "%s", path);
	err = open_older(fd, path, &chain);
	for (size_t k = 0; !err && k < chain->count; k++)
		mark_file(f, all, count, &chain->member[k].st, needed);
	chain_free(chain);
	close(fd);
	return err;
}

int needed_mark(const struct folder *f, const struct folder_checkpoint *all, ssize_t count,
		size_t keep, bool *needed)
{
	int err = 0;

	for (ssize_t i = 0; i < count && (size_t)i < keep && !err; i++) {
		needed[i] = true;
		if (!all[i].mpi)
			err = mark_older(f, all, count, &all[i], needed);
	}
	return err;
}
