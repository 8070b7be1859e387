/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calling a function whose address is known only at run time, where an
 * indirect call may be forbidden.
 */
#ifndef KCR_COMPAT_CALL_H
#define KCR_COMPAT_CALL_H

#include <linux/version.h>

/* 5.13 (73f44fe19d35 "static_call: Allow module use without exposing static_call_key"). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0)
#define KCR_HAVE_STATIC_CALL 1
#else
#define KCR_HAVE_STATIC_CALL 0
#endif

#if KCR_HAVE_STATIC_CALL

#include <linux/static_call.h>

#define KCR_DEFINE_CALL(name, type)	DEFINE_STATIC_CALL_NULL(name, *(type *)NULL)
#define kcr_call(name)			static_call(name)
#define kcr_call_set(name, type, address) \
	static_call_update(name, (type *)(address))

#else /* no IBT in these kernels: a plain pointer will do */

#define KCR_DEFINE_CALL(name, type)	static type *name
#define kcr_call(name)			name
#define kcr_call_set(name, type, address) \
	((name) = (type *)(address))

#endif

#endif /* KCR_COMPAT_CALL_H */
