/* SPDX-License-Identifier: GPL-2.0 */
/* What sock_diag tells of a packet socket. */
#ifndef KCR_RESOURCE_PACKET_DIAG_H
#define KCR_RESOURCE_PACKET_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/packet_diag.h>

#include "resource/resource.h"

struct packet_state {
	uint32_t protocol;		/* ETH_P_*, 0: none */
	struct packet_diag_info info;
	bool in_group;			/* of fanout */
	struct packet_diag_ring rx, tx;	/* without blocks: none */
	struct packet_diag_mclist *member;
	size_t nr_members;
};

/*
 * Free it with packet_state_free(), also after an error.  -ENOENT: the kernel has no
 * packet_diag; -ESRCH: the socket is in another network namespace; another -errno.
 */
int packet_diag(struct file_table *t, ino_t ino, struct packet_state *out);
void packet_state_free(struct packet_state *state);

#endif /* KCR_RESOURCE_PACKET_DIAG_H */
