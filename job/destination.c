// SPDX-License-Identifier: GPL-2.0
/*
 * The snapshot is created as NAME.kcr.partial and renamed once everything is on the
 * disk; what had the name before is kept under another one.  See destination.h.
 */
#include "job/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/folder.h"
#include "job/local.h"
#include "job/manifest.h"
#include "job/turn.h"
#include "report/report.h"

struct job_destination {
	char *path;		/* the snapshot's name */
	char *partial;		/* its name until it is complete */
	char *aside;		/* what had that name and could not be removed; NULL */
	char *local;		/* the nodes' folder for the ranks' files; NULL: in here */
	struct turn turn;
	unsigned int keep;
	bool committed;
};

/* ---- open ---------------------------------------------------------------------------- */

void job_destination_remove(const char *dir, char ***gone)
{
	char *folder, *gathered;

	if (!folder_is_own(dir))
		return;			/* where others may write, they may have made it */
	folder = local_folder(dir);
	gathered = folder_path("%s/" LOCAL_LINK, dir);
	if (folder)
		strings_add(gone, folder);
	else if (gathered)
		folder_remove(gathered);
	free(gathered);
	free(folder);
	folder_remove(dir);
}

static int make_partial(const char *name, const char *local)
{
	int err;

	if (mkdir(name, 0700))
		return -errno;
	err = local ? local_link(name, local) : 0;
	if (err)
		rmdir(name);
	return err;
}

/*
 * A file that a cr_checkpoint of the last one still has open stays in a folder of NFS (as .nfs…) until
 * that ends: which it has, when this one is complete or given up.
 */
static int move_aside(struct job_destination *d)
{
	uint64_t number;

	if (!folder_is_own(d->partial))
		return -EEXIST;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	d->aside = folder_path("%s.%016" PRIx64, d->partial, number);
	if (!d->aside)
		return -ENOMEM;
	return rename(d->partial, d->aside) ? -errno : 0;
}

static int open_folders(struct job_destination *d, const char *parent, char ***gone)
{
	int err;

	d->partial = d->path ? folder_path("%s.partial", d->path) : NULL;
	d->local = parent && d->path ? local_name(parent, d->path) : NULL;
	if (!d->partial || (parent && !d->local))
		return report_fail(-ENOMEM, "no memory");
	err = turn_take(&d->turn, d->path);
	if (err)
		return err;
	job_destination_remove(d->partial, gone);	/* left by a job that died */
	err = make_partial(d->partial, d->local);
	if (err == -EEXIST)
		err = move_aside(d) ?: make_partial(d->partial, d->local);
	return err ? report_errno(err, "cannot create %s", d->partial) : 0;
}

static void free_destination(struct job_destination *d)
{
	turn_end(&d->turn);
	free(d->path);
	free(d->partial);
	free(d->aside);
	free(d->local);
	free(d);
}

int job_destination_open(struct job_destination **out, const char *path, const char *local,
			 unsigned int keep, char ***gone)
{
	struct job_destination *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return report_fail(-ENOMEM, "no memory");
	d->path = strdup(path);
	d->keep = keep;
	err = open_folders(d, local, gone);
	if (err)
		free_destination(d);
	else
		*out = d;
	return err;
}

const char *job_destination_folder(const struct job_destination *d, bool *local)
{
	*local = d->local;
	return d->local ? d->local : d->partial;
}

/* ---- commit -------------------------------------------------------------------------- */

/* The node of each rank, in order: mpirun's --map-by seq places them accordingly. */
static int write_hosts(const char *partial, const struct snapshot *s)
{
	char *path = folder_path("%s/" SNAPSHOT_HOSTS, partial);
	FILE *out = path ? fopen(path, "wxe") : NULL;
	int err = out ? 0 : -errno;

	for (uint32_t i = 0; out && i < s->nr_ranks; i++)
		fprintf(out, "%s\n", s->rank[i].node);
	if (out && (fflush(out) || fsync(fileno(out))))
		err = -errno;
	if (out && fclose(out) && !err)
		err = -errno;
	free(path);
	return err;
}

/* Moves what had the name to `aside` and the new one in its place, atomically if possible. */
static int exchange(const char *path, const char *partial, const char *aside)
{
	int err = 0;

	if (!renameat2(AT_FDCWD, partial, AT_FDCWD, path, RENAME_EXCHANGE)) {
		if (rename(partial, aside)) {
			err = -errno;
			renameat2(AT_FDCWD, partial, AT_FDCWD, path, RENAME_EXCHANGE);
		}
		return err;
	}
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (rename(path, aside))
		return -errno;
	if (rename(partial, path)) {
		err = -errno;
		rename(aside, path);
	}
	return err;
}

