/* SPDX-License-Identifier: GPL-2.0 */
/*
 * --hold-fd of cr_restart: everything is restored, but nothing runs before the one at the
 * other end of a socket says so.  Lines to it: "held", then "running" and "loaded", or before that at
 * any time "failed CODE MESSAGE"; an empty string from it means "go on".  Its end, before that, undoes
 * the restart.  If no context file was named, a string before that names it: so a restart can be
 * started early.
 */
#ifndef KCR_UTIL_RESTART_HOLD_H
#define KCR_UTIL_RESTART_HOLD_H

#include <stdbool.h>

/* 0 or -EINVAL with a message. */
int restart_hold_open(const char *number);
bool restart_hold_is_open(void);
/* Waits for the name of the context file; NULL: there is nobody any more who could say it. */
const char *restart_hold_file(void);
/* Nothing runs yet: 0: go on, or -ECANCELED with a message.  Without --hold-fd: 0. */
int restart_hold_wait(void);
/* It runs. */
void restart_hold_running(void);
/* All its memory is there.  Any thread may say so, also before it is known that it runs. */
void restart_hold_loaded(void);
/* It has failed with this -errno and the recorded message.  Closes the descriptor. */
void restart_hold_failed(int err);

#endif /* KCR_UTIL_RESTART_HOLD_H */
