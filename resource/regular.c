// SPDX-License-Identifier: GPL-2.0
/*
 * Regular files, and O_PATH descriptors of anything but directories.  They
 * are opened again by path; their contents are saved only if the path is not
 * enough: deleted files, created again in the same folder and deleted again,
 * and POSIX shared memory objects, which do not survive a reboot.  Files that
 * programs have mapped must be unchanged.
 */
#include "resource/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/mount.h"
#include "proc/proc.h"
#include "report/report.h"
#include "resource/build_id.h"
#include "resource/identity.h"
#include "resource/silly_name.h"

#define MOST_ENTRIES	65536	/* of a folder that are searched for a name */

static bool match(const struct file_probe *probe)
{
	return S_ISREG(probe->st.st_mode) ||
	       (probe->flags & O_PATH && !S_ISDIR(probe->st.st_mode));
}

/* ---- save ------------------------------------------------------------------- */

/* Files that look regular but have no path to open them by. */
static const char *unsupported(const struct file_table *t, const struct file_probe *probe,
			       bool deleted)
{
	if (probe->fs.f_type == SECRETMEM_MAGIC)
		return "secret memory (memfd_secret)";
	if (probe->fs.f_type == NSFS_MAGIC)
		return "a namespace";
	if (probe->link[0] != '/')
		return "a file without a path in this root directory";
	if (deleted && probe->fs.f_type == PROC_SUPER_MAGIC)
		return "a file of a process that has ended";
	if (own_proc_is_of_thread(probe))
		return "a file of /proc of another thread than the first of its process";
	if (deleted && !S_ISREG(probe->st.st_mode))
		return "a deleted file that is not regular";
	return file_state_refusal(t, probe);
}

/* By its name, unless that is one of another mount namespace; found: `path` was looked up here. */
static bool is_posix_shared_memory(const struct file_probe *probe, const char *path, bool found)
{
	return probe->fs.f_type == TMPFS_MAGIC && !strncmp(path, "/dev/shm/", 9) &&
	       S_ISREG(probe->st.st_mode) && (found || probe_is_at_path(probe));
}

/* Are the contents saved of a file that is not deleted? */
static bool keeps_contents(const struct file_table *t, const struct file_probe *probe,
			   const char *path, bool found)
{
	return !(probe->flags & O_PATH) &&
	       (is_posix_shared_memory(probe, path, found) || file_table_keeps(t, probe));
}

static bool has_contents(const Kcr__File *file)
{
	return file->regular->deleted || file->regular->shared_memory;
}

static int save_build_id(const struct file_probe *probe, Kcr__RegularFile *regular)
{
	uint8_t id[BUILD_ID_MAX];
	int length = build_id_of(probe->fd, &probe->st, id);

	if (!length)
		return 0;
	regular->has_build_id = true;
	return file_bytes(&regular->build_id, id, length);
}

static bool is_other_name(const struct file_probe *probe, int folder, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_ino != probe->st.st_ino && probe->fs.f_type != OVERLAYFS_SUPER_MAGIC &&
	    probe->fs.f_type != FUSE_SUPER_MAGIC)
		return false;
	return !fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_ino == probe->st.st_ino && st.st_dev == probe->st.st_dev;
}

/*
 * Another name of a deleted file in the same folder, as an absolute path; NULL: none.  What the
 * file is called until it is closed is none (*silly).
 */
static char *other_name(const struct file_probe *probe, const char *path, bool *silly)
{
	int length = strrchr(path, '/') - path + 1, left = MOST_ENTRIES;
	struct dirent *entry;
	char folder[PATH_MAX], *found = NULL;
	DIR *all;

	snprintf(folder, sizeof(folder), "%.*s", length, path);
	all = opendir(folder);
	while (all && !found && left-- && (entry = readdir(all))) {
		if (!is_other_name(probe, dirfd(all), entry))
			continue;
		if (silly_name_is(entry->d_name, probe->fs.f_type))
			*silly = true;
		else if (asprintf(&found, "%s%s", folder, entry->d_name) < 0)
			found = NULL;
	}
	if (all)
		closedir(all);
	return found;
}

