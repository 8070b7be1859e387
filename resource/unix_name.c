// SPDX-License-Identifier: GPL-2.0
/*
 * The names of Unix sockets at a restart.  One whose node was removed is bound all
 * the same, as the program may ask for its name, and the node is removed at once: others
 * of the tree may have the name by now.  Until all connections exist it is kept by a
 * descriptor (rebuild_put_content()), through which it can be reached.
 */
#include "resource/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"
#include "resource/removed_folder.h"

#define NAME_OFFSET	offsetof(struct sockaddr_un, sun_path)

/* The address for the kernel, with its path after --relocate. */
static socklen_t make_address(const struct rebuild *r, const ProtobufCBinaryData *name,
			      struct sockaddr_un *a)
{
	char path[sizeof(a->sun_path) + 1] = "";
	const char *moved;
	size_t length = name->len;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	if (length > sizeof(a->sun_path))
		length = sizeof(a->sun_path);
	memcpy(a->sun_path, name->data, length);
	if (a->sun_path[0] != '/' || !r->relocate)
		return NAME_OFFSET + length;
	memcpy(path, name->data, length);
	moved = rebuild_path(r, path);
	if (moved && strlen(moved) < sizeof(a->sun_path)) {
		memset(a->sun_path, 0, sizeof(a->sun_path));
		strcpy(a->sun_path, moved);
		length = strlen(moved) + 1;
	}
	rebuild_path_free(moved, path);
	return NAME_OFFSET + length;
}

/*
 * A relative path counts from this folder, or, if that is NULL, from the working folder of the
 * program.  *here: a file descriptor to return by, -1: not moved.  0 or -errno, without a message.
 */
static int enter_folder(const struct rebuild *r, const Kcr__File *file, const struct sockaddr_un *a,
			const char *folder, int *here)
{
	const Kcr__Process *p = rebuild_first_owner(r, file->id);
	int there, err;

	*here = -1;
	if (!folder && p)
		folder = p->cwd;
	if (!a->sun_path[0] || a->sun_path[0] == '/' || !folder || !*folder)
		return 0;
	there = rebuild_open_path(r, folder, O_PATH | O_DIRECTORY, 0);
	if (there < 0)
		return there;
	*here = open(".", O_PATH | O_CLOEXEC);
	err = fchdir(there) ? -errno : 0;
	close(there);
	return err;
}

void unix_name_leave(int here)
{
	if (here < 0)
		return;
	if (fchdir(here))
		report_verbose("cannot return to the working folder");
	close(here);
}

/* 0 or -errno; -EADDRINUSE: it is no socket. */
static int unlink_node(const struct sockaddr_un *a)
{
	char path[sizeof(a->sun_path) + 1] = "";	/* sun_path need not have a NUL */
	struct stat st;

	memcpy(path, a->sun_path, sizeof(a->sun_path));
	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	return unlink(path) ? -errno : 0;
}

/*
 * Removes a node that the program left behind, but not that of a live socket:
 * -EADDRINUSE.  -EACCES, -EPERM: it takes other rights (file_with_rights()).
 */
static int remove_stale(const struct sockaddr_un *a, socklen_t length, int type)
{
	int fd, err;

	if (!a->sun_path[0])
		return -EADDRINUSE;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -EADDRINUSE;
	err = connect(fd, (const struct sockaddr *)a, length) ? -errno : 0;
	close(fd);
	/* Other files refuse connections, too. */
	if (err == -ECONNREFUSED)
		return unlink_node(a);
	return err == -EACCES || err == -EPERM ? err : -EADDRINUSE;
}

/*
 * The node that bind() has created, with O_PATH.  Users who may write to its folder
 * could have replaced it by now: the socket itself gives the right one, but only to
 * root, who must not trust the name.
 */
