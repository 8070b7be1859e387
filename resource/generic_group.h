/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Multicast groups of generic netlink.  The kernel numbers families and groups as their
 * modules are loaded, so in an image they have names.
 */
#ifndef KCR_RESOURCE_GENERIC_GROUP_H
#define KCR_RESOURCE_GENERIC_GROUP_H

#include <stdint.h>

#include "image/context.h"

/* Fills in s->generic_group for all of s->group.  0 or -errno, without a message. */
int generic_group_save(Kcr__NetlinkSocket *s);

/*
 * The number of a saved group on this machine, which loads its module if need be.
 * *family gets that of its family.  0 or -errno, without a message; -ENOENT: none.
 */
int generic_group_find(const Kcr__NetlinkGroup *group, uint32_t *number, uint32_t *family);

#endif /* KCR_RESOURCE_GENERIC_GROUP_H */
