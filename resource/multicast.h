/* SPDX-License-Identifier: GPL-2.0 */
/* Memberships of sockets in multicast groups. */
#ifndef KCR_RESOURCE_MULTICAST_H
#define KCR_RESOURCE_MULTICAST_H

#include <stdbool.h>
#include <stddef.h>

#include "resource/resource.h"

/* Adds the memberships of a datagram socket to its options.  -ENOMEM, reported. */
int multicast_save(const struct file_probe *probe, int family, Kcr__SocketOption ***list,
		   size_t *count);
/* Is this option a membership? */
bool multicast_is(const Kcr__SocketOption *o);

#endif /* KCR_RESOURCE_MULTICAST_H */
