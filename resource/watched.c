// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a path leads to what is watched is asked by a watch of our own where stat(2) gives
 * other numbers than fdinfo: for btrfs and for files of overlayfs.
 */
#include "resource/watched.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/mount.h"
#include "proc/proc.h"
#include "resource/file.h"
#include "resource/tree_search.h"

#define SEARCH_MS	2000		/* for each place */

void watched_parse_handle(const char *line, struct watched *w)
{
	unsigned int bytes, type;
	const char *hex = strstr(line, "fhandle-bytes:");
	int start;

	if (!hex || hex > line + strcspn(line, "\n") ||
	    sscanf(hex, "fhandle-bytes:%x fhandle-type:%x f_handle:%n", &bytes, &type, &start) < 2 ||
	    bytes > MAX_HANDLE_SZ)
		return;
	w->handle = calloc(1, sizeof(*w->handle) + bytes);
	if (!w->handle)
		return;
	w->handle->handle_bytes = bytes;
	w->handle->handle_type = type;
	hex += start;
	for (unsigned int i = 0; i < bytes; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &w->handle->f_handle[i]) != 1)
			break;
}

bool watched_parse(const char *line, struct watched *w)
{
	*w = (struct watched){ 0 };
	if (sscanf(line, "inotify wd:%x ino:%llx sdev:%x mask:%x", (unsigned int *)&w->wd, &w->ino,
		   &w->dev, &w->mask) != 4)
		return false;
	watched_parse_handle(line, w);
	return true;
}

/* ---- by handle ---------------------------------------------------------------- */

/* The place of the next mount of that device in a list of them; false: there is no more. */
static bool next_mount(FILE *mounts, unsigned int dev, char place[4096])
{
	unsigned int major, minor;
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (!found && getline(&line, &room, mounts) > 0)
		found = sscanf(line, "%*d %*d %u:%u %*s %4095s", &major, &minor, place) == 3 &&
			major == dev >> 20 && minor == (dev & 0xfffff);
	free(line);
	if (found)
		mount_unescape(place);
	return found;
}

static bool is_on(const struct stat *st, unsigned int dev)
{
	return major(st->st_dev) == dev >> 20 && minor(st->st_dev) == (dev & 0xfffff);
}

/* In a chroot, which need not be a mount, the list lacks that of "/". */
static bool is_root_on(unsigned int dev)
{
	struct stat st;

	return !stat("/", &st) && is_on(&st, dev);
}

/* A folder on the device, for opening handles. */
static int open_mount(pid_t thread, unsigned int dev)
{
	FILE *mounts = proc_stream(thread, "mountinfo");
	char place[4096];
	int fd = -1;

	if (!mounts)
		return -1;
	while (fd < 0 && next_mount(mounts, dev, place))
		fd = open(place, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fclose(mounts);
	if (fd < 0 && is_root_on(dev))
		fd = open("/", O_RDONLY | O_CLOEXEC);
	return fd;
}

static char *path_by_handle(const struct watched *w, pid_t thread)
{
	char path[4096];
	int mount = w->handle ? open_mount(thread, w->dev) : -1, fd;
	struct stat st, there;
	bool same = false;

	if (mount < 0)
		return NULL;
	fd = open_by_handle_at(mount, w->handle, O_PATH | O_CLOEXEC);
	close(mount);
	if (fd < 0)
		return NULL;
	if (proc_fd_link(fd, path, sizeof(path)) > 0)
		same = !fstat(fd, &st) && !stat(path, &there) && there.st_ino == st.st_ino &&
		       there.st_dev == st.st_dev;
	close(fd);
	return same ? strdup(path) : NULL;
}

/* ---- by search ---------------------------------------------------------------- */

/* What fdinfo tells of a watch of this path; false: nothing can watch it. */
static bool watch_of(const char *path, struct watched *w)
{
	int fd = inotify_init1(IN_CLOEXEC);
	char name[32], text[512] = "";
	bool told = false;

	if (fd < 0)
		return false;
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (inotify_add_watch(fd, path, IN_DELETE_SELF) > 0 &&
	    proc_read(PROC_SELF, name, text, sizeof(text)) > 0) {
		const char *line = strstr(text, "inotify wd:");

		told = line && watched_parse(line, w);
		if (told)
			free(w->handle);
	}
	close(fd);
	return told;
}

/* stat(2) tells most, also of what may not be watched any more. */
static bool is_it(const char *path, const void *arg)
{
	const struct watched *w = arg;
	struct watched own;
	struct stat st;

	if (stat(path, &st))
		return false;
	if (st.st_ino == w->ino && is_on(&st, w->dev))
		return true;
	return watch_of(path, &own) && own.ino == w->ino && own.dev == w->dev;
}

/* The path, or the folder above it, that is watched; NULL: none of them. */
static char *search_upwards(const char *path, const struct watched *w)
{
	char copy[4096], *slash;

	if (path[0] != '/' || strlen(path) >= sizeof(copy))
		return NULL;
	strcpy(copy, path);
	do {
		if (is_it(copy, w))
			return strdup(copy);
		slash = strrchr(copy, '/');
		slash[slash == copy && slash[1]] = '\0';
	} while (*copy && strcmp(copy, path));
	return NULL;
}

static char *path_by_files(const struct file_table *t, const struct watched *w, pid_t thread)
{
	char path[4096], *found = NULL;

	if (proc_link(thread, "cwd", path, sizeof(path)) > 0)
		found = search_upwards(path, w);
	for (uint32_t id = 1; !found && id <= file_table_count(t); id++)
		found = search_upwards(file_table_probe(t, id)->link, w);
	return found;
}

/* Below the working folder, then from where the device is mounted. */
static char *path_by_tree(const struct watched *w, pid_t thread)
{
	FILE *mounts = proc_stream(thread, "mountinfo");
	char place[4096], *found = NULL;

	if (proc_link(thread, "cwd", place, sizeof(place)) > 0)
		found = tree_search(place, w->ino, SEARCH_MS, is_it, w);
	while (!found && mounts && next_mount(mounts, w->dev, place))
		found = tree_search(place, w->ino, SEARCH_MS, is_it, w);
	if (mounts)
		fclose(mounts);
	if (!found && is_root_on(w->dev))
		found = tree_search("/", w->ino, SEARCH_MS, is_it, w);
	return found;
}

/* ---- what has been found ------------------------------------------------------- */

#define KNOWN	64

static struct {
	unsigned long long ino;
	unsigned int dev;
	char *path;
} known[KNOWN];
static unsigned int next_known;

static char *path_known(const struct watched *w)
{
	for (unsigned int i = 0; i < KNOWN; i++)
		if (known[i].path && known[i].ino == w->ino && known[i].dev == w->dev &&
		    is_it(known[i].path, w))
			return strdup(known[i].path);
	return NULL;
}

static void remember(const struct watched *w, const char *path)
{
	unsigned int i = next_known++ % KNOWN;

	free(known[i].path);
	known[i].path = strdup(path);
	known[i].ino = w->ino;
	known[i].dev = w->dev;
}

char *watched_path(const struct file_table *t, const struct watched *w, pid_t thread)
{
	char *path = path_by_handle(w, thread);

	if (!path)
		path = path_known(w);
	if (!path)
		path = path_by_files(t, w, thread);
	if (!path && file_table_is_dry(t)) {
		path = path_by_tree(w, thread);
		if (path)
			remember(w, path);
	}
	return path;
}
