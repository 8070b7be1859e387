/* SPDX-License-Identifier: GPL-2.0 */
/*
 * With whose rights a restart accesses what an image names.  A cr_restart with
 * privileges takes on those of the saved process before it opens, creates, connects,
 * binds or removes anything for it, and returns to its own afterwards.  One
 * without privileges has none to drop: all calls succeed and do nothing.
 */
#ifndef KCR_RESOURCE_IDENTITY_H
#define KCR_RESOURCE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "image/context.h"

enum identity_rule {
	IDENTITY_CALLER,	/* the caller has no privileges */
	IDENTITY_OWNER,		/* the image is an ordinary user's: only that user's rights */
	IDENTITY_SAVED,		/* the image is root's: its credentials are trusted */
};

/* Has the caller rights that ordinary users do not have? */
bool identity_is_privileged(void);
/* Sets the rule from here on; remembers the caller's own rights.  -errno, reported. */
int identity_begin(enum identity_rule rule);

/* May the restart take any user's IDs?  Only for root's image. */
bool identity_may_be_anyone(void);

/* Is it an ordinary user's image, restarted with privileges? */
bool identity_is_owner(void);

/* May limits be raised?  Not for an ordinary user's image. */
bool identity_may_raise_limits(void);

/*
 * Takes the rights of a saved process until identity_leave().  NULL: the caller's own.
 * -errno, reported, with the caller's own rights.
 */
int identity_enter(const Kcr__Credentials *c);
void identity_leave(void);

/*
 * For what the kernel remembers of a caller by its real user ID, such as who may be sent the signals
 * of a file (F_SETOWN): that of a saved process until identity_show_own().  0 or -errno.
 */
int identity_show(const Kcr__Credentials *c);
void identity_show_own(void);

/*
 * In a process that only does one thing and ends: under IDENTITY_OWNER it is the owner's from here
 * on, with no way back.  0 or -errno.
 */
int identity_drop(const Kcr__Credentials *c);

/*
 * In a process created by the restart: under IDENTITY_OWNER it has its saved rights
 * from here on, but may still choose PIDs; it drops the capabilities that it could
 * regain in its last step (resource/credentials.c).
 */
int identity_take(const Kcr__Credentials *c);

/*
 * In a process created by the restart: one of another user gets a session keyring of its
 * own, not the caller's, as do its children; `parent`: the creator's credentials, or NULL.
 */
void identity_forget_keys(const Kcr__Credentials *c, const Kcr__Credentials *parent);

/*
 * Takes the caller's own rights for one step on a file descriptor or on a name that no
 * user can influence.  False: there are none, or not for an ordinary user's image;
 * `always`: for such an image, too.
 */
bool identity_raise(bool always);
/*
 * Adds to the current rights that of opening /proc files of processes that are the
 * caller's while they are being created: an open file remembers who opened it, and may
 * show root more, later, than its user.  False: the right is not available.
 */
bool identity_raise_to_look(void);
void identity_lower(bool raised);

/*
 * Between these two the caller's own rights are used for what a saved process had open
 * but could not open itself: before a name is used, identity_is_guarded() must be true.
 * False: not for an ordinary user's image.
 */
bool identity_guard(void);
bool identity_is_guarding(void);
void identity_unguard(void);
/*
 * Can only root have created what this path names?  Every folder in the path is
 * root's, no symbolic link is among them, and nobody else may write to them; except that
 * in a sticky folder others cannot replace what is root's.  Never true below /proc/PID,
 * as the PID may be another process's now; nor where users make up owners (proc/mount.h).
 */
bool identity_is_guarded(const char *path);

/* The owner of files created now. */
uid_t identity_user(void);

/*
 * open(2); with root's rights no symbolic links are followed, and with any privileges
 * not those of /proc/PID/fd.
 */
int identity_open(const char *path, int flags, mode_t mode);
/*
 * chdir(2) with the rights of a saved process; or the caller's, if the path is guarded
 * and led to its folder at the checkpoint.  -errno.
 */
int identity_chdir(const char *path, const Kcr__Credentials *c, bool at_path);

/* Could a process with credentials `a` trace one with `b`?  NULL: it could. */
bool identity_may_trace(const Kcr__Credentials *a, const Kcr__Credentials *b);
/* The lesser of two; either may be NULL. */
const Kcr__Credentials *identity_lesser(const Kcr__Credentials *a, const Kcr__Credentials *b);

#endif /* KCR_RESOURCE_IDENTITY_H */
