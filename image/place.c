// SPDX-License-Identifier: GPL-2.0
/*
 * Resolves a path component by component, each relative to the file descriptor of
 * the previous one.  See place.h.
 */
#include "image/place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/mount.h"
#include "proc/proc.h"
#include "report/report.h"

#define MAX_LINKS	40	/* as in the kernel */

struct walk {
	const char *path;	/* for messages */
	int at;			/* O_PATH: the directory reached so far */
	char rest[PATH_MAX];	/* still to be resolved */
	unsigned int links;
};

static int move_to(struct walk *w, int fd)
{
	int err = fd < 0 ? -errno : 0;

	if (err)
		return report_errno(err, "cannot open the folder of %s", w->path);
	close(w->at);
	w->at = fd;
	return 0;
}

static bool is_in_proc(const struct walk *w)
{
	struct statfs fs;

	return !fstatfs(w->at, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* The target of a link; owner and target are read from the same inode. */
static int read_link(const struct walk *w, const char *part, char target[PATH_MAX])
{
	int link = openat(w->at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat st = {};
	ssize_t length = -1;
	char what[512];

	if (link >= 0 && !fstat(link, &st))
		length = readlinkat(link, "", target, PATH_MAX - 1);
	if (length < 0)
		err = report_errno(-errno, "%s", w->path);
	else if (!geteuid() && st.st_uid)
		err = report_fail(-ELOOP, "%s: %s is a symbolic link of user %u, which root does not "
				  "follow: name what it leads to", w->path, part, st.st_uid);
	else if (!geteuid() && !is_in_proc(w) && mount_makes_up_owners(link, what, sizeof(what)))
		err = report_fail(-ELOOP, "%s: %s is a symbolic link which root does not follow, as "
				  "nothing says whose it is: %s: name what it leads to", w->path,
				  part, what);
	else
		target[length] = '\0';
	if (link >= 0)
		close(link);
	return err;
}

/* Follows a link, prepending its target to w->rest; 1: it is a magic link to a pipe or socket. */
static int follow_link(struct walk *w, const char *part)
{
	char target[PATH_MAX], longer[2 * PATH_MAX];
	int err = read_link(w, part, target);

	if (err)
		return err;
	if (++w->links > MAX_LINKS)
		return report_errno(-ELOOP, "%s", w->path);
	if (target[0] != '/' && strstr(target, ":[") && is_in_proc(w))
		return 1;
	snprintf(longer, sizeof(longer), "%s%s%s", target, *w->rest ? "/" : "", w->rest);
	if (strlen(longer) >= sizeof(w->rest))
		return report_errno(-ENAMETOOLONG, "%s", w->path);
	strcpy(w->rest, longer);
	return target[0] == '/' ? move_to(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* Takes the next component off w->rest; *last: nothing follows, not even a slash. */
static int next_part(struct walk *w, char part[NAME_MAX + 1], bool *last)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t length = strcspn(from, "/");

	if (length > NAME_MAX)
		return report_errno(-ENAMETOOLONG, "%s", w->path);
	memcpy(part, from, length);
	part[length] = '\0';
	*last = !from[length];
	from += length;
	from += strspn(from, "/");
	memmove(w->rest, from, strlen(from) + 1);
	return 0;
}

/* Resolves one component; 1: it was the last. */
static int step(struct walk *w, struct place *p, bool follow)
{
	char part[NAME_MAX + 1];
	struct stat st;
	bool last = false;
	int err = next_part(w, part, &last);

	if (err)
		return err;
	if (!*part || (!last && !*w->rest) || (last && (!strcmp(part, ".") || !strcmp(part, ".."))))
		return report_fail(-EISDIR, "%s is a directory: name a file", w->path);
	if (fstatat(w->at, part, &st, AT_SYMLINK_NOFOLLOW)) {
		if (!last || errno != ENOENT)
			return report_errno(-errno, "%s", w->path);
	} else if (S_ISLNK(st.st_mode) && (!last || follow)) {
		p->followed |= last;
		err = follow_link(w, part);
		p->descriptor = err == 1;
		if (err <= 0)
			return err;
	} else if (!last) {
		return move_to(w, openat(w->at, part,
					 O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	}
	strcpy(p->name, part);
	return 1;
}

int place_find(struct place *p, const char *path, bool follow)
{
	struct walk w = { .path = path };
	int err = 0;

	*p = (struct place){ .folder = -1 };
	if (strlen(path) >= sizeof(w.rest))
		return report_errno(-ENAMETOOLONG, "%s", path);
	strcpy(w.rest, path);
	w.at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.at < 0)
		return report_errno(-errno, "%s", path);
	while (!err)
		err = step(&w, p, follow);
	if (err == 1) {
		p->folder = openat(w.at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = 0;
		if (p->folder < 0)
			err = report_errno(-errno, "cannot open the folder of %s", path);
	}
	close(w.at);
	return err;
}

void place_close(struct place *p)
{
	if (p->folder >= 0)
		close(p->folder);
	p->folder = -1;
}

int place_open_special(const struct place *p, const char *path)
{
	int node = openat(p->folder, p->name,
			  O_PATH | O_CLOEXEC | (p->descriptor ? 0 : O_NOFOLLOW));
	char what[512];
	struct stat st;
	int fd;

	if (node < 0 || fstat(node, &st)) {
		fd = report_errno(-errno, "cannot open %s", path);
	} else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)) {
		fd = report_fail(-EAGAIN, "%s was replaced meanwhile: try again", path);
	} else if (!geteuid() && st.st_uid && !p->descriptor) {
		fd = report_fail(-EPERM, "%s is no regular file and belongs to user %u: root does not "
				 "write to it", path, st.st_uid);
	} else if (!geteuid() && !p->descriptor && mount_makes_up_owners(node, what, sizeof(what))) {
		fd = report_fail(-EPERM, "%s is no regular file, and nothing says whose it is: %s: root "
				 "does not write to it", path, what);
	} else {
		fd = proc_fd_reopen(node, O_WRONLY | O_NOCTTY);
		if (fd < 0)
			fd = report_errno(fd, "cannot open %s", path);
	}
	if (node >= 0)
		close(node);
	return fd;
}

/* 0, or -ENAMETOOLONG, reported. */
static int temporary_name(const struct place *p, const char *path, char out[NAME_MAX + 1])
{
	if (snprintf(out, NAME_MAX + 1, ".%s.tmp", p->name) <= NAME_MAX)
		return 0;
	return report_errno(-ENAMETOOLONG, "%s", path);
}

int place_create(const struct place *p, const char *path)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int fd;

	if (!geteuid() && !fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    (!S_ISREG(st.st_mode) || st.st_uid))
		return report_fail(-EEXIST, "%s exists and is not root's file: remove it", path);
	fd = temporary_name(p, path, name);
	if (fd)
		return fd;
	unlinkat(p->folder, name, 0);		/* of one that was killed */
	fd = openat(p->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? report_errno(-errno, "cannot create %s", path) : fd;
}

int place_commit(const struct place *p, const char *path, bool complete)
{
	char name[NAME_MAX + 1];
	int err = temporary_name(p, path, name);

	if (!err && complete && renameat(p->folder, name, p->folder, p->name))
		err = report_errno(-errno, "cannot create %s", path);
	if (err || !complete)
		unlinkat(p->folder, name, 0);
	return err;
}

int place_node(const char *path)
{
	struct place place;
	int node, err;

	if (geteuid()) {
		node = open(path, O_PATH | O_CLOEXEC);
		return node < 0 ? report_errno(-errno, "cannot open %s", path) : node;
	}
	err = place_find(&place, path, true);
	if (err)
		return err;
	node = openat(place.folder, place.name,
		      O_PATH | O_CLOEXEC | (place.descriptor ? 0 : O_NOFOLLOW));
	if (node < 0)
		node = report_errno(-errno, "cannot open %s", path);
	place_close(&place);
	return node;
}

bool place_is_numbered(const char *name, const char *base)
{
	size_t length = strlen(base);

	return !strncmp(name, base, length) && name[length] == '.' && name[length + 1] &&
	       strspn(name + length + 1, "0123456789") == strlen(name + length + 1);
}

void place_remove(const struct place *p, const char *name, const struct stat *old)
{
	struct stat st;

	if (!fstatat(p->folder, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == old->st_dev &&
	    st.st_ino == old->st_ino && unlinkat(p->folder, name, 0))
		report_warn("cannot remove %s, which is no longer needed: %s", name, strerror(errno));
}