/*
 * A deleted file with another name is still that file, not a copy: true, and its path, if
 * the name is found.
 */
static bool is_still_there(const struct file_table *t, const struct file_probe *probe, char **path)
{
	bool silly = false;
	char *other;

	if (!S_ISREG(probe->st.st_mode) || !probe->st.st_nlink || probe->flags & O_PATH)
		return false;
	other = other_name(probe, *path, &silly) ?: file_table_other_path(t, probe);
	if (!other && probe->st.st_nlink > silly && !file_table_is_dry(t))
		report_warn("process %d: %s was deleted and has another name in another folder: "
			    "a restart makes a copy of it", probe->pid, *path);
	if (!other)
		return false;
	free(*path);
	*path = other;
	return true;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	bool deleted = probe_is_deleted(probe), found;
	const char *why = unsupported(t, probe, deleted);
	const struct stat *st = &probe->st;
	Kcr__RegularFile *regular;

	if (why)
		return file_unsupported(t, "%s", why);
	regular = file_new_kind(file, KCR__FILE__KIND_REGULAR, sizeof(*regular));
	if (!regular)
		return -ENOMEM;
	regular->path = probe_path(probe, deleted);
	if (!regular->path)
		return -ENOMEM;
	found = deleted && is_still_there(t, probe, &regular->path);
	deleted = deleted && !found;
	/* In a namespace of his own a user may give any file a path like that of a deleted one. */
	if (deleted && st->st_nlink && !mount_is_visible(probe->fd))
		return file_unsupported(t, "a file of another mount namespace");
	regular->size = st->st_size;
	regular->mtime_sec = st->st_mtim.tv_sec;
	regular->mtime_nsec = st->st_mtim.tv_nsec;
	regular->ino = st->st_ino;
	regular->dev = st->st_dev;
	regular->mode = st->st_mode;
	regular->has_deleted = regular->deleted = deleted;
	regular->has_shared_memory = regular->shared_memory =
		!deleted && keeps_contents(t, probe, regular->path, found);
	if (has_contents(file)) {
		regular->has_uid = regular->has_gid = regular->has_link_group = true;
		regular->uid = st->st_uid;
		regular->gid = st->st_gid;
		regular->link_group = file_table_first_with_inode(t, probe, file, has_contents);
		return 0;
	}
	if (!probe->mapped_exec_or_private)
		return 0;
	regular->has_must_match = regular->must_match = true;
	return save_build_id(probe, regular);
}

static uint64_t content_size(const struct file_probe *probe, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	uint64_t stored = (uint64_t)probe->st.st_blocks * 512;

	if (!has_contents(file) || regular->link_group != file->id)
		return 0;
	return stored && stored < regular->size ? stored : regular->size;
}

/* ---- rebuild: files that still exist --------------------------------------------- */

static int check_unchanged(int fd, const struct stat *st, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	uint8_t id[BUILD_ID_MAX];

	if ((uint64_t)st->st_size != regular->size)
		return report_fail(-ESTALE, "%s has changed since the checkpoint (%lld bytes, were %llu)",
				   regular->path, (long long)st->st_size,
				   (unsigned long long)regular->size);
	if (regular->has_build_id) {
		size_t length = build_id_read(fd, id, sizeof(id));

		if (length == regular->build_id.len &&
		    !memcmp(id, regular->build_id.data, length))
			return 0;
		return report_fail(-ESTALE, "%s has changed since the checkpoint (another build id)",
				   regular->path);
	}
	if (st->st_mtim.tv_sec != regular->mtime_sec ||
	    (uint32_t)st->st_mtim.tv_nsec != regular->mtime_nsec)
		return report_fail(-ESTALE, "%s, which the program has mapped, has changed since the "
				   "checkpoint (another time of modification)", regular->path);
	return 0;
}

