/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ranks' files of a snapshot on the disks of their nodes.  The folder of the
 * snapshot has a link, "local", to a folder of one and the same name on every
 * node, which is never used twice: /scratch/NAME.kcr.0123456789abcdef.  So a path
 * through the link is right on the node that wrote the file, and nobody has to
 * read the manifest for it.  Who has gathered the files puts a folder in the
 * link's place.
 */
#ifndef JOB_LOCAL_H
#define JOB_LOCAL_H

#define LOCAL_LINK "local"

/* A new name below `parent` for the snapshot `path`; malloc()ed or NULL. */
char *local_name(const char *parent, const char *path);

/* Where the link in the snapshot `dir` leads, malloc()ed; NULL: there is none. */
char *local_folder(const char *dir);

/* Makes the link.  0 or -errno. */
int local_link(const char *dir, const char *folder);

/* On a node.  0 or -errno; it is all right if the folder is there. */
int local_make(const char *folder);

/* On a node: the names in it are on the disk.  0 or -errno. */
int local_sync(const char *folder);

/* On a node: removes the folder, if its name is one that local_name() makes. */
void local_remove(const char *folder);

#endif /* JOB_LOCAL_H */
