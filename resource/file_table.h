/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The internals of the register of open files: file_table.c registers and finds
 * them, file_save.c saves what is registered.  All others use resource/file.h.
 */
#ifndef KCR_RESOURCE_FILE_TABLE_H
#define KCR_RESOURCE_FILE_TABLE_H

#include "resource/file.h"

struct entry {
	struct file_probe probe;	/* owns link and fdinfo */
	Kcr__File *file;		/* NULL: not saved yet */
	const struct file_kind *kind;
	Kcr__UnixSocket *unread;	/* of unix_queue.c */
};

struct place {				/* a descriptor of some process */
	pid_t pid;
	int number;
	uint32_t id;
};

struct file_table {
	bool skip_unsupported;
	bool dry;
	int job;			/* -1: none */
	struct entry **entry;		/* entry[id - 1] */
	size_t count, room;
	uint32_t *index;		/* ids in the order of compare() */
	struct place *place;
	size_t nr_places, place_room;
	bool places_sorted;
	struct lock_list locks;
	int diag;			/* -1: not opened yet */
	void *inet_ends;		/* of inet_socket.c */
	unsigned int awaited_ms;	/* by file_table_await_sent() */
	bool cloexec;			/* of the descriptor added last */
	char reason[256];		/* of the last file_unsupported() */
	const char *instead;		/* what to do, where --skip-unsupported is no help; or NULL */
};

#endif