/*
 * A file that the program had been given and could not open itself: it must be the
 * very same, unless only root can have replaced it.
 */
static int check_given(const struct rebuild *r, int fd, const Kcr__RegularFile *regular)
{
	struct stat st;

	if (!identity_is_guarding())
		return 0;
	if (fstat(fd, &st))
		return -errno;
	if ((st.st_ino == regular->ino && st.st_dev == regular->dev) ||
	    rebuild_is_guarded(r, regular->path))
		return 0;
	return report_fail(-EACCES, "%s: the program may not open it, and it is not the file that it "
			   "had: restore its mode, or the file", regular->path);
}

static int open_existing(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	int fd, err, flags = rebuild_open_flags(file);
	struct stat st;

	if (own_proc_has(r, regular->path))
		fd = own_proc_stand_in(r, file, regular->path);
	else
		fd = rebuild_open_node(r, regular->path, flags, &st,
				       flags & O_PATH ? regular->mode & S_IFMT : S_IFREG);
	if (fd < 0)
		return rebuild_error(file, fd, fd == -EACCES && S_ISREG(regular->mode) ?
				     "it cannot be opened (see --redirect)" : "it cannot be opened");
	err = check_given(r, fd, regular);
	if (!err && regular->must_match)
		err = fstat(fd, &st) ? rebuild_error(file, -errno, "fstat") :
				       check_unchanged(fd, &st, file);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

/* ---- rebuild: files with contents ------------------------------------------------ */

/* It may get a name later, by linkat(2). */
#define UNNAMED		(O_RDWR | O_TMPFILE | O_CLOEXEC)
/* Nobody else can open it, ever: neither by name nor as it cannot get one. */
#define NAMELESS	(UNNAMED | O_EXCL)

/*
 * Creates a file under its old name, which it has in /proc then, and deletes it.  -1: the name
 * is in use, or has been exchanged meanwhile.
 */
static int make_and_delete(int folder, const char *name, mode_t mode)
{
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	if (!unlinkat(folder, name, 0) && silly_name_only(fd, folder) && !fchmod(fd, mode))
		return fd;
	close(fd);
	return -1;
}

/*
 * Was it created by O_TMPFILE?  Then /proc calls it by its number.  That tells it after a
 * restart, too, when its flags do not: they cannot be set again.  With O_EXCL or not
 * cannot be seen.
 */
static bool was_unnamed(const Kcr__File *file)
{
	const char *name = strrchr(file->regular->path, '/');
	char number[24];

	snprintf(number, sizeof(number), "/#%llu", (unsigned long long)file->regular->ino);
	return (file->flags & O_TMPFILE) == O_TMPFILE || (name && !strcmp(name, number));
}

static int make_hidden(int folder, const Kcr__File *file, mode_t mode)
{
	char name[32];

	snprintf(name, sizeof(name), ".kcr-%d-%u", getpid(), file->id);
	return make_and_delete(folder, name, mode);
}

/* Where its folder is gone, or cannot be written to. */
static int make_anywhere(const Kcr__File *file, bool named, mode_t mode)
{
	int fd = identity_open(P_tmpdir, NAMELESS, mode), folder, hidden;

	if (fd >= 0 || !named)
		return fd;
	folder = identity_open(P_tmpdir, O_PATH | O_DIRECTORY, 0);
	hidden = folder < 0 ? -1 : make_hidden(folder, file, mode);
	if (folder >= 0)
		close(folder);
	return hidden < 0 ? fd : hidden;
}

/*
 * Creates a deleted file: under its old name if that is free, else without a name.  For a
 * moment its maker could open it by its name, so a user makes none of another owner so;
 * nor one that could get a name.
 */
static int make_deleted(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	uid_t maker = identity_user();
	bool named = !maker || maker == regular->uid || !identity_may_be_anyone();
	mode_t mode = (regular->mode & 0777) | 0600;
	char name[NAME_MAX + 1];
	int folder = rebuild_open_folder(r, regular->path, name), fd = -1;

	if (folder >= 0) {
		if (named && was_unnamed(file))
			fd = openat(folder, ".", UNNAMED, mode);
		if (named && fd < 0)
			fd = make_and_delete(folder, name, mode);
		if (fd < 0)
			fd = openat(folder, ".", NAMELESS, mode);
		if (named && fd < 0)	/* NFS has none without a name */
			fd = make_hidden(folder, file, mode);
		close(folder);
	}
	return fd >= 0 ? fd : make_anywhere(file, named, mode);
}

/* Under this description, was it created without a name?  Linux keeps the flag. */
static bool is_nameless(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_TMPFILE) == O_TMPFILE;
}

