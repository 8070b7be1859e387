/* SPDX-License-Identifier: GPL-2.0 */
/*
 * System V objects (sysvipc(7)), which belong to the machine and not to a process.  Those that the
 * saved processes use, or seem to have made, are saved with one of them; a restart makes those
 * that are gone, with their old IDs, as that is what programs know them by, and leaves those that
 * others use by now alone.
 */
#ifndef KCR_RESOURCE_SYSV_H
#define KCR_RESOURCE_SYSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ipc.h>
#include <sys/types.h>

#include "image/context.h"
#include "resource/attribute.h"

/* What the ways to make, look at and remove an object have to do with its kind. */
struct sysv_kind {
	const char *name;		/* for people: "System V semaphore set" */
	const char *next_id;		/* below /proc: what chooses the next ID */
	const char *limits;		/* names the settings that limit them */
	/* IPC_STAT: 0 or -errno; *length: as that of get() */
	int (*look)(int id, struct ipc_perm *permissions, uint64_t *length);
	/* The ID or -errno; length: semaphores, 0 of queues. */
	int (*get)(key_t key, uint64_t length, int flags);
	/* IPC_SET of owner, group and mode. */
	int (*set)(int id, const struct ipc_perm *permissions);
	int (*remove)(int id);
};

/* A line of a list in /proc/sysvipc. */
struct sysv_line {
	key_t key;
	int id;
	unsigned int mode;
	uint64_t length;		/* semaphores, or messages */
	uint64_t bytes;			/* of all messages */
	pid_t sender, receiver;		/* of messages, the last ones; 0: none */
	uid_t uid, cuid;
	gid_t gid, cgid;
	uint64_t changed;		/* ctime: seconds since the epoch */
	uint64_t operated;		/* the last operation, likewise; 0: none */
};

/* ---- save: in cr_checkpoint, while the processes are stopped ------------------------- */

/* The processes that are saved, the objects being described with one of them. */
struct sysv_users {
	Kcr__Process *const *process;
	size_t count;
	uint64_t *start;		/* of each, seconds since the epoch; UINT64_MAX: none */
	uint64_t earliest;
	unsigned int looks;		/* left: at semaphores, while the processes stand still */
	pid_t asked;			/* whether that one lives … */
	bool lives;			/* … and the answer */
};

/* The one of this PID or, if it is in another one's memory, that; NULL: it is not saved. */
Kcr__Process *sysv_user(const struct sysv_users *users, pid_t pid);
/*
 * Whom an object seems to belong to that a process used last which has ended, or none has used: a
 * process of its owner and maker that is not younger.  NULL: nobody that is saved.
 */
Kcr__Process *sysv_maker(const struct sysv_users *users, const struct sysv_line *line);
/* Calls describe() for each line of a list, until it returns an error. */
int sysv_each(struct sysv_users *users, const char *list,
	      int (*describe)(struct sysv_users *users, const struct sysv_line *line));
Kcr__SysvIdentity *sysv_identity(const struct sysv_line *line, bool used);
/* May a process with these rights use it in this way: 4, read; 2, write? */
bool sysv_permits(const Kcr__Credentials *c, const struct sysv_line *line, unsigned int way);

int sysv_semaphores_describe(struct sysv_users *users);
int sysv_queues_describe(struct sysv_users *users);

/* ---- rebuild ------------------------------------------------------------------------ */

/* Makes the next object get this ID, if we are permitted to: false otherwise. */
bool sysv_choose_id(const char *next_id, int id);
/*
 * Is it the saved object that has the ID now?  IDs and keys begin anew when the machine does, and
 * others can choose theirs: so it must be whose it was, and made by its owner or root, as who made
 * it has the owner's rights to it.
 */
bool sysv_is_same(const struct ipc_perm *now, key_t key, uid_t uid, gid_t gid);
/*
 * Finds the saved object or makes it anew, with the rights that are in effect.  0 or -errno,
 * reported: -EEXIST: another one has its key or ID.
 */
int sysv_get(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved, uint64_t length);
/* Has this restart made it?  Has it made or found it? */
bool sysv_is_made(const struct sysv_kind *kind, int id);
bool sysv_is_known(const struct sysv_kind *kind, int id);
/*
 * What to do about an error that concerns a saved object: 0, with a warning, if it is only
 * supposed to belong to the program; else err.  Reported before.
 */
int sysv_forgive(const Kcr__SysvIdentity *saved, int err);

/* Gives a new one its owner, group and mode; until then it is its maker's alone.  0 or -errno. */
int sysv_give(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved);
/*
 * By the process that it is saved with: it has changed now, so that a later checkpoint takes it for
 * that one's (sysv_maker()).
 */
void sysv_renew(const struct sysv_kind *kind, int id);

int sysv_semaphores_make(const struct context *c, const Kcr__Process *p);
int sysv_queues_make(const Kcr__Process *p);	/* without messages */

extern const struct sysv_kind sysv_semaphores, sysv_queues;

#endif /* KCR_RESOURCE_SYSV_H */
