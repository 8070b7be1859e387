/* SPDX-License-Identifier: GPL-2.0 */
/* What fanotify(7) needs at a restart; resource/fanotify.c is its file kind. */
#ifndef KCR_RESOURCE_FANOTIFY_H
#define KCR_RESOURCE_FANOTIFY_H

#include "resource/resource.h"

/* Could the calling process make it and its marks?  0, or -EPERM, silently. */
int fanotify_check(const Kcr__Fanotify *fanotify);

#endif /* KCR_RESOURCE_FANOTIFY_H */