static bool is_folder_guarded(const struct rebuild *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	if (!slash || slash == path)
		return false;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	return rebuild_is_guarded(r, folder);
}

static int make_in(int folder, const char *name, const struct rebuild *r,
		   const Kcr__RegularFile *regular)
{
	int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	mode_t more = identity_is_guarding() ? 0 : 0600;	/* root needs none to open it again */
	int err;

	if (fd < 0)
		return -errno;
	err = rebuild_own(r, fd, regular->uid, regular->gid, regular->path);
	if (!err && fchmod(fd, (regular->mode & 0777) | more))
		err = -errno;
	if (!err)
		return fd;
	unlinkat(folder, name, 0);
	close(fd);
	return err;
}

/*
 * A new shared memory object, of its old owner if its maker may give it away.  For a program
 * that may not, root makes it where no user can exchange the folder.
 */
static int make_object(const struct rebuild *r, const Kcr__RegularFile *regular)
{
	char name[NAME_MAX + 1];
	int folder, fd;

	if (identity_is_guarding() && !is_folder_guarded(r, regular->path))
		return report_fail(-EACCES, "%s is gone, and the program may not make it as it was: "
				   "make it for user %u", regular->path, regular->uid);
	folder = rebuild_open_folder(r, regular->path, name);
	if (folder < 0)
		return folder;
	fd = make_in(folder, name, r, regular);
	close(folder);
	return fd;
}

/*
 * One that exists must be its old owner's: another user may have it open.  Or its maker's
 * own, unless a process of its old owner has it, too.
 */
static int check_owner(const struct rebuild *r, int fd, const Kcr__RegularFile *regular)
{
	struct stat st;

	if (!identity_may_be_anyone())
		return 0;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid == regular->uid ||
	    (st.st_uid == identity_user() && !rebuild_has_user(r, regular->uid)))
		return 0;
	return report_fail(-EEXIST, "%s belongs to user %u, and belonged to user %u: remove it",
			   regular->path, st.st_uid, regular->uid);
}

/*
 * The object of this name, created if there is none.  Not by O_CREAT alone: in a
 * sticky folder fs.protected_regular denies that, to root as well, for an
 * existing file of another user.
 */
static int open_or_make(const struct rebuild *r, const Kcr__RegularFile *regular)
{
	const int flags = O_RDWR | O_NOFOLLOW;
	int fd = rebuild_open_path(r, regular->path, flags, 0), err;

	if (fd == -ENOENT) {
		fd = make_object(r, regular);
		if (fd != -EEXIST)
			return fd;
		/* Created by another process meanwhile. */
		fd = rebuild_open_path(r, regular->path, flags, 0);
	}
	err = fd < 0 ? 0 : check_given(r, fd, regular) ?: check_owner(r, fd, regular);
	if (err)
		close(fd);
	return err ?: fd;
}

/*
 * A shared memory object: created again, or overwritten if no other program has
 * it open (which a write lease checks).
 */