static int open_node(int fd, const char *path, bool root)
{
	int node = ioctl(fd, SIOCUNIXFILE);

	return node >= 0 || root ? node : open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Gives it its old owner and mode, as far as its maker may. */
static int set_node(const struct rebuild *r, const Kcr__UnixSocket *u, int fd, const char *path)
{
	bool root = identity_raise(false);
	int node = open_node(fd, path, root), err = 0;
	char link[PROC_PATH];
	struct stat st;

	identity_lower(root);
	if (node < 0 || fstat(node, &st) || !S_ISSOCK(st.st_mode)) {
		report_verbose("%s is gone: it keeps owner and mode", path);
	} else {
		if (u->has_mode && chmod(proc_fd_path(link, node), u->mode & 07777))
			report_verbose("cannot set the mode of %s", path);
		if (u->has_uid && u->has_gid && (st.st_uid != u->uid || st.st_gid != u->gid))
			err = rebuild_own(r, node, u->uid, u->gid, path);
	}
	if (node >= 0)
		close(node);
	return err;
}

/* What is left of the sockets that were saved is not in the way. */
static int bind_free(int fd, int type, const struct sockaddr_un *a, socklen_t length)
{
	int err = bind(fd, (const struct sockaddr *)a, length) ? -errno : 0;

	if (err != -EADDRINUSE)
		return err;
	err = remove_stale(a, length, type);
	if (!err && bind(fd, (const struct sockaddr *)a, length))
		err = -errno;
	return err;
}

/* Binds to a name that does not stay. */
static int bind_unlinked(struct rebuild *r, const Kcr__File *file, int fd,
			 const struct sockaddr_un *a, socklen_t length)
{
	char path[sizeof(a->sun_path) + 1] = "";	/* sun_path need not have a NUL */
	int err = bind_free(fd, file->unix_socket->type, a, length), node;
	size_t made = 0;
	bool root;

	memcpy(path, a->sun_path, sizeof(a->sun_path));
	if (err == -ENOENT) {
		made = removed_folder_make(path);
		err = bind(fd, (const struct sockaddr *)a, length) ? -errno : 0;
	}
	if (!err) {
		root = identity_raise(false);
		node = open_node(fd, path, root);
		err = node < 0 ? -errno : rebuild_put_content(r, file->id, node);
		identity_lower(root);
		unlink_node(a);
	}
	removed_folder_forget(path, made);
	return err;
}

static int bind_linked(const struct rebuild *r, const Kcr__UnixSocket *u, int fd,
		       const struct sockaddr_un *a, socklen_t length)
{
	int err = bind_free(fd, u->type, a, length);

	if (err || !a->sun_path[0])
		return err;
	err = set_node(r, u, fd, a->sun_path);
	if (err)
		unlink_node(a);
	return err;
}

int unix_name_bind(struct rebuild *r, const Kcr__File *file, int fd)
{
	const Kcr__UnixSocket *u = file->unix_socket;
	struct sockaddr_un a;
	socklen_t length;
	int here, err;

	if (!u->name.len)
		return 0;
	length = make_address(r, &u->name, &a);
	err = enter_folder(r, file, &a, u->folder, &here);
	if (u->unlinked && a.sun_path[0])
		err = bind_unlinked(r, file, fd, &a, length);
	else if (!err)
		err = bind_linked(r, u, fd, &a, length);
	unix_name_leave(here);
	return err ? rebuild_error(file, err, "its name cannot be bound") : 0;
}

int unix_name_borrow(const ProtobufCBinaryData *name, int fd)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t length = name->len < sizeof(a.sun_path) ? name->len : sizeof(a.sun_path);

	memcpy(a.sun_path, name->data, length);
	if (bind(fd, (struct sockaddr *)&a, NAME_OFFSET + length))
		return -errno;
	if (a.sun_path[0])
		unlink_node(&a);
	return 0;
}

/* ---- reaching ---------------------------------------------------------------------- */

int unix_name_enter(const struct rebuild *r, const Kcr__File *file, struct sockaddr_un *a,
		    socklen_t *length)
{
	int node = r->content_fd[file->id - 1], here;
	char link[PROC_PATH];

	if (node < 0) {
		*length = make_address(r, &file->unix_socket->name, a);
		enter_folder(r, file, a, file->unix_socket->folder, &here);
		return here;
	}
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	strcpy(a->sun_path, proc_fd_path(link, node));
	*length = sizeof(*a);
	return -1;
}

int unix_name_connect(const struct rebuild *r, const Kcr__File *to, int fd)
{
	struct sockaddr_un a;
	socklen_t length;
	int here = unix_name_enter(r, to, &a, &length);
	int err = connect(fd, (struct sockaddr *)&a, length) ? -errno : 0;

	unix_name_leave(here);
	return err;
}

int unix_name_connect_outside(const struct rebuild *r, const Kcr__File *file, int fd)
{
	struct sockaddr_un a;
	socklen_t length = make_address(r, &file->unix_socket->peer_name, &a);
	int here, err = enter_folder(r, file, &a, NULL, &here);

	if (!err && connect(fd, (struct sockaddr *)&a, length))
		err = -errno;
	unix_name_leave(here);
	return err;
}
