/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pages that a partial image lacks (a migration, cr_migrate --lazy), asked for through a
 * socket: link.h has the messages, image/deferred.h says who asks.
 */
#ifndef KCR_RESTART_ELSEWHERE_H
#define KCR_RESTART_ELSEWHERE_H

#include "image/deferred.h"

/* Takes over the socket, on success.  0 or -errno with a message. */
int elsewhere_new(struct elsewhere **out, int fd);
/* Nobody may be within a call.  NULL is allowed. */
void elsewhere_free(struct elsewhere *e);

#endif /* KCR_RESTART_ELSEWHERE_H */
