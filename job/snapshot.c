// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of a global snapshot: names, reading, older ones.  See snapshot.h.
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

#include "job/folder.h"
#include "job/local.h"
#include "job/manifest.h"
#include "report/report.h"

#define MAX_DIGITS	9	/* of an interval number */

/* ---- names ------------------------------------------------------------------------ */

char *snapshot_rank_path(const char *dir, uint32_t rank)
{
	char *local = folder_path("%s/" LOCAL_LINK, dir);
	struct stat st;
	bool is_local = local && !lstat(local, &st);

	free(local);
	return folder_path("%s%s/rank.%" PRIu32 ".ctx", dir, is_local ? "/" LOCAL_LINK : "", rank);
}

char *snapshot_files_folder(const char *dir)
{
	char *manifest = folder_path("%s/" SNAPSHOT_MANIFEST, dir), *folder = NULL;
	char *gathered = folder_path("%s/" LOCAL_LINK, dir);
	struct stat st;

	/* Not the link: on a node it may be that of the snapshot which had the name before. */
	if (manifest && gathered && !access(manifest, F_OK))
		folder = local_folder(dir) ?: strdup(lstat(gathered, &st) ? dir : gathered);
	free(gathered);
	free(manifest);
	return folder;
}

uint64_t snapshot_bytes(const struct snapshot *s, uint64_t *older)
{
	uint64_t bytes = 0;

	*older = 0;
	for (uint32_t i = 0; i < s->nr_ranks; i++) {
		bytes += s->rank[i].file.bytes;
		for (uint32_t k = 0; k < s->rank[i].nr_older; k++)
			*older += s->rank[i].older[k].bytes;
	}
	return bytes;
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

/* The interval number of `entry` if it is a kept "base.~K~", written as we do, else 0. */
static unsigned long kept_number(const char *entry, const char *base)
{
	size_t length = strlen(base), digits;

	if (strncmp(entry, base, length) || strncmp(entry + length, ".~", 2))
		return 0;
	entry += length + 2;
	digits = strspn(entry, "0123456789");
	if (*entry == '0' || !digits || digits > MAX_DIGITS || strcmp(entry + digits, "~"))
		return 0;
	return strtoul(entry, NULL, 10);
}

/* Where others may write, they may have made it. */
static bool is_own_in(const char *parent, const char *entry)
{
	char *path = folder_path("%s/%s", parent, entry);
	bool is = path && folder_is_own(path);

	free(path);
	return is;
}

unsigned long snapshot_find_kept(const char *path, bool newest, unsigned long before,
				 unsigned int *count)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? folder_path("%.*s/", (int)(slash - path), path) : strdup(".");
	DIR *dir = parent ? opendir(parent) : NULL;
	unsigned long found = 0;
	struct dirent *entry;

	*count = 0;
	while (dir && (entry = readdir(dir))) {
		unsigned long n = kept_number(entry->d_name, slash ? slash + 1 : path);

		if (!n || (before && n >= before) || !is_own_in(parent, entry->d_name))
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
		is = snapshot_find_kept(name, true, 0, &count) > 0;
	free(manifest);
	free(name);
	return is;
}

/* ---- reading ------------------------------------------------------------------------ */

int snapshot_load_one(const char *dir, struct snapshot **out)
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
	err = snapshot_load_one(name, out);
	newest = err == -ENOENT ? snapshot_find_kept(name, true, 0, &count) : 0;
	if (newest) {
		char *kept = folder_path("%s.~%lu~", name, newest);

		free(name);
		name = kept;
		err = name ? snapshot_load_one(name, out) : -ENOMEM;
	}
	if (!err && found)
		*found = name;
	else
		free(name);
	return err == -ENOENT ? report_fail(err, "%s is not a snapshot of an MPI job", dir) : err;
}

int snapshot_damaged(const char *path)
{
	return report_fail(-EINVAL, "%s is damaged: it is not what the manifest says", path);
}

static int check_file(const char *path, const struct snapshot *s, const struct snapshot_file *file,
		      snapshot_verify *verify)
{
	struct stat st;

	if (stat(path, &st))
		return report_errno(-errno, "the snapshot is not complete: %s", path);
	if ((uint64_t)st.st_size != file->bytes)
		return snapshot_damaged(path);
	return verify ? verify(path, s, file) : 0;
}

static int check_rank(const char *path, const struct snapshot *s, const struct snapshot_rank *rank,
		      snapshot_verify *verify)
{
	int err = check_file(path, s, &rank->file, verify);

	for (uint32_t i = 0; i < rank->nr_older && !err; i++) {
		char *older = folder_path("%s.%" PRIu32, path, i + 1);

		err = older ? check_file(older, s, &rank->older[i], verify) : -ENOMEM;
		free(older);
	}
	return err;
}

int snapshot_check(const char *dir, const struct snapshot *s, snapshot_verify *verify,
		   uint32_t *elsewhere)
{
	int err = 0;

	*elsewhere = 0;
	for (uint32_t i = 0; i < s->nr_ranks && !err; i++) {
		char *path = snapshot_rank_path(dir, i);

		if (s->local && path && access(path, F_OK))
			++*elsewhere;
		else
			err = path ? check_rank(path, s, &s->rank[i], verify) : -ENOMEM;
		free(path);
	}
	return err;
}

int snapshot_check_written(const char *dir, const struct snapshot *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->nr_ranks && !err; i++) {
		char *path = snapshot_rank_path(dir, i);

		err = path ? check_file(path, s, &s->rank[i].file, NULL) : -ENOMEM;
		free(path);
	}
	return err;
}

/* ---- memory ------------------------------------------------------------------------- */

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_ranks; i++) {
		free(s->rank[i].node);
		free(s->rank[i].older);
	}
	free(s->rank);
	free(s->text);
	free(s->openmpi);
	free(s->kcr);
	free(s->cwd);
	free(s->local);
	strings_free(s->options);
	strings_free(s->program);
	strings_free(s->environment);
	free(s);
}
