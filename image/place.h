/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a tool writes a file: an open directory and a name in it, which stay the
 * same from the first check to the last step even if the path is changed meanwhile.
 * Root follows only root's symbolic links: others may lead anywhere.
 */
#ifndef KCR_IMAGE_PLACE_H
#define KCR_IMAGE_PLACE_H

#include <limits.h>
#include <stdbool.h>

struct stat;

struct place {
	int folder;			/* open for reading; -1: none */
	char name[NAME_MAX + 1];	/* no symbolic link, unless `descriptor` */
	bool followed;			/* the last component of the path was a link */
	bool descriptor;		/* the name is a link in /proc/PID/fd to a pipe or socket */
};

/*
 * `follow`: follow a link at the end of the path, else the place is the link itself.
 * -errno, reported; -EISDIR: the path ends without a name.
 */
int place_find(struct place *p, const char *path, bool follow);
void place_close(struct place *p);
/*
 * Opens an existing file with O_PATH, of which it can be found out then what it is.  For root by way
 * of its own links only: others may lead to what seems to be root's.  -errno, reported.
 */
int place_node(const char *path);
/* Is `name` that of an older file of the one called `base`: base.N? */
bool place_is_numbered(const char *name, const char *base);

/* Opens an existing file that is not a regular one for writing.  -errno, reported. */
int place_open_special(const struct place *p, const char *path);
/*
 * Makes a file beside it that only its owner may read, which place_commit() gives the name: an
 * existing one stays until then, and whoever has it open gets nothing of the new one.  For root, an
 * existing one must be a regular file of root's.  -errno, reported.
 */
int place_create(const struct place *p, const char *path);
/* The file is complete, or not to be: -errno, reported, if it could not be given the name. */
int place_commit(const struct place *p, const char *path, bool complete);
/* Removes another name in the folder, if it is the file *old still; a warning if it stays. */
void place_remove(const struct place *p, const char *name, const struct stat *old);

#endif /* KCR_IMAGE_PLACE_H */
