// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LIBCR_DISABLE_NSCD: a process that asked the name service cache daemon once
 * has a file of the daemon's mapped, shared, which may be another one or gone
 * when the process is restarted.  With this variable in the environment, the C
 * library looks names up itself, from the start.
 */
#include "libcr/internal.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef void (*on_database_t)(size_t database, void *file);

/* The C library means this call for the daemon itself, which wants to know its files. */
static void ignore(size_t database, void *file)
{
	(void)database;
	(void)file;
}

void cri_nscd_begin(void)
{
	void (*disable)(on_database_t) = NULL;

	if (getenv("LIBCR_DISABLE_NSCD"))
		disable = (void (*)(on_database_t))dlsym(RTLD_DEFAULT, "__nss_disable_nscd");
	if (disable)
		disable(ignore);
}