static int make_shared_memory(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	int fd = open_or_make(r, regular);
	int err;

	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	if (fcntl(fd, F_SETLEASE, F_WRLCK)) {
		err = errno == EAGAIN || errno == EBUSY ?
			report_fail(-EBUSY, "the shared memory object %s is in use by another program",
				    regular->path) :
			rebuild_error(file, -errno, "cannot find out whether it is in use");
		close(fd);
		return err;
	}
	fcntl(fd, F_SETLEASE, F_UNLCK);
	if (ftruncate(fd, 0)) {
		err = rebuild_error(file, -errno, "cannot empty it");
		close(fd);
		return err;
	}
	return fd;
}

static int open_contents(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	int fd, err;

	fd = regular->shared_memory ? make_shared_memory(r, file) : make_deleted(r, file);
	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be created");
	if (ftruncate(fd, regular->size)) {
		err = rebuild_error(file, -errno, "cannot give it %llu bytes",
				    (unsigned long long)regular->size);
		close(fd);
		return err;
	}
	return rebuild_put_content(r, file->id, fd);
}

static int open_again(struct rebuild *r, const Kcr__File *file)
{
	uint32_t first = file->regular->link_group;
	const Kcr__File *origin = context_file(r->context, first);
	int base, fd, err;

	if (!origin || origin->kind_case != KCR__FILE__KIND_REGULAR)
		return rebuild_error(file, -EINVAL, "its contents are those of no file");
	if (first == file->id) {
		err = open_contents(r, file);
		if (err)
			return err;
	}
	base = r->content_fd[first - 1];
	if (base < 0)
		return rebuild_error(file, -EINVAL, "its contents come too late");
	fd = proc_fd_reopen(base, rebuild_open_flags(file) & ~O_NOFOLLOW);
	if (fd < 0)
		return rebuild_error(file, fd, "it cannot be opened");
	return rebuild_put(r, file->id, fd);
}

static int open_file(struct rebuild *r, const Kcr__File *file)
{
	if (file->regular->deleted || file->regular->shared_memory)
		return open_again(r, file);
	return open_existing(r, file);
}

static int check_file(struct rebuild *r, const Kcr__File *file)
{
	return file->regular->deleted || file->regular->shared_memory ? 0 : open_existing(r, file);
}

static int give_deleted(const struct rebuild *r, int fd, const Kcr__RegularFile *regular)
{
	bool raised = is_nameless(fd) && identity_raise(false);
	int err = rebuild_own(r, fd, regular->uid, regular->gid, regular->path);

	identity_lower(raised);
	return err;
}

static int complete(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__RegularFile *regular = file->regular;
	struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = regular->mtime_sec, .tv_nsec = regular->mtime_nsec },
	};
	int fd = r->content_fd[file->id - 1], err = 0;
	mode_t mode = regular->mode & 07777;
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st))
		return rebuild_error(file, -errno, "fstat");
	futimens(fd, times);
	/* One that belonged to another user until now must not run with the owner's rights. */
	if (st.st_uid != regular->uid || st.st_gid != regular->gid)
		mode &= 01777;
	if ((st.st_mode & 07777) != mode && fchmod(fd, mode)) {
		if (regular->deleted)
			return rebuild_error(file, -errno, "cannot set its mode");
		report_verbose("%s has another mode than before", regular->path);
	}
	if (regular->deleted && (st.st_uid != regular->uid || st.st_gid != regular->gid))
		err = give_deleted(r, fd, regular);
	if (err)
		return err;
	close(fd);			/* a file open for writing cannot be executed */
	r->content_fd[file->id - 1] = -1;
	return 0;
}

static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	return own_proc_install(r, process, file, file->regular->path, number);
}

const struct file_kind file_kind_regular = {
	.kind = KCR__FILE__KIND_REGULAR,
	.name = "regular file",
	.match = match,
	.save = save,
	.content_size = content_size,
	.open = open_file,
	.check = check_file,
	.complete = complete,
	.install = install,
};
