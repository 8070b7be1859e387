// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of a global snapshot: names, commit, older ones.  See snapshot.h.
 */
#include "mpi-plugin/job/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "mpi-plugin/job/manifest.h"
#include "report/report.h"

#define SUM_BUFFER	(1 << 20)

/* ---- names ------------------------------------------------------------------------ */

static char *join(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	return text;
}

char *snapshot_rank_path(const char *dir, uint32_t rank)
{
	return join("%s/rank.%" PRIu32 ".ctx", dir, rank);
}

char *snapshot_name(const char *path)
{
	size_t length = strlen(path), end = strlen(SNAPSHOT_SUFFIX);
	char cwd[PATH_MAX] = "";
	const char *suffix;

	while (length > 1 && path[length - 1] == '/')
		length--;
	suffix = length > end && !strncmp(path + length - end, SNAPSHOT_SUFFIX, end) ?
		 "" : SNAPSHOT_SUFFIX;
	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return NULL;
	return join("%s%s%.*s%s", cwd, *path == '/' ? "" : "/", (int)length, path, suffix);
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
	char *parent = slash ? join("%.*s/", (int)(slash - path), path) : strdup(".");
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
	char *name = trimmed(dir), *manifest = name ? join("%s/" SNAPSHOT_MANIFEST, name) : NULL;
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
	char *path = join("%s/" SNAPSHOT_MANIFEST, dir);
	int err = path ? manifest_read(path, out) : -ENOMEM;

	free(path);
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
		char *kept = join("%s.~%lu~", name, newest);

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
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t n = 0;

	*bytes = 0;
	if (fd < 0)
		err = -errno;
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

int snapshot_check(const char *dir, const struct snapshot *s, bool sums)
{
	int err = 0;

	for (uint32_t i = 0; i < s->nr_ranks && !err; i++) {
		char *path = snapshot_rank_path(dir, i);

		err = path ? check_rank(path, &s->rank[i], sums) : -ENOMEM;
		free(path);
	}
	return err;
}

/* ---- writing ------------------------------------------------------------------------- */

void snapshot_remove(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
	rmdir(dir);
}

int snapshot_begin(const char *path, char **partial)
{
	char *name = join("%s.partial", path);
	int err;

	if (!name)
		return report_fail(-ENOMEM, "no memory");
	snapshot_remove(name);		/* of a job that died meanwhile */
	if (mkdir(name, 0700)) {
		err = report_errno(-errno, "cannot create %s", name);
		free(name);
		return err;
	}
	*partial = name;
	return 0;
}

static int sync_folder(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 || fsync(fd) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	/* Not every file system can. */
	return err == -EINVAL || err == -EROFS ? 0 : err;
}

static int sync_parent(const char *path)
{
	char *parent = strdup(path);
	char *slash = parent ? strrchr(parent, '/') : NULL;
	int err = slash ? 0 : -ENOMEM;

	if (slash) {
		slash[slash == parent] = '\0';
		err = sync_folder(parent);
	}
	free(parent);
	return err;
}

/* What had the name goes to `aside`; the new one takes it in the same instant, where that works. */
static int exchange(const char *path, const char *partial, const char *aside)
{
	if (!renameat2(AT_FDCWD, partial, AT_FDCWD, path, RENAME_EXCHANGE))
		return rename(partial, aside) ? -errno : 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (rename(path, aside))
		return -errno;
	return rename(partial, path) ? -errno : 0;
}

static int give_name(const char *path, const char *partial)
{
	struct snapshot *old = NULL;
	char *aside = NULL;
	int err;

	if (access(path, F_OK))
		return rename(partial, path) ? -errno : 0;
	err = load_from(path, &old);
	if (err)
		return report_fail(-EEXIST, "%s exists and is not a snapshot of an MPI job", path);
	aside = join("%s.~%" PRIu32 "~", path, old->interval ? old->interval : 1);
	snapshot_free(old);
	if (!aside)
		return -ENOMEM;
	snapshot_remove(aside);		/* of an earlier life of the job */
	err = exchange(path, partial, aside);
	free(aside);
	return err;
}

static void forget_oldest(const char *path, unsigned int keep)
{
	unsigned long oldest;
	unsigned int count;

	while ((oldest = find_kept(path, false, &count)) && count > keep - 1) {
		char *name = join("%s.~%lu~", path, oldest);

		if (name)
			snapshot_remove(name);
		if (!name || !access(name, F_OK)) {
			free(name);
			return;
		}
		free(name);
	}
}

int snapshot_commit(const char *path, const char *partial, const struct snapshot *s,
		    unsigned int keep)
{
	char *manifest = join("%s/" SNAPSHOT_MANIFEST, partial);
	int err = manifest ? manifest_write(manifest, s) : -ENOMEM;

	free(manifest);
	if (!err)
		err = sync_folder(partial);
	if (!err)
		err = give_name(path, partial);
	if (err)
		return report_errno(err, "cannot complete %s", path);
	sync_parent(path);
	forget_oldest(path, keep);
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
	strings_free(s->options);
	strings_free(s->program);
	strings_free(s->environment);
	free(s);
}
