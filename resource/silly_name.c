// SPDX-License-Identifier: GPL-2.0
#include "resource/silly_name.h"

#include <errno.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/proc.h"

/* What the clients write, followed by so many hexadecimal digits. */
static const struct silly {
	long type;
	const char *prefix;
	size_t least, most;
} known[] = {
	{ NFS_SUPER_MAGIC, ".nfs", 24, 24 },
	{ FUSE_SUPER_MAGIC, ".fuse_hidden", 16, 16 },
	{ CIFS_SUPER_MAGIC, "cifs", 1, 4 },		/* SMB 1 */
	{ CIFS_SUPER_MAGIC, ".__smbfile_silly", 1, 24 },	/* since 6.18 */
	{ SMB2_SUPER_MAGIC, ".__smbfile_silly", 1, 24 },
};

static bool matches(const struct silly *s, const char *name)
{
	size_t prefix = strlen(s->prefix), length = strlen(name);

	return !strncmp(name, s->prefix, prefix) && length >= prefix + s->least &&
	       length <= prefix + s->most &&
	       strspn(name + prefix, "0123456789abcdefABCDEF") == length - prefix;
}

bool silly_name_is(const char *path, long type)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((unsigned int)type == known[i].type &&
		    matches(&known[i], slash ? slash + 1 : path))
			return true;
	return false;
}

/* NFS alone tells a name of its own from one that a program gave, by refusing to remove it. */
static bool is_busy(int folder, const char *path)
{
	return unlinkat(folder, strrchr(path, '/') + 1, 0) && errno == EBUSY;
}

bool silly_name_only(int fd, int folder)
{
	static const char deleted[] = " (deleted)";
	const size_t end = sizeof(deleted) - 1;
	struct statfs fs;
	struct stat st;
	char path[8192];
	ssize_t length;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return false;
	if (st.st_nlink != 1)
		return !st.st_nlink;
	length = proc_fd_link(fd, path, sizeof(path));
	if (length < (ssize_t)end || path[0] != '/')
		return false;
	if (fs.f_type == NFS_SUPER_MAGIC)
		return silly_name_is(path, fs.f_type) && is_busy(folder, path);
	return fs.f_type == FUSE_SUPER_MAGIC && !strcmp(path + length - end, deleted);
}
