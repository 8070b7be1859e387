// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libcr_omit.so.0: preloaded (cr_run(1) --omit) or linked into a program, it
 * leaves the program's process, and those it forks, out of every checkpoint.
 * Its callback is the first that is registered and so the last that runs: the
 * program's own callbacks get -CR_EOMITTED.
 */
#include <kcr.h>

#include <errno.h>

void cr_omit_link_me(void);

/* Failure is ignored: without the module there are no checkpoints. */
static __attribute__((constructor)) void load(void)
{
	int err = errno;

	kcr_omit();
	errno = err;
}

/* For the linker: -u cr_omit_link_me -lcr_omit. */
void cr_omit_link_me(void)
{
}
