// SPDX-License-Identifier: GPL-2.0
/*
 * inotify(7): watches with their old descriptors.  The kernel reports a watched
 * inode by device, inode number and file handle; its path comes from the handle,
 * which takes CAP_DAC_READ_SEARCH, else from the open files and the working
 * folder of the program.  Unread events are lost.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"

#define SET_NEXT_WD	_IOW('I', 0, __s32)	/* INOTIFY_IOC_SETNEXTWD */

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "inotify");
}

/* ---- save ------------------------------------------------------------------- */

struct watched {
	int wd;
	unsigned long long ino;
	unsigned int dev;		/* the kernel's encoding: major << 20 | minor */
	unsigned int mask;
	struct file_handle *handle;	/* NULL: the file system has none */
};

static struct file_handle *parse_handle(const char *line)
{
	unsigned int bytes, type;
	struct file_handle *handle;
	const char *hex = strstr(line, "fhandle-bytes:");
	int start;

	if (!hex || hex > line + strcspn(line, "\n") ||
	    sscanf(hex, "fhandle-bytes:%x fhandle-type:%x f_handle:%n", &bytes, &type, &start) < 2 ||
	    bytes > MAX_HANDLE_SZ)
		return NULL;
	handle = malloc(sizeof(*handle) + bytes);
	if (!handle)
		return NULL;
	handle->handle_bytes = bytes;
	handle->handle_type = type;
	hex += start;
	for (unsigned int i = 0; i < bytes; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &handle->f_handle[i]) != 1)
			break;
	return handle;
}

/* A folder on the device, for opening handles. */
static int open_mount(pid_t thread, unsigned int dev)
{
	FILE *mounts = proc_stream(thread, "mountinfo");
	char *line = NULL, point[4096];
	unsigned int major, minor;
	size_t room = 0;
	int fd = -1;

	if (!mounts)
		return -1;
	while (fd < 0 && getline(&line, &room, mounts) > 0)
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &major, &minor, point) == 3 &&
		    major == dev >> 20 && minor == (dev & 0xfffff))
			fd = open(point, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	free(line);
	fclose(mounts);
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
	/* Not is_it(): in btrfs, stat(2) returns another device than the kernel uses. */
	if (proc_fd_link(fd, path, sizeof(path)) > 0)
		same = !fstat(fd, &st) && !stat(path, &there) && there.st_ino == st.st_ino &&
		       there.st_dev == st.st_dev;
	close(fd);
	return same ? strdup(path) : NULL;
}

static bool is_it(const char *path, const struct watched *w)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino == w->ino && major(st.st_dev) == w->dev >> 20 &&
	       minor(st.st_dev) == (w->dev & 0xfffff);
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

static char *path_by_search(const struct file_table *t, const struct watched *w, pid_t thread)
{
	char path[4096], *found = NULL;

	if (proc_link(thread, "cwd", path, sizeof(path)) > 0)
		found = search_upwards(path, w);
	for (uint32_t id = 1; !found && id <= file_table_count(t); id++)
		found = search_upwards(file_table_probe(t, id)->link, w);
	return found;
}

static int add_watch(struct file_table *t, const struct file_probe *probe,
		     Kcr__Inotify *inotify, const struct watched *w)
{
	char *path = path_by_handle(w, probe->thread);
	Kcr__InotifyWatch **more, *watch;

	if (!path)
		path = path_by_search(t, w, probe->thread);
	if (!path)
		return file_unsupported(t, "an inotify that watches something whose path cannot be "
					"found (inode %llu)", w->ino);
	more = realloc(inotify->watch, (inotify->n_watch + 1) * sizeof(*more));
	if (more)
		inotify->watch = more;
	watch = malloc(sizeof(*watch));
	if (!more || !watch) {
		free(path);
		free(watch);
		return report_errno(-ENOMEM, "saving an inotify");
	}
	kcr__inotify_watch__init(watch);
	watch->wd = w->wd;
	watch->mask = w->mask;
	watch->path = path;
	more[inotify->n_watch++] = watch;
	return 0;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__Inotify *inotify = file_new_kind(file, KCR__FILE__KIND_INOTIFY, sizeof(*inotify));
	const char *line = probe->fdinfo;
	int err = 0, unread = 0;

	if (!inotify)
		return -ENOMEM;
	while (!err && (line = strstr(line, "inotify wd:"))) {
		struct watched w = {};

		if (sscanf(line, "inotify wd:%x ino:%llx sdev:%x mask:%x", (unsigned int *)&w.wd,
			   &w.ino, &w.dev, &w.mask) == 4) {
			w.handle = parse_handle(line);
			err = add_watch(t, probe, inotify, &w);
			free(w.handle);
		}
		line++;
	}
	if (!err && !file_table_is_dry(t) && !ioctl(probe->fd, FIONREAD, &unread) && unread)
		report_warn("process %d, descriptor %d (inotify): events not yet read are not saved",
			    probe->pid, probe->number);
	return err;
}

/* ---- rebuild ------------------------------------------------------------------ */

static int restore_watch(struct rebuild *r, int fd, const Kcr__InotifyWatch *watch,
			 const Kcr__File *file)
{
	const char *path = rebuild_path(r, watch->path);
	__s32 next = watch->wd;
	int wd, err;

	if (!path)
		return -ENOMEM;
	if (ioctl(fd, SET_NEXT_WD, next))
		report_verbose("this kernel cannot choose the numbers of inotify watches");
	wd = inotify_add_watch(fd, path, watch->mask & ~IN_IGNORED);
	if (wd < 0)
		err = rebuild_error(file, -errno, "cannot watch %s", path);
	else
		err = wd == watch->wd ? 0 :
			rebuild_error(file, -EBUSY, "watch %d of %s got another number", watch->wd,
				      path);
	rebuild_path_free(path, watch->path);
	return err;
}

static int compare_watches(const void *a, const void *b)
{
	const Kcr__InotifyWatch *const *p = a, *const *q = b;

	return ((*p)->wd > (*q)->wd) - ((*p)->wd < (*q)->wd);
}

static int open_inotify(struct rebuild *r, const Kcr__File *file)
{
	Kcr__Inotify *inotify = file->inotify;
	int fd = inotify_init1(IN_CLOEXEC), err = 0;

	if (fd < 0)
		return rebuild_error(file, -errno, "inotify_init1");
	qsort(inotify->watch, inotify->n_watch, sizeof(*inotify->watch), compare_watches);
	for (size_t i = 0; i < inotify->n_watch && !err; i++)
		err = restore_watch(r, fd, inotify->watch[i], file);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_inotify = {
	.kind = KCR__FILE__KIND_INOTIFY,
	.name = "inotify",
	.match = match,
	.save = save,
	.open = open_inotify,
};
