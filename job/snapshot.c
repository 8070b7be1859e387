// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of a global snapshot: names, commit, older ones.  See snapshot.h.
 */
#include "job/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "job/folder.h"
#include "job/local.h"
#include "job/manifest.h"
#include "report/report.h"

#define SUM_BUFFER	(1 << 20)

/* ---- names ------------------------------------------------------------------------ */

char *snapshot_rank_path(const char *dir, uint32_t rank)
{
	char *local = folder_path("%s/" LOCAL_LINK, dir);
	struct stat st;
	bool is_local = local && !lstat(local, &st);

	free(local);
	return folder_path("%s%s/rank.%" PRIu32 ".ctx", dir, is_local ? "/" LOCAL_LINK : "", rank);
}

char *snapshot_name(const char *path)
{
	size_t end = strlen(SNAPSHOT_SUFFIX), length;
	char *name = folder_absolute(path), *full;

	length = name ? strlen(name) : 0;
	if (!name || (length > end && !strcmp(name + length - end, SNAPSHOT_SUFFIX)))
		return name;
	full = folder_path("%s" SNAPSHOT_SUFFIX, name);
	free(name);
	return full;
}

static char *trimmed(const char *dir)
{
	char *name = strdup(dir);

	for (size_t n = name ? strlen(name) : 0; n > 1 && name[n - 1] == '/'; n--)
		name[n - 1] = '\0';
	return name;
}

/* The interval number of `entry` if it is a kept "base.~K~", else 0. */
static unsigned long kept_number(const char *entry, const char *base)
{
	size_t length = strlen(base);
	unsigned long number;
	char *end;

	if (strncmp(entry, base, length) || strncmp(entry + length, ".~", 2))
		return 0;
	number = strtoul(entry + length + 2, &end, 10);
	return strcmp(end, "~") ? 0 : number;
}

/*
 * The newest (or oldest) kept snapshot of this name and how many there are;
 * 0: none.
 */
static unsigned long find_kept(const char *path, bool newest, unsigned int *count)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? folder_path("%.*s/", (int)(slash - path), path) : strdup(".");
	DIR *dir = parent ? opendir(parent) : NULL;
	unsigned long found = 0;
	struct dirent *entry;

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		unsigned long n = kept_number(entry->d_name, slash ? slash + 1 : path);

		if (!n)
			continue;
		++*count;
		if (!found || (newest ? n > found : n < found))
			found = n;
	}
	if (dir)
		closedir(dir);
	free(parent);
	return found;
}

bool snapshot_is(const char *dir)
{
	char *name = trimmed(dir), *manifest = name ? folder_path("%s/" SNAPSHOT_MANIFEST, name) : NULL;
	bool is = manifest && !access(manifest, F_OK);
	unsigned int count = 0;

	if (!is && name && access(name, F_OK))
		is = find_kept(name, true, &count) > 0;
	free(manifest);
	free(name);
	return is;
}

/* ---- reading ------------------------------------------------------------------------ */

static int load_from(const char *dir, struct snapshot **out)
{
	char *path = folder_path("%s/" SNAPSHOT_MANIFEST, dir);
	int err = path ? manifest_read(path, out) : -ENOMEM;

	free(path);
	if (!err)
		(*out)->local = local_folder(dir);
	return err;
}

int snapshot_load(const char *dir, struct snapshot **out, char **found)
{
	char *name = trimmed(dir);
	unsigned long newest;
	unsigned int count;
	int err;

	if (!name)
		return report_fail(-ENOMEM, "no memory");
	err = load_from(name, out);
	newest = err == -ENOENT ? find_kept(name, true, &count) : 0;
	if (newest) {
		char *kept = folder_path("%s.~%lu~", name, newest);

		free(name);
		name = kept;
		err = name ? load_from(name, out) : -ENOMEM;
	}
	if (!err && found)
		*found = name;
	else
		free(name);
	return err == -ENOENT ? report_fail(err, "%s is not a snapshot of an MPI job", dir) : err;
}

