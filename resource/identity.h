/* SPDX-License-Identifier: GPL-2.0 */
/*
 * With whose rights a restart touches what an image names.  A cr_restart with
 * privileges takes those of the saved process before it opens, makes, connects,
 * binds or removes anything for it, and has its own back afterwards.  One
 * without privileges has nothing to take off: all calls succeed and do nothing.
 */
#ifndef KCR_RESOURCE_IDENTITY_H
#define KCR_RESOURCE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "image/context.h"

enum identity_rule {
	IDENTITY_CALLER,	/* the caller has no privileges */
	IDENTITY_OWNER,		/* the image is an ordinary user's word: only his rights */
	IDENTITY_SAVED,		/* it is root's word: what it says of a process is believed */
};

/* Has the caller rights that ordinary users have not? */
bool identity_is_privileged(void);
/* What holds from here on; remembers the caller's own rights. -errno, reported. */
int identity_begin(enum identity_rule rule);

/* May the caller's limits be raised for it?  Not for an ordinary user's image. */
bool identity_may_raise_limits(void);

/*
 * The rights of a saved process until identity_leave().  NULL: the caller's own.
 * -errno, reported, with the caller's own rights.
 */
int identity_enter(const Kcr__Credentials *c);
void identity_leave(void);

/*
 * In a process made by the restart: under IDENTITY_OWNER it has the rights of its
 * saved self from here on, but may still choose process numbers; the capabilities
 * that it could get back it loses with its last step (resource/credentials.c).
 */
int identity_take(const Kcr__Credentials *c);

/*
 * In a process made by the restart: another user's has a session keyring of its own,
 * not the caller's, and so have its children; `parent`: what they are made by, or NULL.
 */
void identity_forget_keys(const Kcr__Credentials *c, const Kcr__Credentials *parent);

/*
 * The caller's own rights for one step on a descriptor or on a name that users have
 * no hand in.  False: there are none to be had, or not for such an image; `always`:
 * for such an image, too.
 */
bool identity_raise(bool always);
/*
 * The rights of the moment, and to open what processes have in /proc that are the
 * caller's as long as they are made: an open file remembers who opened it, and may
 * tell root more, later, than its user.  False: there are none to be had.
 */
bool identity_raise_to_look(void);
void identity_lower(bool raised);

/*
 * Between these two the caller's own rights serve for what a saved process had open
 * but could not open itself: who uses a name asks identity_is_guarded() first.
 * False: not for such an image.
 */
bool identity_guard(void);
bool identity_is_guarding(void);
void identity_unguard(void);
/*
 * Can only root have put there what this path names?  Every folder on the way is
 * root's, no symbolic link is among them, and nobody else may write to them; but
 * what is root's cannot be exchanged in one with a sticky bit.  Nothing in /proc/PID:
 * the number may be another process's now.
 */
bool identity_is_guarded(const char *path);

/* Whose is what is made now? */
uid_t identity_user(void);

/*
 * open(2); with root's rights no symbolic links are followed, and by no privileged
 * caller those of /proc/PID/fd.
 */
int identity_open(const char *path, int flags, mode_t mode);
/*
 * chdir(2) with the rights of a saved process; or the caller's, if the path is guarded
 * and led to its folder at the checkpoint.  -errno.
 */
int identity_chdir(const char *path, const Kcr__Credentials *c, bool at_path);

/* Could a process with these credentials trace one with those?  NULL: it could. */
bool identity_may_trace(const Kcr__Credentials *a, const Kcr__Credentials *b);
/* The lesser of two; either may be NULL. */
const Kcr__Credentials *identity_lesser(const Kcr__Credentials *a, const Kcr__Credentials *b);

#endif /* KCR_RESOURCE_IDENTITY_H */
