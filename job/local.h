/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ranks' files of a snapshot on the disks of their nodes.  The folder of the
 * snapshot has a link, "local", to a folder of one and the same name on every
 * node, which is never used twice: /scratch/NAME.kcr.0123456789abcdef.  So a path
 * through the link is right on the node that wrote the file, without reading the
 * manifest.  Users who gather the files replace the link by a folder.
 */
#ifndef JOB_LOCAL_H
#define JOB_LOCAL_H

#define LOCAL_LINK "local"

/* A new name below `parent` for the snapshot `path`; malloc()ed or NULL. */
char *local_name(const char *parent, const char *path);

/* The target of the link in the snapshot `dir`, malloc()ed; NULL: there is none. */
char *local_folder(const char *dir);

/* Creates the link.  0 or -errno. */
int local_link(const char *dir, const char *folder);

/*
 * On a node: creates the folder unless it exists.  0 or -errno; -EEXIST: the one that is there is
 * another user's, who could choose what is restarted.
 */
int local_make(const char *folder);

/* On a node: syncs the names in it to the disk.  0 or -errno. */
int local_sync(const char *folder);

/* On a node: removes the folder, if its name has the form of local_name(). */
void local_remove(const char *folder);

#endif /* JOB_LOCAL_H */
