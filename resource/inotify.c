// SPDX-License-Identifier: GPL-2.0
/* inotify(7): watches with their old descriptors.  Unread events are lost. */
#include "resource/file.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/watched.h"

#define SET_NEXT_WD	_IOW('I', 0, __s32)	/* INOTIFY_IOC_SETNEXTWD */

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "inotify");
}

/* ---- save ------------------------------------------------------------------- */

static int add_watch(struct file_table *t, const struct file_probe *probe,
		     Kcr__Inotify *inotify, const struct watched *w)
{
	char *path = watched_path(t, w, probe->thread);
	Kcr__InotifyWatch **more, *watch;

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
		struct watched w;

		if (watched_parse(line, &w))
			err = add_watch(t, probe, inotify, &w);
		free(w.handle);
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
