// SPDX-License-Identifier: GPL-2.0
/*
 * The mount of an open file is found by the mount's ID, not by a path.  Mounts that users
 * may make are nosuid, for the same reason; but so are many of root's.  See mount.h.
 */
#include "proc/mount.h"

#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "proc/proc.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC	0x65735546
#endif
#define FSTAB			"/etc/fstab"

struct mount {
	char *line;		/* of mountinfo; the others point into it */
	char *place, *type, *super;
};

void mount_unescape(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to++ = (text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0');
			text += 3;
		} else {
			*to++ = *text;
		}
	*to = '\0';
}

/* The fields that are looked at; false: not such a line. */
static bool split(struct mount *m)
{
	char *tail = strstr(m->line, " - "), *word = m->line, *save;

	if (!tail)
		return false;
	*tail = '\0';
	for (int i = 0; i < 4 && word; i++) {		/* ID, parent, device, root */
		word = strchr(word, ' ');
		word += word != NULL;
	}
	m->place = word ? strtok_r(word, " ", &save) : NULL;
	m->type = strtok_r(tail + 3, " ", &save);
	if (!strtok_r(NULL, " ", &save))		/* the source */
		return false;
	m->super = strtok_r(NULL, " \n", &save);
	if (!m->place || !m->type || !m->super)
		return false;
	mount_unescape(m->place);
	return true;
}

static int mount_id(int fd)
{
	char name[32], text[512] = "";
	const char *id;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (proc_read(PROC_SELF, name, text, sizeof(text)) <= 0)
		return -1;
	id = strstr(text, "mnt_id:");
	return id ? atoi(id + strlen("mnt_id:")) : -1;
}

/* False: it is not below our root folder, or of another mount namespace. */
static bool find(int fd, struct mount *m)
{
	FILE *list = proc_stream(PROC_SELF, "mountinfo");
	int id = mount_id(fd);
	size_t size = 0;
	bool found = false;

	*m = (struct mount){ 0 };
	while (list && id >= 0 && !found && getline(&m->line, &size, list) > 0)
		found = atoi(m->line) == id;
	if (list)
		fclose(list);
	return found && split(m);
}

/* Does a file system of this kind need a device?  So says the kernel's list of them. */
static bool is_on_device(const char *type)
{
	FILE *list = proc_stream(PROC_ROOT, "filesystems");
	size_t length = strcspn(type, ".");		/* "fuse.sshfs" is of kind "fuse" */
	char line[128], name[128];
	bool without = false;

	while (list && !without && fgets(line, sizeof(line), list))
		without = sscanf(line, "nodev %127s", name) == 1 && strlen(name) == length &&
			  !strncmp(name, type, length);
	if (list)
		fclose(list);
	return !without;
}

/* Is this place in fstab, where root alone may mount what is meant to be there? */
static bool is_in_fstab(const char *place)
{
	static const char *const users[] = { "user", "users", "owner", "group" };
	FILE *table = setmntent(FSTAB, "re");
	const struct mntent *entry;
	bool found = false;

	while (table && !found && (entry = getmntent(table))) {
		size_t length = strlen(entry->mnt_dir);

		while (length > 1 && entry->mnt_dir[length - 1] == '/')
			length--;
		found = strlen(place) == length && !strncmp(entry->mnt_dir, place, length);
		for (size_t i = 0; found && i < sizeof(users) / sizeof(*users); i++)
			found = !hasmntopt(entry, users[i]);
	}
	if (table)
		endmntent(table);
	return found;
}

/* The user who has mounted a FUSE file system; -1: not known. */
static long long fuse_user(const struct mount *m)
{
	const char *option = strstr(m->super, "user_id=");

	/* virtiofs shows none: it is the machine's host that answers. */
	if (!strcmp(m->type, "virtiofs"))
		return 0;
	return option ? atoll(option + strlen("user_id=")) : -1;
}

/* On a mount that is FUSE or nosuid, or both. */
static bool is_made_up(int fd, bool fuse, bool nosuid, uid_t owner, char *what, size_t size)
{
	struct mount m;
	bool visible = find(fd, &m), made_up = true;
	long long user = visible && fuse ? fuse_user(&m) : 0;

	if (!visible) {
		snprintf(what, size, "it is on a mount out of sight");
	} else if (user && user != owner) {
		snprintf(what, size, "it is in %s, a FUSE file system of user %lld", m.place, user);
	} else if (nosuid && is_on_device(m.type) && !is_in_fstab(m.place)) {
		snprintf(what, size, "it is in %s, which is mounted nosuid and not as root's " FSTAB
			 " says", m.place);
	} else {
		made_up = false;
	}
	free(m.line);
	return made_up;
}

bool mount_is_visible(int fd)
{
	struct mount m;
	bool visible = find(fd, &m);

	free(m.line);
	return visible;
}

bool mount_makes_up_owners(int fd, char *what, size_t size)
{
	struct statvfs flags;
	struct statfs fs;
	struct stat st;
	bool fuse, nosuid;

	if (fstatfs(fd, &fs) || fstatvfs(fd, &flags) || fstat(fd, &st)) {
		snprintf(what, size, "nothing is known of what it is in");
		return true;
	}
	if (fs.f_type == PROC_SUPER_MAGIC) {
		snprintf(what, size, "it is in /proc");
		return true;
	}
	fuse = fs.f_type == FUSE_SUPER_MAGIC;
	nosuid = flags.f_flag & ST_NOSUID;
	/* In any tmpfs users have only their own IDs. */
	return (fuse || nosuid) && fs.f_type != TMPFS_MAGIC &&
	       is_made_up(fd, fuse, nosuid, st.st_uid, what, size);
}
