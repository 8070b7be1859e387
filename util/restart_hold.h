/* SPDX-License-Identifier: GPL-2.0 */
/*
 * --hold-fd of cr_restart: everything is restored, but nothing runs before the one at the
 * other end of a socket says so.  Lines to it: "held", then "running", or at any time
 * "failed CODE MESSAGE"; a line from it means "go on".  Its end, before that, undoes the restart.
 */
#ifndef KCR_UTIL_RESTART_HOLD_H
#define KCR_UTIL_RESTART_HOLD_H

#include <stdbool.h>

/* 0 or -EINVAL with a message. */
int restart_hold_open(const char *number);
bool restart_hold_is_open(void);
/* Nothing runs yet: 0: go on, or -ECANCELED with a message.  Without --hold-fd: 0. */
int restart_hold_wait(void);
/* It runs.  Closes the descriptor. */
void restart_hold_running(void);
/* It has failed with this -errno and the recorded message.  Closes the descriptor. */
void restart_hold_failed(int err);

#endif /* KCR_UTIL_RESTART_HOLD_H */
