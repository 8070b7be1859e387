// SPDX-License-Identifier: GPL-2.0
/*
 * fanotify(7): groups that are told of events, with their marks of inodes, mounts and file
 * systems, from fdinfo (format: proc(5)).  Unread events are lost.  Groups that are asked for
 * permission are refused: while the program stands still, so would whoever opens a marked
 * file, cr_checkpoint among them.
 */
#include "resource/fanotify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/mount.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "resource/file.h"
#include "resource/watched.h"

#ifndef FAN_MARK_IGNORE
#define FAN_MARK_IGNORE		0x400	/* since 6.0 */
#endif

#define PERMISSION	(FAN_CLASS_CONTENT | FAN_CLASS_PRE_CONTENT)
/* What a group of an ordinary user may have (since 5.13), besides one of FID. */
#define FID		(FAN_REPORT_FID | FAN_REPORT_DIR_FID)
#define USERS		(FID | FAN_REPORT_NAME | FAN_CLOEXEC | FAN_NONBLOCK)

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[fanotify]");
}

/* ---- save ------------------------------------------------------------------- */

/* Not so if another mount covers it. */
static bool leads_to(const char *place, int mount)
{
	struct statx st;

	return !statx(AT_FDCWD, place, AT_NO_AUTOMOUNT, STATX_MNT_ID, &st) &&
	       st.stx_mask & STATX_MNT_ID && st.stx_mnt_id == (uint64_t)mount;
}

/*
 * A place, as seen by the calling process, of the mount with this ID (mount >= 0), or of one
 * of the device; NULL: none, such as of a mount of another mount namespace.
 */
static char *mount_place(int mount, unsigned int dev)
{
	FILE *mounts = proc_stream(PROC_SELF, "mountinfo");
	unsigned int major, minor;
	char place[4096] = "";
	bool found = false;
	char *line = NULL;
	size_t room = 0;
	int id;

	while (mounts && !found && getline(&line, &room, mounts) > 0) {
		if (sscanf(line, "%d %*d %u:%u %*s %4095s", &id, &major, &minor, place) != 4 ||
		    (mount >= 0 ? id != mount : major != dev >> 20 || minor != (dev & 0xfffff)))
			continue;
		mount_unescape(place);
		found = leads_to(place, id);
	}
	if (mounts)
		fclose(mounts);
	free(line);
	return found ? strdup(place) : NULL;
}

/* The mark that a line of fdinfo describes; false: none that can be read. */
static bool parse_mark(struct file_table *t, const struct file_probe *probe, const char *line,
		       Kcr__FanotifyMark *m)
{
	struct watched w = { 0 };
	int id;

	if (sscanf(line, "fanotify ino:%llx sdev:%x mflags:%x mask:%x ignored_mask:%x", &w.ino, &w.dev,
		   &m->flags, &m->mask, &m->ignored) == 5) {
		m->kind = FAN_MARK_INODE;
		watched_parse_handle(line, &w);
		m->path = watched_path(t, &w, probe->thread);
		free(w.handle);
	} else if (sscanf(line, "fanotify mnt_id:%x mflags:%x mask:%x ignored_mask:%x",
			  (unsigned int *)&id, &m->flags, &m->mask, &m->ignored) == 4) {
		m->kind = FAN_MARK_MOUNT;
		m->path = mount_place(id, 0);
	} else if (sscanf(line, "fanotify sdev:%x mflags:%x mask:%x ignored_mask:%x", &w.dev,
			  &m->flags, &m->mask, &m->ignored) == 4) {
		m->kind = FAN_MARK_FILESYSTEM;
		m->path = mount_place(-1, w.dev);
	}
	return m->path;
}

