/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table that one of our components exports, looked up in the process that has loaded
 * it: users of a component are not linked with it.
 */
#ifndef MPI_COMPONENT_H
#define MPI_COMPONENT_H

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct component_search {
	const char *file;	/* "/mca_btl_cr.so" */
	const char *path;	/* of the loaded one */
};

static inline int component_match(struct dl_phdr_info *info, size_t size, void *argument)
{
	const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	struct component_search *search = (struct component_search *)argument;

	(void)size;
	if (!base || strcmp(base, search->file) != 0)
		return 0;
	search->path = info->dlpi_name;
	return 1;
}

/* The address of `symbol` in the component `file`; NULL: not loaded, or no such symbol. */
static inline const void *component_symbol(const char *file, const char *symbol)
{
	struct component_search search = { file, NULL };
	const void *found;
	void *handle;

	if (!dl_iterate_phdr(component_match, &search))
		return NULL;
	handle = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	found = dlsym(handle, symbol);
	dlclose(handle);		/* it stays loaded: this was not the only handle */
	return found;
}

#endif /* MPI_COMPONENT_H */
