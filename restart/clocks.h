/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME go on at their old values: a time namespace for each
 * that the image has processes of.
 */
#ifndef KCR_RESTART_CLOCKS_H
#define KCR_RESTART_CLOCKS_H

#include "image/context.h"
#include "restart/restart.h"

/*
 * In cr_restart, before anything is made that has a time left: from now on the old clocks
 * go on.  With RESTART_CLOCKS_AUTO it is no error if that is not possible.  0 or -errno,
 * reported.
 */
int clocks_make(const struct context *c, enum restart_clocks wish);
/*
 * In a process of the restart that is single-threaded and has all rights yet: takes it to
 * those of the saved process; its children will be there.  0 or -errno, reported.
 */
int clocks_enter(const Kcr__Process *p);
/* In cr_restart, when every process has them or the restart has failed. */
void clocks_end(void);

#endif /* KCR_RESTART_CLOCKS_H */
