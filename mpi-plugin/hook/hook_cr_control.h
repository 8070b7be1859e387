/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What libkcr_mpi calls in the component hook/cr of its own process, by a table
 * that it looks up: there is no link between the two.
 */
#ifndef MCA_HOOK_CR_CONTROL_H
#define MCA_HOOK_CR_CONTROL_H

#include <stdint.h>

#define MCA_HOOK_CR_CONTROL_VERSION	1
#define MCA_HOOK_CR_CONTROL_SYMBOL	"mca_hook_cr_control"

struct mca_hook_cr_control {
	uint32_t version;	/* MCA_HOOK_CR_CONTROL_VERSION */
	uint32_t size;		/* of this structure: later versions append */

	/* As kcr_mpi_checkpoint(), but -errno.  -ENOTSUP: not a job with checkpoints. */
	int (*checkpoint)(const char *name, unsigned int keep, unsigned int flags);
};

#endif /* MCA_HOOK_CR_CONTROL_H */
