/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose turn it is to save to a name: that of one job at a time, as two would write into one folder.
 * The file .NAME.kcr.lock beside the snapshot is locked (flock(2)) by the job that saves, which the
 * kernel, or the file server, undoes when its process ends in whatever way.
 */
#ifndef JOB_TURN_H
#define JOB_TURN_H

#define TURN_FORMAT ".%s.lock"	/* of the snapshot's name */

struct turn {
	char *path;			/* of the file; NULL: there is none */
	int fd;
};

/*
 * For the snapshot `path`.  0, or -EALREADY with a message: another one has it.  Where the file
 * cannot be made or locked, nobody is kept from anything.
 */
int turn_take(struct turn *t, const char *path);
void turn_end(struct turn *t);

#endif /* JOB_TURN_H */
