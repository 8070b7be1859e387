/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Error numbers beyond errno, with the values that software written for the
 * BLCR interface knows.  Functions return them negated like any errno; a
 * tool's exit code is the low byte (50 … 61).
 */
#ifndef KCR_REPORT_CODE_H
#define KCR_REPORT_CODE_H

enum report_code {
	CR_ETEMPFAIL = 2354,	/* a callback asked to try later */
	CR_EPERMFAIL,		/* a callback gave up; its process was killed */
	CR_ENOSUPPORT,		/* the program was never linked with libcr */
	CR_EVERSION,		/* module, library and tools do not fit */
	CR_EOMITTED,		/* a callback left its process out */
	CR_EBADARCH,		/* the context file is of another machine */
	CR_EPTRACED,		/* a debugger is attached */
	CR_EPTRACER,		/* it debugs another process */
	CR_ERSTRTABRT,		/* a callback ended the restart */
	CR_ERESTARTED,		/* the request was overtaken by its own restart */
	CR_ENOTCB,		/* only allowed in a callback */
	CR_ENOINIT,		/* cr_init() was not called */
};

#endif /* KCR_REPORT_CODE_H */
