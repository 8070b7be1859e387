// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libcr_omit.so.0: preloaded (cr_run(1) --omit) or linked into a program, it
 * leaves the program's process, and those it forks, out of every checkpoint.
 * Its callback is the first that is registered and so the last that runs: those
 * of the program itself learn of it by -CR_EOMITTED.
 */
#include <libcr.h>

#include <errno.h>
#include <pthread.h>

void cr_omit_link_me(void);

static int omit(void *unused)
{
	(void)unused;
	cr_checkpoint(CR_CHECKPOINT_OMIT);
	return 0;
}

/* Without the module there are no checkpoints to be left out of. */
static void begin(void)
{
	int err = errno;

	if (cr_init() >= 0)
		cr_register_callback(omit, NULL, CR_THREAD_CONTEXT);
	errno = err;
}

static __attribute__((constructor)) void load(void)
{
	begin();
	/* Behind the handlers of libcr, which make a child begin anew. */
	pthread_atfork(NULL, NULL, begin);
}

/* For the linker: -u cr_omit_link_me -lcr_omit. */
void cr_omit_link_me(void)
{
}
