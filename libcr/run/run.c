// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libcr_run.so.0: preloaded (cr_run(1)) or linked into a program that does not
 * use libcr, it calls cr_init() for the first thread, so that plugins
 * and wrappers may use critical sections and requests there.  Without the
 * module the program runs as if it were not loaded.
 */
#include <libcr.h>

#include <errno.h>
#include <pthread.h>

void cr_run_link_me(void);

/* Keeps errno: the program must not see us. */
static void begin(void)
{
	int err = errno;

	cr_init();
	errno = err;
}

static __attribute__((constructor)) void load(void)
{
	begin();
	/* After the handlers of libcr, which reset its state in a child. */
	pthread_atfork(NULL, NULL, begin);
}

/* For the linker: -u cr_run_link_me -lcr_run. */
void cr_run_link_me(void)
{
}
