// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libkcr_mpi: finds the component hook/cr in the process and passes the call on.
 * So a program that is linked with it runs without KCR or MPI, too.
 */
#include "mpi-plugin/library/kcr_mpi.h"

#include <errno.h>

#include "mpi-plugin/component.h"
#include "mpi-plugin/hook/hook_cr_control.h"

static const struct mca_hook_cr_control *find_control(void)
{
	const struct mca_hook_cr_control *control =
		component_symbol("/mca_hook_cr.so", MCA_HOOK_CR_CONTROL_SYMBOL);

	return control && control->version == MCA_HOOK_CR_CONTROL_VERSION ? control : NULL;
}

__attribute__((visibility("default")))
int kcr_mpi_checkpoint(const char *name, unsigned int keep, unsigned int flags)
{
	const struct mca_hook_cr_control *control = find_control();
	int rc = control ? control->checkpoint(name, keep, flags) : -ENOTSUP;

	if (rc >= 0)
		return rc;
	errno = -rc;
	return -1;
}
