// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Defaults of the argument structures.  A program passes the version that it
 * was built for; there is only one so far.
 */
#include <libcr.h>

#include <errno.h>

int cri_init_checkpoint_args_t(cr_version_t version, cr_checkpoint_args_t *args)
{
	if (version != CR_CHECKPOINT_ARGS_VERSION) {
		errno = EINVAL;
		return -1;
	}
	*args = (cr_checkpoint_args_t) {
		.cr_version = version, .cr_scope = (cr_scope_t)-1, .cr_fd = -1,
	};
	return 0;
}

int cri_init_restart_args_t(cr_version_t version, cr_restart_args_t *args)
{
	if (version != CR_RESTART_ARGS_VERSION) {
		errno = EINVAL;
		return -1;
	}
	*args = (cr_restart_args_t) {
		.cr_version = version, .cr_fd = -1, .cr_flags = CR_RSTRT_RESTORE_PID,
	};
	return 0;
}

void cr_link_me(void)
{
}