/* `old`: the interval number of what has the name; 0: nothing. */
static int give_name(const char *path, const char *partial, uint32_t old, char ***gone)
{
	char *aside;
	int err;

	if (!old)
		return rename(partial, path) ? -errno : 0;
	aside = folder_path("%s.~%" PRIu32 "~", path, old);
	if (!aside)
		return -ENOMEM;
	job_destination_remove(aside, gone);
	err = exchange(path, partial, aside);
	free(aside);
	return err;
}

/* Is it what is left of a snapshot whose manifest was lost? */
static bool is_damaged(const char *path)
{
	char *file = folder_path("%s/rank.0.ctx", path), *local = folder_path("%s/" LOCAL_LINK, path);
	struct stat st;
	bool is = folder_is_own(path) && file && local && (!lstat(file, &st) || !lstat(local, &st));

	free(local);
	free(file);
	return is;
}

/* The interval number of what has the name; 0: nothing; or -EEXIST. */
static int number_of(const char *path, uint32_t newest, uint32_t *number)
{
	struct snapshot *before = NULL;
	int err;

	*number = 0;
	if (access(path, F_OK))
		return 0;
	err = snapshot_load_one(path, &before);
	if (!err) {
		*number = before->interval ? before->interval : 1;
		snapshot_free(before);
		return 0;
	}
	if (err == -ENOMEM || !is_damaged(path))
		return report_fail(-EEXIST, "%s exists and is not a snapshot of an MPI job", path);
	report_clear();
	*number = newest + 1;
	return 0;
}

/*
 * The new one's interval number is higher than those of all that had the name before, perhaps of
 * other jobs, as the oldest go by that; *old: as for give_name().
 */
static int number(const char *path, struct snapshot *s, uint32_t *old)
{
	unsigned int count;
	uint32_t newest = snapshot_find_kept(path, true, 0, &count);
	int err = number_of(path, newest, old);

	if (newest < *old)
		newest = *old;
	if (s->interval <= newest)
		s->interval = newest + 1;
	return err;
}

static void forget_oldest(const char *path, unsigned int keep, char ***gone)
{
	unsigned long oldest;
	unsigned int count;

	while ((oldest = snapshot_find_kept(path, false, 0, &count)) && count > keep - 1) {
		char *name = folder_path("%s.~%lu~", path, oldest);

		if (name)
			job_destination_remove(name, gone);
		if (!name || !access(name, F_OK)) {
			free(name);
			return;
		}
		free(name);
	}
}

/* Writes what is not a rank's, and checks that all ranks have written theirs. */
static int complete(const struct job_destination *d, const struct snapshot *s)
{
	char *manifest = folder_path("%s/" SNAPSHOT_MANIFEST, d->partial);
	int err = manifest ? manifest_write(manifest, s) : -ENOMEM;

	free(manifest);
	if (!err && d->local)
		err = write_hosts(d->partial, s);
	if (!err)
		err = folder_sync(d->partial);
	/* A node may have written to another folder that it took for this one. */
	if (!err && !d->local)
		err = snapshot_check_written(d->partial, s);
	return err;
}

int job_destination_commit(struct job_destination *d, struct snapshot *s, char ***gone)
{
	uint32_t old;
	int err;

	s->local = d->local;
	err = number(d->path, s, &old);
	if (!err)
		err = complete(d, s);
	if (!err)
		err = give_name(d->path, d->partial, old, gone);
	if (err)
		return report_errno(err, "cannot complete %s", d->path);
	d->committed = true;
	err = folder_sync_parent(d->path);
	if (err)	/* a crash may bring the old name back: what it stands for stays */
		return report_errno(err, "%s is complete, but may not be on the disk", d->path);
	forget_oldest(d->path, d->keep, gone);
	return 0;
}

bool job_destination_committed(const struct job_destination *d)
{
	return d && d->committed;
}

void job_destination_close(struct job_destination *d, char ***gone)
{
	if (!d)
		return;
	if (!d->committed)
		job_destination_remove(d->partial, gone);
	if (d->aside)
		job_destination_remove(d->aside, gone);
	free_destination(d);
}