int snapshot_sum(const char *path, uint64_t *bytes, uint64_t *sum)
{
	XXH64_state_t *state = XXH64_createState();
	char *buffer = malloc(SUM_BUFFER);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), err = 0;
	struct stat st;
	ssize_t n = 0;

	*bytes = 0;
	if (fd < 0 || fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (!state || !buffer)
		err = -ENOMEM;
	if (!err)
		XXH64_reset(state, 0);
	while (!err && (n = read(fd, buffer, SUM_BUFFER)) > 0) {
		XXH64_update(state, buffer, n);
		*bytes += n;
	}
	if (n < 0)
		err = -errno;
	if (!err)
		*sum = XXH64_digest(state);
	if (fd >= 0)
		close(fd);
	free(buffer);
	XXH64_freeState(state);
	return err;
}

static int check_rank(const char *path, const struct snapshot_rank *rank, bool sums)
{
	uint64_t bytes, sum = rank->checksum;
	struct stat st;
	int err;

	if (stat(path, &st))
		return report_errno(-errno, "the snapshot is not complete: %s", path);
	bytes = st.st_size;
	err = sums ? snapshot_sum(path, &bytes, &sum) : 0;
	if (err)
		return report_errno(err, "cannot read %s", path);
	if (bytes != rank->bytes || sum != rank->checksum)
		return report_fail(-EINVAL, "%s is damaged: it is not what the manifest says", path);
	return 0;
}

int snapshot_check(const char *dir, const struct snapshot *s, bool sums, uint32_t *elsewhere)
{
	int err = 0;

	*elsewhere = 0;
	for (uint32_t i = 0; i < s->nr_ranks && !err; i++) {
		char *path = snapshot_rank_path(dir, i);

		if (s->local && path && access(path, F_OK))
			++*elsewhere;
		else
			err = path ? check_rank(path, &s->rank[i], sums) : -ENOMEM;
		free(path);
	}
	return err;
}

/* ---- writing ------------------------------------------------------------------------- */

void snapshot_remove(const char *dir, char ***gone)
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

int snapshot_begin(const char *path, const char *local, char **partial, char ***gone)
{
	char *name = folder_path("%s.partial", path);
	int err;

	if (!name)
		return report_fail(-ENOMEM, "no memory");
	snapshot_remove(name, gone);	/* left by a job that died */
	err = make_partial(name, local);
	if (err) {
		err = report_errno(err, "cannot create %s", name);
		free(name);
		return err;
	}
	*partial = name;
	return 0;
}

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

static int give_name(const char *path, const char *partial, char ***gone)
{
	struct snapshot *old = NULL;
	char *aside = NULL;
	int err;

	if (access(path, F_OK))
		return rename(partial, path) ? -errno : 0;
	err = load_from(path, &old);
	if (err)
		return report_fail(-EEXIST, "%s exists and is not a snapshot of an MPI job", path);
	aside = folder_path("%s.~%" PRIu32 "~", path, old->interval ? old->interval : 1);
	snapshot_free(old);
	if (!aside)
		return -ENOMEM;
	snapshot_remove(aside, gone);	/* left by an earlier run of the job */
	err = exchange(path, partial, aside);
	free(aside);
	return err;
}

static void forget_oldest(const char *path, unsigned int keep, char ***gone)
{
	unsigned long oldest;
	unsigned int count;

	while ((oldest = find_kept(path, false, &count)) && count > keep - 1) {
		char *name = folder_path("%s.~%lu~", path, oldest);

		if (name)
			snapshot_remove(name, gone);
		if (!name || !access(name, F_OK)) {
			free(name);
			return;
		}
		free(name);
	}
}

int snapshot_commit(const char *path, const char *partial, const struct snapshot *s,
		    unsigned int keep, char ***gone)
{
	char *manifest = folder_path("%s/" SNAPSHOT_MANIFEST, partial);
	int err = manifest ? manifest_write(manifest, s) : -ENOMEM;
	uint32_t elsewhere;

	free(manifest);
	if (!err && s->local)
		err = write_hosts(partial, s);
	if (!err)
		err = folder_sync(partial);
	/* A node may have written to another folder that it took for this one. */
	if (!err && !s->local)
		err = snapshot_check(partial, s, false, &elsewhere);
	if (!err)
		err = give_name(path, partial, gone);
	if (err)
		return report_errno(err, "cannot complete %s", path);
	folder_sync_parent(path);
	forget_oldest(path, keep, gone);
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_ranks; i++)
		free(s->rank[i].node);
	free(s->rank);
	free(s->openmpi);
	free(s->kcr);
	free(s->cwd);
	free(s->local);
	strings_free(s->options);
	strings_free(s->program);
	strings_free(s->environment);
	free(s);
}
