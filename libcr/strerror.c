// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texts for the error numbers of libcr.  No locks, no state.
 */
#include <libcr.h>

#include <string.h>

static const char *const texts[] = {
	[CR_ETEMPFAIL - CR_ETEMPFAIL] = "A callback asked to try again later",
	[CR_EPERMFAIL - CR_ETEMPFAIL] = "A callback failed for good and its processes were killed",
	[CR_ENOSUPPORT - CR_ETEMPFAIL] = "The program does not support checkpoints",
	[CR_EVERSION - CR_ETEMPFAIL] = "Versions of library and kernel module do not match",
	[CR_EOMITTED - CR_ETEMPFAIL] = "The process was left out of the checkpoint",
	[CR_EBADARCH - CR_ETEMPFAIL] = "The context file is from another kind of machine",
	[CR_EPTRACED - CR_ETEMPFAIL] = "A process is being debugged",
	[CR_EPTRACER - CR_ETEMPFAIL] = "A process debugs another one",
	[CR_ERSTRTABRT - CR_ETEMPFAIL] = "A callback ended the restart",
	[CR_ERESTARTED - CR_ETEMPFAIL] = "Restarted from the requested checkpoint",
	[CR_ENOTCB - CR_ETEMPFAIL] = "Only allowed in a callback",
	[CR_ENOINIT - CR_ETEMPFAIL] = "cr_init() was not called in this thread",
};

const char *cr_strerror(int errnum)
{
	if (errnum > CR_MIN_ERRCODE && errnum < CR_MAX_ERRCODE)
		return texts[errnum - CR_ETEMPFAIL];
	return strerror(errnum);
}
