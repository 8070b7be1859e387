// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libkcr_mpi: finds the component hook/cr in the process and hands the call over.
 * So a program that is linked with it runs where there is no KCR or no MPI, too.
 */
#include "mpi-plugin/library/kcr_mpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "mpi-plugin/hook/hook_cr_control.h"

static int find_component(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	if (!base || strcmp(base, "/mca_hook_cr.so"))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

static const struct mca_hook_cr_control *find_control(void)
{
	const struct mca_hook_cr_control *control = NULL;
	const char *path = NULL;
	void *handle;

	if (!dl_iterate_phdr(find_component, &path))
		return NULL;
	handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	control = dlsym(handle, MCA_HOOK_CR_CONTROL_SYMBOL);
	dlclose(handle);
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
