// SPDX-License-Identifier: GPL-2.0
/* A queue of folders: those near the top come first, where watched ones usually are. */
#include "resource/tree_search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/clock.h"

#define FOLDERS	200000

struct search {
	const char *name;		/* of the tree: an absolute path */
	int top;
	unsigned long long ino;
	bool (*is_it)(const char *path, const void *arg);
	const void *arg;
	char **folder;			/* [count], relative; those before `next` are freed */
	size_t count, room, next;
	char *found;
};

/* Takes over `path`. */
static void add_folder(struct search *s, char *path)
{
	char **more;

	if (path && s->count == s->room && s->room < FOLDERS) {
		more = realloc(s->folder, (s->room + 1024) * sizeof(*more));
		if (more) {
			s->folder = more;
			s->room += 1024;
		}
	}
	if (path && s->count < s->room)
		s->folder[s->count++] = path;
	else
		free(path);
}

/* Nothing of another mount is asked for, which may be a user's and never answer. */
static DIR *open_folder(const struct search *s, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | O_NOATIME,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	int fd = syscall(SYS_openat2, s->top, path, &how, sizeof(how));
	DIR *folder;

	if (fd < 0 && errno == EPERM) {
		how.flags &= ~O_NOATIME;
		fd = syscall(SYS_openat2, s->top, path, &how, sizeof(how));
	}
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder && fd >= 0)
		close(fd);
	return folder;
}

/* Is it `path` in the tree?  Then that is what has been found. */
static void compare(struct search *s, const char *path)
{
	char *whole;

	if (asprintf(&whole, "%s%s%s", s->name, s->name[1] && *path ? "/" : "", path) < 0)
		return;
	if (s->is_it(whole, s->arg))
		s->found = whole;
	else
		free(whole);
}

static void look_at(struct search *s, const char *path, const struct dirent *entry)
{
	char *below;

	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
	    asprintf(&below, "%s%s%s", path, *path ? "/" : "", entry->d_name) < 0)
		return;
	if (entry->d_type != DT_DIR && entry->d_ino == s->ino)
		compare(s, below);
	if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
		add_folder(s, below);
	else
		free(below);
}

/* The number of a folder is asked for: that in a list may be another one, in overlayfs. */
static void look_into(struct search *s, const char *path)
{
	DIR *folder = open_folder(s, *path ? path : ".");
	const struct dirent *entry;
	struct stat st;

	if (!folder)
		return;
	if (!fstat(dirfd(folder), &st) && st.st_ino == s->ino)
		compare(s, path);
	while (!s->found && (entry = readdir(folder)))
		look_at(s, path, entry);
	closedir(folder);
}

char *tree_search(const char *top, unsigned long long ino, unsigned int ms,
		  bool (*is_it)(const char *path, const void *arg), const void *arg)
{
	const uint64_t end = now_ns() + ms * 1000000ULL;
	struct search s = { .name = top, .ino = ino, .is_it = is_it, .arg = arg };
	char *path;

	s.top = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s.top < 0)
		return NULL;
	add_folder(&s, strdup(""));
	while (!s.found && s.next < s.count && now_ns() < end) {
		path = s.folder[s.next++];
		look_into(&s, path);
		free(path);
	}
	while (s.next < s.count)
		free(s.folder[s.next++]);
	free(s.folder);
	close(s.top);
	return s.found;
}
