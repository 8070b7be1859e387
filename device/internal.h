/* SPDX-License-Identifier: GPL-2.0 */
/* How the files of this room call the module. */
#ifndef KCR_DEVICE_INTERNAL_H
#define KCR_DEVICE_INTERNAL_H

#include <linux/kcr.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

/* ioctl(2): 0 or -errno, silently. */
int device_call(int job, unsigned long request, void *argument);

/*
 * Calls an ioctl that fills an array until the array is large enough.
 * `count` and `array` are fields of `argument`.  Returns the count, or -errno silently; *out is
 * malloc'ed, never NULL.  -E2BIG: there is more than the call can give.
 */
int device_call_array(int job, unsigned long request, void *argument, uint32_t *count,
		      __u64 *array, size_t element, void **out);

/* What the module that was opened can leave out when it copies pages. */
void device_pages_know(const struct kcr_info *info);

#endif /* KCR_DEVICE_INTERNAL_H */
