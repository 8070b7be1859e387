/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Error numbers beyond errno, with the values of the BLCR interface.
 * Functions return them negated like any errno; a tool's exit code is the
 * low byte (50 … 61).
 */
#ifndef KCR_REPORT_CODE_H
#define KCR_REPORT_CODE_H

enum report_code {
	CR_ETEMPFAIL = 2354,	/* a callback asked to try later */
	CR_EPERMFAIL,		/* a callback failed for good: its processes were killed */
	CR_ENOSUPPORT,		/* the program does not support checkpoints */
	CR_EVERSION,		/* versions of module, library and tools do not match */
	CR_EOMITTED,		/* a callback left its process out */
	CR_EBADARCH,		/* the context file is from another kind of machine */
	CR_EPTRACED,		/* a debugger is attached */
	CR_EPTRACER,		/* it debugs another process */
	CR_ERSTRTABRT,		/* a callback ended the restart */
	CR_ERESTARTED,		/* the requester was restarted from this checkpoint */
	CR_ENOTCB,		/* only allowed in a callback */
	CR_ENOINIT,		/* cr_init() was not called */
};

#endif /* KCR_REPORT_CODE_H */
