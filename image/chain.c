// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the files of a chain: first under the name that a file had, then any in the
 * folder that has its id.  Only regular files are opened, so a hostile folder can make
 * nobody wait, and each must have the trailer that its child has seen.
 */
#include "image/chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/section.h"
#include "proc/proc.h"
#include "report/report.h"

static bool has_id(int fd, uint64_t id)
{
	struct context_head head;

	return pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	       !memcmp(head.magic, CONTEXT_MAGIC, sizeof(head.magic)) && head.id == id &&
	       head.sum == context_head_sum(&head);
}

/* Takes the file as the member if it has the id. */
static bool take(struct chain_member *m, int folder, const char *path, const char *name,
		 uint64_t id)
{
	int fd = proc_open_regular(folder, name, O_NOFOLLOW, &m->st);

	if (fd < 0)
		return false;
	if (has_id(fd, id) && asprintf(&m->path, "%s/%s", path, name) >= 0) {
		m->fd = fd;
		return true;
	}
	close(fd);
	return false;
}

/* Looks at all files of the folder. */
static bool take_any(struct chain_member *m, DIR *files, const char *path, uint64_t id)
{
	const struct dirent *entry;

	while ((entry = readdir(files)))
		if ((entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) &&
		    take(m, dirfd(files), path, entry->d_name, id))
			return true;
	return false;
}

static bool find_in(struct chain_member *m, const char *path, const Kcr__Ancestor *a)
{
	DIR *files = path ? opendir(path) : NULL;
	bool found;

	if (!files)
		return false;
	found = take(m, dirfd(files), path, a->name, a->id) || take_any(m, files, path, a->id);
	closedir(files);
	return found;
}

/* Is the trailer where it was, and the same? */
static int check_trailer(const struct chain_member *m, const Kcr__Ancestor *a)
{
	struct section_head head;

	if (a->trailer_position <= INT64_MAX &&
	    pread(m->fd, &head, sizeof(head), a->trailer_position) == sizeof(head) &&
	    head.type == CONTEXT_TRAILER && head.sum == a->trailer_sum &&
	    head.sum == section_head_sum(&head, a->id) &&
	    m->st.st_size >= (off_t)(a->trailer_position + sizeof(head) + head.meta_length))
		return 0;
	return report_fail(-EINVAL, "%s is truncated or damaged: it does not end as it did when its "
			   "increment was made", m->path);
}

/* Says what is missing, or that another file has its name. */
static int refuse_missing(const struct chain *c, const Kcr__Ancestor *a, const char *folder)
{
	const unsigned long long id = a->id;
	char *path = NULL;
	struct stat st;

	if (folder && asprintf(&path, "%s/%s", folder, a->name) >= 0 && !lstat(path, &st))
		report_fail(-EINVAL, "%s is an increment, and %s is not the file that it continues "
			    "(id %016llx): bring that back, or name its folder with --chain-path",
			    c->name, path, id);
	else
		report_fail(-ENOENT, "%s is an increment and needs the older file %s (id %016llx)%s%s: "
			    "%sname its folder with --chain-path", c->name, a->name, id,
			    folder ? ", which is not in " : "", folder ?: "",
			    folder ? "bring it there, or " : "");
	free(path);
	return report_error();
}

static int open_member(struct chain_member *m, const struct chain *c, const Kcr__Ancestor *a,
		       const char *folder, const char *other_folder)
{
	m->fd = -1;
	if (find_in(m, folder, a) || find_in(m, other_folder, a))
		return check_trailer(m, a);
	return refuse_missing(c, a, folder);
}

/* The folder of an open file; false: it is in none. */
static bool folder_of(int fd, char *path, size_t size)
{
	ssize_t length = proc_fd_link(fd, path, size);
	char *slash;

	if (length < 0 || path[0] != '/')
		return false;
	slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	return true;
}

int chain_open(struct chain **out, const Kcr__Preamble *last, const char *name, int fd,
	       const char *other_folder)
{
	struct chain *c = calloc(1, sizeof(*c));
	char path[PATH_MAX];
	const char *folder = folder_of(fd, path, sizeof(path)) ? path : NULL;
	int err = 0;

	if (c)
		c->name = strdup(name);
	if (!c || !c->name) {
		free(c);
		return report_errno(-ENOMEM, "%s", name);
	}
	while (!err && c->count < last->n_ancestor) {
		err = open_member(&c->member[c->count], c, last->ancestor[c->count], folder,
				  other_folder);
		c->count++;
	}
	if (err)
		chain_free(c);
	else
		*out = c;
	return err;
}

static int verify(const struct chain_member *m)
{
	uint64_t id;			/* chain_open() has compared it */

	return lseek(m->fd, 0, SEEK_SET) < 0 ? report_errno(-errno, "%s", m->path) :
					       context_verify(m->fd, m->path, &id);
}

int chain_verify(const struct chain *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->count; i++)
		err = verify(&c->member[i]);
	return err;
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++) {
		if (c->member[i].fd >= 0)
			close(c->member[i].fd);
		free(c->member[i].path);
	}
	free(c->name);
	free(c);
}
