/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a tool writes a file: an open folder and a name in it, which mean the same
 * from the first look to the last step, whoever changes the path meanwhile.  Root
 * follows only root's symbolic links: another one may lead anywhere.
 */
#ifndef KCR_IMAGE_PLACE_H
#define KCR_IMAGE_PLACE_H

#include <limits.h>
#include <stdbool.h>

struct place {
	int folder;			/* open for reading; -1: none */
	char name[NAME_MAX + 1];	/* no symbolic link, unless `descriptor` */
	bool followed;			/* the path's last part was a link */
	bool descriptor;		/* the name is a link of /proc/PID/fd to a pipe or socket */
};

/*
 * `follow`: what a link at the end of the path leads to, else the link itself.
 * -errno, reported; -EISDIR: the path ends without a name.
 */
int place_find(struct place *p, const char *path, bool follow);
void place_close(struct place *p);

/* Opens for writing what has the name and is no regular file. -errno, reported. */
int place_open_special(const struct place *p, const char *path);
/*
 * An empty file under the name.  One that root finds there must be root's alone, and
 * makes way for a new one: somebody may have it open.  -errno, reported.
 */
int place_create(const struct place *p, const char *path);

#endif /* KCR_IMAGE_PLACE_H */
