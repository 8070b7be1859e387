// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LIBCR_DISABLE_NSCD: a process that has asked the name service cache daemon
 * has a file of the daemon mapped, shared, which may have been replaced or
 * removed when the process is restarted.  With this variable in the environment,
 * the C library looks names up itself, from the start.
 */
#include "libcr/internal.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef void (*on_database_t)(size_t database, void *file);

/* __nss_disable_nscd() is meant for the daemon itself, which gets its files by this callback. */
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