static int add_mark(struct file_table *t, const struct file_probe *probe, const char *line,
		    Kcr__Fanotify *fanotify)
{
	Kcr__FanotifyMark **more, *mark = malloc(sizeof(*mark));

	more = realloc(fanotify->mark, (fanotify->n_mark + 1) * sizeof(*more));
	if (more)
		fanotify->mark = more;
	if (!more || !mark) {
		free(mark);
		return report_errno(-ENOMEM, "saving a fanotify group");
	}
	kcr__fanotify_mark__init(mark);
	mark->path = NULL;
	if (!parse_mark(t, probe, line, mark)) {
		free(mark);
		return file_unsupported(t, "a fanotify group with a mark of something whose path cannot "
					"be found (%.*s)", (int)strcspn(line, "\n"), line);
	}
	more[fanotify->n_mark++] = mark;
	return 0;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__Fanotify *fanotify = file_new_kind(file, KCR__FILE__KIND_FANOTIFY, sizeof(*fanotify));
	const char *line = strstr(probe->fdinfo, "fanotify flags:");
	int err = 0, unread = 0;

	if (!fanotify)
		return -ENOMEM;
	if (!line || sscanf(line, "fanotify flags:%x event-flags:%x", &fanotify->flags,
			    &fanotify->event_flags) != 2)
		return file_unsupported(t, "a fanotify group that this kernel does not describe");
	if (fanotify->flags & PERMISSION)
		return file_unsupported(t, "a fanotify group that is asked for permission "
					"(FAN_CLASS_CONTENT or FAN_CLASS_PRE_CONTENT)");
	while (!err && (line = strstr(line + 1, "fanotify ")))
		err = add_mark(t, probe, line, fanotify);
	if (!err && !file_table_is_dry(t) && !ioctl(probe->fd, FIONREAD, &unread) && unread)
		report_warn("process %d, descriptor %d (fanotify): events not yet read are not saved",
			    probe->pid, probe->number);
	return err;
}

/* ---- rebuild ------------------------------------------------------------------ */

int fanotify_check(const Kcr__Fanotify *fanotify)
{
	bool users = fanotify->flags & FID && !(fanotify->flags & ~USERS);

	for (size_t i = 0; i < fanotify->n_mark; i++)
		users &= fanotify->mark[i]->kind == FAN_MARK_INODE &&
			 !faccessat(AT_FDCWD, fanotify->mark[i]->path, R_OK, AT_EACCESS);
	return users || have_capability(CAP_SYS_ADMIN) ? 0 : -EPERM;
}

static int restore_mark(struct rebuild *r, int fd, const Kcr__FanotifyMark *mark,
			const Kcr__File *file)
{
	unsigned int add = FAN_MARK_ADD | mark->kind | FAN_MARK_DONT_FOLLOW;
	unsigned int flags = mark->flags & ~(FAN_MARK_IGNORE | FAN_MARK_IGNORED_SURV_MODIFY);
	unsigned int ignore = mark->flags & FAN_MARK_IGNORE ?: FAN_MARK_IGNORED_MASK;
	const char *path = rebuild_path(r, mark->path);
	int err = 0;

	if (!path)
		return -ENOMEM;
	if (mark->mask && fanotify_mark(fd, add | flags, mark->mask, AT_FDCWD, path))
		err = -errno;
	if (!err && mark->ignored &&
	    fanotify_mark(fd, add | flags | ignore | (mark->flags & FAN_MARK_IGNORED_SURV_MODIFY),
			  mark->ignored, AT_FDCWD, path))
		err = -errno;
	if (err)
		err = rebuild_error(file, err, "cannot mark %s", path);
	rebuild_path_free(path, mark->path);
	return err;
}

static int open_fanotify(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__Fanotify *fanotify = file->fanotify;
	int fd = fanotify_init(fanotify->flags, fanotify->event_flags), err = 0;

	if (fd < 0)
		return rebuild_error(file, -errno, "fanotify_init");
	/* fdinfo would tell of FAN_CLOEXEC for ever. */
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	for (size_t i = 0; i < fanotify->n_mark && !err; i++)
		err = restore_mark(r, fd, fanotify->mark[i], file);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_fanotify = {
	.kind = KCR__FILE__KIND_FANOTIFY,
	.name = "fanotify",
	.match = match,
	.save = save,
	.open = open_fanotify,
};
